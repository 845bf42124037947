"""Compares three runs from judgements to a decision: tables to paste, a gate for a job, topics for the next experiment.

The collection is synthetic: each query has ten relevant documents among a hundred, and a better run ranks them higher.
"""

from random import Random

from metrics_core import compare, confidence_interval, evaluate, topics_needed

N_QUERIES = 80
Collection = dict[str, dict[str, float]]


def collection(seed: int) -> tuple[Collection, dict[str, Collection]]:
    """Judgements, and three runs of which the last is the best; queries are easy or hard for all of them."""
    random = Random(seed)  # nothing here is a secret
    qrels: Collection = {}
    runs: dict[str, Collection] = {"bm25": {}, "dense": {}, "hybrid": {}}
    for query in (f"q{i}" for i in range(N_QUERIES)):
        qrels[query] = {f"d{i}": 1 + i % 3 for i in range(10)}
        hardness = random.random()
        for name, quality in (("bm25", 0.5), ("dense", 0.55), ("hybrid", 0.9)):
            signal = quality * (1 - hardness)
            runs[name][query] = {f"d{i}": signal * (i < 10) + random.random() for i in range(100)}
    return qrels, runs


def main() -> None:
    """Evaluates, compares, decides."""
    qrels, runs = collection(seed=7)
    scores = {name: evaluate(qrels, run, ["nDCG@10", "AP"]) for name, run in runs.items()}
    mean, low, high, n = confidence_interval(scores["hybrid"], "nDCG@10")
    print(f"hybrid: nDCG@10 {mean:.3f}, from {low:.3f} to {high:.3f}, over {n} queries")

    comparison = compare(scores, baseline="bm25")
    print(comparison.to_markdown())  # or to_latex(), to_html(), to_pandas()

    # A gate: hybrid replaces bm25 if it is significantly better, and wins twice as often as it loses.
    hybrid = comparison.difference("hybrid", "bm25", "nDCG@10")
    print("replace bm25:", hybrid.significant and hybrid.difference > 0 and hybrid.wins > 2 * hybrid.losses)

    # dense looks a little better; how many queries would it take to tell?
    dense = comparison.difference("dense", "bm25", "nDCG@10")
    print(f"queries to tell a difference of 0.02: {topics_needed(0.02, dense.sd)}")

    # All pairs at once, with the family-wise error under control by the randomised Tukey test.
    for pair in compare(scores, metrics="AP", test="tukey").differences:
        print(f"{pair.run} and {pair.other}: {pair.difference:+.4f}, p {pair.p_adjusted:.4f}")


if __name__ == "__main__":
    main()
