"""How far scores of answers agree with people: ours, haystack-ai's with the same model, and exact match.

    python -m benchmarks.sas_labels FILE.csv [FILE.csv]... [--model NAME]

A file has a header and the columns answer1, answer2 and label, a number that is the larger the more alike the answers
are, as the pairs of SQuAD and NQ-open that came with the paper on semantic answer similarity (Risch et al., MRQA 2021).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.sas import model_folder


def individual_scores(model: str, golds: Sequence[str], predicted: Sequence[str]) -> dict[str, list[float]]:
    """The scores of each contender."""
    from haystack.components.evaluators import SASEvaluator as HaystackSASEvaluator

    from metrics_core import AnswerExactMatchEvaluator, AnswerF1Evaluator, SASEvaluator

    contenders: dict[str, Any] = {
        "SAS, metrics-core": SASEvaluator(model),
        "SAS, haystack-ai": HaystackSASEvaluator(model),
        "token F1": AnswerF1Evaluator(),
        "exact match, normalised": AnswerExactMatchEvaluator(normalize="squad"),
        "exact match": AnswerExactMatchEvaluator(),
    }
    return {name: each.run(golds, predicted)["individual_scores"] for name, each in contenders.items()}


def main() -> None:
    """Prints a Markdown table for each file."""
    from scipy.stats import kendalltau, spearmanr

    parser = argparse.ArgumentParser(prog="python -m benchmarks.sas_labels", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.csv")
    parser.add_argument("--model", default=None, help="all-MiniLM-L6-v2 unless given")
    options = parser.parse_args()
    for path in options.files:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        labels = [float(row["label"]) for row in rows]
        golds, predicted = [row["answer1"] for row in rows], [row["answer2"] for row in rows]
        print(f"\n{path.name}, {len(rows)} pairs\n\n| score | Spearman | Kendall |\n|---|--:|--:|")
        for name, scores in individual_scores(options.model or model_folder(), golds, predicted).items():
            found = ["constant", "constant"]
            if len(set(scores)) > 1:
                found = [f"{statistic(scores, labels).statistic:.4f}" for statistic in (spearmanr, kendalltau)]
            print(f"| {name} | {' | '.join(found)} |", flush=True)


if __name__ == "__main__":
    main()
