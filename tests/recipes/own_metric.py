"""Adds a metric: a kernel in plain Python, registered under a name that then parses everywhere.

The metric is the share of the first k places that are filled with documents of the best grade there is for the query.

It prints:

    Scores of 2 queries, policies trec_eval
      TopGrade@2  0.2500  (mean)
      TopGrade@3  0.3333  (mean)
      nDCG@3      0.4757  (mean)
"""

from typing import Any

from metrics_core import Metric, evaluate, register_metric


def top_grade(
    grades: Any, ranks: Any, n_retrieved: Any, ideal: Any, rel: float, cutoff: int, params: Any, out: Any
) -> None:
    """Adds up the score of each query in out, (n_queries,); `Metric` documents the arguments."""
    for i in range(grades.shape[0]):
        for q in range(out.size):
            if grades[i, q] >= rel and grades[i, q] == ideal[0, q] and ranks[i, q] <= cutoff:
                out[q] += 1 / cutoff


def main() -> None:
    """Registers the metric and uses it with others."""
    definition = "documents of the best grade among the first k, over k"
    register_metric(Metric("TopGrade", top_grade, definition=definition, after="cutoff"))
    qrels = {"q1": {"d1": 3, "d2": 1, "d3": 3}, "q2": {"d9": 1}}
    run = {"q1": {"d1": 9.0, "d2": 8.0, "d3": 7.0}, "q2": {"d1": 4.0}}
    print(evaluate(qrels, run, ["TopGrade@2", "TopGrade@3", "nDCG@3"]))


if __name__ == "__main__":
    main()
