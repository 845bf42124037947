"""ties="expected" equals the mean over all orders of the tied documents, by enumeration."""

from dataclasses import replace
from itertools import permutations, product
from math import comb, log2, nan

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from metrics_core.blocks import REPEAT
from metrics_core.errors import PolicyError
from metrics_core.metrics import Metric, parse, registered_metrics
from metrics_core.policies import Policies
from tests.blocks import block_at_every_rank

EXPECTED = Policies(ties="expected")
ALLOWED = [
    *(f"{name}@{k}" for name in ("P", "R", "R_cap", "Success", "RR", "AP", "nDCG", "DCG") for k in (1, 2, 4)),
    *(
        "RR",
        "AP",
        "Rprec",
        "nDCG",
        "nDCG(dcg='exp-log2')@3",
        "nDCG(gains={1: 3, 2: 1})@3",
        "nDCG(rel=2)@3",
        "AP(rel=2)",
    ),
    *("RBP(p=0.8)@3", "RBP(p=0.5, max_rel=3)", "RBPResidual(p=0.9)", "Judged@3", "Judged", "Unj@3"),
    *("SetP", "SetR", "SetF", "SetAP", "SetRelP", "NumRet", "NumRel", "NumRelRet", "NumQ"),
]

groups = st.lists(
    st.lists(st.sampled_from([nan, REPEAT, -1.0, 0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=4), max_size=3
)


def block_of_rows(rows, ideal, tie_ends=None):
    grades = np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    n_retrieved = np.full(len(rows), grades.shape[1], dtype=np.int64)
    ideal = np.repeat(ideal[:, None], len(rows), axis=1)
    return block_at_every_rank(np.ascontiguousarray(grades.T), n_retrieved, ideal, tie_ends)


def ends_of(tied):
    ends = np.cumsum([len(group) for group in tied], dtype=np.int64)
    return np.repeat(ends, [len(group) for group in tied]).astype(np.int64)[:, None]


@settings(deadline=None)  # the kernels are compiled in the first example
@given(tied=groups, missed=st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0]), max_size=3))
def test_equals_enumeration(tied, missed):
    row = [grade for group in tied for grade in group]
    judged = [grade for grade in row if grade > REPEAT] + missed
    ideal = np.array(sorted(judged, reverse=True), dtype=np.float64)
    orders = [sum(order, ()) for order in product(*(permutations(group) for group in tied))]
    every_order = block_of_rows(orders, ideal)
    together = block_of_rows([row], ideal, ends_of(tied))
    for name in ALLOWED:
        mean = parse(name).score(every_order, Policies()).mean()
        assert parse(name).score(together, EXPECTED)[0] == pytest.approx(mean, abs=1e-12), name


@settings(deadline=None)
@given(row=st.lists(st.sampled_from([nan, -1.0, 0.0, 1.0, 3.0]), max_size=6))
def test_without_ties_nothing_changes(row):
    ideal = np.array(sorted((grade for grade in row if grade > REPEAT), reverse=True))
    alone = block_of_rows([row], ideal, np.arange(1, len(row) + 1)[:, None])
    for name in ALLOWED:
        untied = parse(name).score(replace(alone, tie_ends=None), Policies())
        assert parse(name).score(alone, EXPECTED) == pytest.approx(untied, abs=1e-15), name


def test_ties_of_thousands_keep_their_precision():
    n, relevant, k = 5000, 40, 100
    row = np.zeros(n)
    row[:relevant] = 1
    block = block_of_rows([row], row, np.full((n, 1), n))
    none = comb(n - relevant, k) / comb(n, k)
    first = [comb(n - i - 1, relevant - 1) / comb(n, relevant) for i in range(n)]
    expected = {
        "P@100": relevant / n,
        "R@100": k / n,
        f"Success@{k}": 1 - none,
        "RR": sum(chance / (i + 1) for i, chance in enumerate(first)),
        f"RR@{k}": sum(chance / (i + 1) for i, chance in enumerate(first[:k])),
        "DCG@100": sum(relevant / n / log2(i + 2) for i in range(k)),
    }
    for name, value in expected.items():
        assert parse(name).score(block, EXPECTED)[0] == pytest.approx(value, rel=1e-12), name


def test_twenty_tied_documents_one_relevant():
    row = [1.0] + [nan] * 19
    block = block_of_rows([row], np.array([1.0]), np.full((1, 20), 20))
    assert parse("RR").score(block, EXPECTED)[0] == pytest.approx(sum(1 / i for i in range(1, 21)) / 20)


def test_metrics_without_an_exact_expectation_refuse_by_name():
    refused = [metric.name for metric in registered_metrics() if metric.expected is None]
    assert sorted(refused) == sorted(["Bpref", "infAP", "ERR", "IPrec", "IPrec11", "Compat", "GMAP"])
    block = block_of_rows([[1.0, 1.0]], np.array([1.0, 1.0]), np.full((1, 2), 2))
    with pytest.raises(PolicyError, match="Bpref has no exact value for ties='expected'"):
        parse("Bpref").score(block, EXPECTED)
    with pytest.raises(PolicyError, match="Mine has no exact value"):
        Metric(name="Mine", kernel=lambda *_: None).check_ties(EXPECTED)
