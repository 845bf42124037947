"""Adds a metric: a kernel in plain Python, registered under a name that then parses everywhere.

The metric is the share of the first k places that are filled with documents of the best grade there is for the query.
"""

from typing import Any

from metrics_core import Metric, evaluate, register_metric


def top_grade(
    grades: Any, ranks: Any, n_retrieved: Any, ideal: Any, rel: float, cutoff: int, params: Any, out: Any
) -> None:
    """Adds up the score of each query in out, (n_queries,); `Metric` documents the arguments."""
    for i in range(grades.shape[0]):
        for q in range(out.size):
            if grades[i, q] == ideal[0, q] and grades[i, q] >= rel and ranks[i, q] <= cutoff:
                out[q] += 1 / cutoff


def main() -> None:
    """Registers the metric and uses it with others."""
    register_metric(Metric("TopGrade", top_grade, definition="documents of the best grade among the first k, over k"))
    qrels = {"q1": {"d1": 3, "d2": 1, "d3": 3}, "q2": {"d9": 1}}
    run = {"q1": {"d1": 9.0, "d2": 8.0, "d3": 7.0}, "q2": {"d1": 4.0}}
    scores = evaluate(qrels, run, ["TopGrade@2", "TopGrade@3", "nDCG@3"])
    print(scores)
    assert scores.to_dict()["q1"]["TopGrade@2"] == 1 / 2
    assert scores.to_dict()["q1"]["TopGrade@3"] == 1 / 3 + 1 / 3


if __name__ == "__main__":
    main()
