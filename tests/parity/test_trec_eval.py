"""The shared pairs against what trec_eval 9.0.8 printed for them, with -c and without."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from metrics_core import FileFormatError, Policies, evaluate, metric_names, parse, read_qrels, read_run
from metrics_core.errors import MetricNameError

PAIRS = [
    "te-results",
    "te-rellevel",
    "te-trunc",
    "rob03-InexpC2",
    "rob03-MU03rob01",
    "rob03-NLPR03vb10",
    "rob03-pircRBa1",
    "dl19-colbert",
    "dl19-monot5",
    "dl1920-lmdir",
    "trec8-lmdirall",
    "cast21-convdr",
    "web-valid.wt11",
    "web-test.wt12",
    "irm-cwl",
    "ms100-miniLM",
]

# trec_eval 9 interpolates with another rounding than the definition.
ROUNDED_OTHERWISE = {"IPrec", "IPrec11"}
# What the catalogue does not have.
OTHER_MEASURES = {
    *("runid", "relstring", "G", "binG", "Rndcg", "ndcg_rel", "utility", "gm_bpref", "num_nonrel_judged_ret"),
    *(f"Rprec_mult_{tenths / 10:.2f}" for tenths in range(2, 21, 2)),
    *(f"relative_P_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
}
HALF_A_DIGIT = 0.5e-4 * (1 + 1e-9)


class Line(NamedTuple):
    measure: str
    query: str  # "all" for the aggregate
    value: float


class Pair(NamedTuple):
    qrels: Path
    run: Path
    reference: str


@pytest.fixture(scope="module")
def pairs(shared: Path) -> dict[str, Pair]:
    rows = [line.split("\t") for line in (shared / "data/pairs.tsv").read_text().splitlines()[1:]]
    return {
        name: Pair(shared / "data" / qrels, shared / "data" / run, reference) for name, qrels, run, reference in rows
    }


def printed(path: Path) -> Iterator[Line]:
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        measure, query, value = (field.strip() for field in line.split("\t"))
        if measure not in OTHER_MEASURES:
            yield Line(measure, query, float(value))


def test_the_pairs_are_these(pairs):
    assert [*pairs] == [*PAIRS[:2], "te-123", *PAIRS[2:]]


@pytest.mark.parametrize(("reference", "missing"), [("q", "skip"), ("qc", "zero")])
@pytest.mark.parametrize("name", PAIRS)
def test_every_printed_value(pairs, shared, name, reference, missing):
    qrels, run, _ = pairs[name]
    lines = [*printed(shared / f"data/reference/{name}.{reference}.txt.gz")]
    parsed = {measure: parse(measure) for measure in dict.fromkeys(line.measure for line in lines)}
    ours = {measure: metric for measure, metric in parsed.items() if metric.name not in ROUNDED_OTHERWISE}
    assert len(ours) == 55

    scores = evaluate(qrels, run, ours.values(), policies=Policies("trec_eval", missing=missing))

    row = {query: i for i, query in enumerate(scores.query_ids)}
    aggregates = scores.aggregate()
    wrong = []
    for measure, query, expected in lines:
        if measure in ours:
            metric = str(ours[measure])
            value = aggregates[metric].value if query == "all" else scores[metric][row[query]]
            if not abs(value - expected) <= HALF_A_DIGIT:
                wrong.append((measure, query, value, expected))
    assert wrong == []
    n_queries = next(line.value for line in lines if line == Line("num_q", "all", line.value))
    assert {each.n_scored for each in aggregates.values()} == {n_queries}
    left_out = row.keys() - {line.query for line in lines}
    if missing == "zero":  # trec_eval 9 counts them in its means and prints no line
        assert all(scores["AP"][row[query]] == 0 for query in left_out)
    else:
        assert all(np.isnan(scores.values[row[query]]).all() for query in left_out)


def test_all_measures_of_trec_eval_that_the_catalogue_has_are_compared(pairs, shared):
    measures = {line.measure for line in printed(shared / "data/reference/te-results.q.txt.gz")}
    compared = {parse(measure).name for measure in measures}
    ours_alone = {"R_cap", "DCG", "ERR", "RBP", "RBPResidual", "Judged", "Unj", "Compat"}
    assert compared == set(metric_names()) - ours_alone


@pytest.mark.parametrize("measure", sorted(OTHER_MEASURES - {"G", "relative_P_5"}))
def test_other_measures_are_no_names(measure):
    with pytest.raises(MetricNameError):
        parse(measure)


def test_duplicate_judgements_are_refused_with_file_line_and_document(pairs):
    qrels, run, _ = pairs["te-123"]
    with pytest.raises(FileFormatError, match=r"qrels\.123, line \d+: document '\S+' is judged twice for query '\d+'"):
        evaluate(qrels, run, "AP")


def test_judgements_read_once_serve_many_runs(pairs):
    qrels = read_qrels(pairs["rob03-InexpC2"].qrels)
    for name in ("rob03-InexpC2", "rob03-pircRBa1"):
        run = pairs[name].run
        prepared, from_paths = (
            evaluate(qrels, read_run(run), ["AP", "nDCG"]),
            evaluate(pairs[name].qrels, run, ["AP", "nDCG"]),
        )
        np.testing.assert_array_equal(prepared.values, from_paths.values)


@pytest.mark.parametrize("name", PAIRS)
def test_every_source_of_a_pair_gives_the_same(pairs, name):
    qrels, run = read_qrels(pairs[name].qrels), read_run(pairs[name].run)
    metrics = ["AP", "nDCG@10", "Bpref", "infAP", "NumRet", "Unj@10"]
    expected = evaluate(qrels, run, metrics, n_threads=1)
    for other in (
        evaluate(qrels.to_dict(), run.to_dict(), metrics),
        evaluate(qrels.to_dict(), run, metrics),
        evaluate(qrels, run.to_dict(), metrics),
        evaluate(qrels, run, metrics, n_threads=3),
    ):
        assert other.query_ids == list(expected.query_ids)
        np.testing.assert_array_equal(other.values, expected.values)
