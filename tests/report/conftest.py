"""Runs with everything that a report can show, and names and texts that try to be HTML or JavaScript."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from metrics_core import compare, evaluate

for package in ("altair", "jinja2", "vl_convert"):
    pytest.importorskip(package, reason=f"{package} is not installed; the extra report brings it")

HOSTILE = (
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>\u2028\u2029&amp;\"{{ 7 * 7 }}"
)


@pytest.fixture(scope="session")
def collection():
    """Judgements, rankings, texts: 120 queries, among them one with hostile names everywhere."""
    ids = [f"q{i}" for i in range(119)] + [HOSTILE]
    documents = [f"d{i}" for i in range(200)] + [HOSTILE]
    qrels = {query: {documents[(7 * i) % 200]: 2, documents[-1]: 1} for i, query in enumerate(ids)}
    runs = {
        "bm25": {
            query: {documents[(7 * i + j * (i % 4)) % 200]: 10.0 - j for j in range(12)} for i, query in enumerate(ids)
        },
        f"dense {HOSTILE}": {
            query: {documents[(7 * i - 1 + j) % 200]: 1 / (j + 1) for j in range(i % 9)} | {documents[-1]: 0.05}
            for i, query in enumerate(ids)
        },
    }
    return SimpleNamespace(
        qrels=qrels,
        runs=runs,
        scores={name: evaluate(qrels, run, ["nDCG@10", "RR"]) for name, run in runs.items()},
        queries={query: f"the text of {query}" for query in ids},
        documents={document: f"what {document} says" for document in documents},
    )


@pytest.fixture(scope="session")
def everything(collection):
    """The arguments of write_report that leave nothing out but judges."""
    return {
        "runs": collection.scores,
        "comparison": compare(collection.scores, baseline="bm25", n_resamples=200),
        "qrels": collection.qrels,
        "rankings": collection.runs,
        "queries": collection.queries,
        "documents": collection.documents,
        "title": f"Report {HOSTILE}",
    }
