"""A metric of one's own: defined, called, registered, pickled and, where numba cannot, run as plain Python."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial, wraps

import numpy as np
import pytest

from metrics_core.errors import MetricNameError, MetricsError
from metrics_core.metrics import (
    RBP,
    REL,
    Metric,
    Number,
    Parameter,
    metric_names,
    nDCG,
    parse,
    parse_all,
    register_metric,
)
from metrics_core.policies import Policies

TREC_EVAL = Policies()


def rank_of_first(grades, ranks, rel, cutoff):
    for i in range(grades.size):
        if grades[i] >= rel and ranks[i] <= cutoff:
            return ranks[i]
    return 0


def first_hit(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(out.size):
        rank = rank_of_first(grades[:, q], ranks[:, q], rel, cutoff)
        out[q] = params[0] ** rank if rank else 0.0


def not_for_numba(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(out.size):
        found = {"relevant": [grade for grade in grades[:, q].tolist() if grade >= rel], "n": None}
        out[q] = len(found["relevant"])


def writes_to_its_input(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
    for q in range(out.size):
        grades[0, q] = 0.0


FirstHit = Metric(
    name="FirstHit",
    kernel=first_hit,
    title="decayed rank of the first hit",
    definition="decay to the power of the first relevant document's rank",
    parameters=(Parameter("decay", 0.5, "per rank", Number(above=0, below=1)), REL),
)


@pytest.fixture
def block(block_of):
    return block_of({"q1": {"a": 1, "b": 2}, "q2": {"c": 1}}, {"q1": "xab", "q2": "xyz"})


def test_works_unregistered(block):
    assert FirstHit.score(block, TREC_EVAL).tolist() == [0.5**2, 0]
    assert FirstHit(decay=0.1, rel=2).score(block, TREC_EVAL).tolist() == [0.1**3, 0]
    assert (FirstHit @ 1).score(block, TREC_EVAL).tolist() == [0, 0]
    assert str(FirstHit(decay=0.1, rel=2) @ 5) == "FirstHit(decay=0.1, rel=2)@5"
    assert parse_all([FirstHit @ 5, FirstHit @ 5]) == [FirstHit @ 5]
    assert FirstHit(rel=2).without_relevant(block, TREC_EVAL).tolist() == [False, True]


def test_name_and_kernel_are_enough(block):
    bare = Metric(name="Bare", kernel=lambda grades, ranks, n, ideal, rel, cutoff, params, out: out.fill(2.0))
    assert bare.title == "Bare"
    assert (bare(rel=2) @ 3).score(block, TREC_EVAL).tolist() == [2, 2]


def test_registered_name_parses(own_registry):
    with pytest.raises(MetricNameError, match="unknown metric 'FirstHit'"):
        parse("FirstHit@5")
    register_metric(FirstHit, aliases=["first_hit"])
    register_metric(FirstHit, aliases=["first_hit"])
    assert parse("firsthit(decay=.1)@5") == parse("first_hit(decay=0.1)@5") == FirstHit(decay=0.1) @ 5
    assert metric_names()[-1] == "FirstHit"
    with pytest.raises(MetricNameError, match="unknown metric 'frist_hit'; did you mean 'first_hit'"):
        parse("frist_hit")


@pytest.mark.parametrize(
    ("metric", "aliases", "message"),
    [
        (replace(FirstHit, name="NDCG"), (), "'NDCG' is the name of another metric; choose another"),
        (FirstHit, ("ndcg_cut",), "'ndcg_cut' is the name of another metric; choose another"),
        (FirstHit, ("hits",), "'hits' is the name of another metric; choose another"),
        (FirstHit, ("first hit",), r"an alias has no spaces and none of \(\)@{}=, got 'first hit'"),
        (FirstHit @ 5, (), "only a definition can be registered, got 'FirstHit@5' with values bound"),
    ],
)
def test_registration_refused_as_a_whole(own_registry, metric, aliases, message):
    before = metric_names()
    with pytest.raises(MetricNameError, match=message):
        register_metric(metric, aliases=aliases)
    assert metric_names() == before


def test_a_kernel_that_is_defined_again_takes_the_place(own_registry, block):
    """As where a notebook's cell runs twice."""

    def defined(value):
        def kernel(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
            for q in range(out.size):
                out[q] = value

        return Metric(name="Cell", kernel=kernel)

    for value in (1.0, 2.0):
        register_metric(defined(value), aliases=["cell_score"] if value == 1 else [])
        assert parse("cell_score").score(block, TREC_EVAL).tolist() == [value] * 2
        assert parse("Cell").score(block, TREC_EVAL).tolist() == [value] * 2
    with pytest.raises(MetricNameError, match="'Cell' is the name of another metric"):
        register_metric(replace(FirstHit, name="Cell"))


def test_a_kernel_that_is_no_function_is_registered_twice(own_registry):
    metric = Metric(name="Bound", kernel=partial(print, "bound"))
    register_metric(metric)
    register_metric(metric)
    assert parse("bound") == metric
    with pytest.raises(MetricNameError, match="'Bound' is the name of another metric"):
        register_metric(replace(metric, kernel=partial(print, "bound")))


def test_kernel_that_returns_something(block):
    def kernel(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):
        return n_retrieved

    for compiled in (False, True):
        with pytest.raises(MetricsError, match="must fill out and return nothing, but returns array"):
            Metric(name="Returns", kernel=kernel, compiled=compiled).score(block, TREC_EVAL)


def test_another_metric_of_a_registered_name_is_refused(own_registry):
    register_metric(FirstHit)
    with pytest.raises(MetricNameError, match="'FirstHit' is the name of another metric"):
        register_metric(replace(FirstHit, kernel=not_for_numba))


def test_registration_from_many_threads(own_registry):
    several = [replace(FirstHit, name=f"FirstHit{i}") for i in range(50)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(register_metric, several))
    assert set(metric_names()) >= {metric.name for metric in several}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"name": "first hit"},
            "name must be letters, digits and underscores beginning with a letter, got 'first hit'",
        ),
        ({"aggregate": "median"}, "aggregate of FirstHit must be one of 'mean', 'sum', 'geometric mean', got 'median'"),
        ({"after": "k"}, "after of FirstHit must be one of 'none', 'optional cutoff', 'cutoff', 'recall', got 'k'"),
    ],
)
def test_definitions_refused(fields, message):
    with pytest.raises(MetricNameError, match=message):
        replace(FirstHit, **fields)


def before_ranks(grades, n_retrieved, ideal, rel, cutoff, params, out):
    """What kernels took once."""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"kernel": before_ranks},
            "the kernel 'before_ranks' of FirstHit must take 8 arguments: grades, ranks, n_retrieved, ideal, .*, out$",
        ),
        ({"expected": first_hit}, "the kernel 'first_hit' of FirstHit must take 9 arguments: .*, out, tie_ends"),
    ],
)
def test_kernels_of_other_arguments_are_refused(fields, message):
    with pytest.raises(MetricsError, match=message):
        replace(FirstHit, **fields)


@pytest.mark.parametrize("kernel", [lambda *arguments: None, lambda a, b, c, d, e, f, g, h, i=0: None])
def test_kernels_that_can_take_the_arguments(kernel, block):
    assert Metric(name="Zero", kernel=kernel, compiled=False).score(block, TREC_EVAL).tolist() == [0, 0]


def test_kernel_that_numba_cannot_compile(block):
    metric = Metric(name="Dicts", kernel=not_for_numba)
    with pytest.raises(
        MetricsError, match="numba cannot compile the kernel 'not_for_numba' of Dicts; write it as plain"
    ):
        metric.score(block, TREC_EVAL)
    assert replace(metric, compiled=False).score(block, TREC_EVAL).tolist() == [2, 0]


def test_kernel_without_a_module(block):
    """As those are that `exec` defines among no names."""
    names = {}
    exec("def kernel(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out):\n    out[:] = n_retrieved", names)
    assert Metric(name="Length", kernel=names["kernel"]).score(block, TREC_EVAL).tolist() == block.n_retrieved.tolist()


def test_kernel_that_wraps_one_of_ours_is_compiled_at_once(block):
    @wraps(RBP.kernel)
    def kernel(*arguments):
        return RBP.kernel(*arguments)

    with pytest.raises(MetricsError, match="numba cannot compile the kernel"):
        Metric(name="Wrapped", kernel=kernel).score(block, TREC_EVAL)


def test_kernel_cannot_write_to_a_read_only_block(block):
    block.grades.flags.writeable = False
    with pytest.raises(MetricsError, match="numba cannot compile the kernel"):
        Metric(name="Writes", kernel=writes_to_its_input).score(block, TREC_EVAL)


def test_missing_values_are_named_before_anything_runs(block):
    with pytest.raises(MetricNameError, match=r"'RBP' needs p \(persistence\); did you mean 'RBP\(p=0.8\)'"):
        RBP.score(block, TREC_EVAL)


@pytest.mark.parametrize(
    "metric", [FirstHit(decay=0.25) @ 3, nDCG(dcg="exp-log2", rel=1) @ 10, parse("IPrec@0.25")], ids=str
)
def test_pickles(metric, block):
    before = metric.score(block, TREC_EVAL)
    copy = pickle.loads(pickle.dumps(metric))
    assert copy == metric
    assert copy.same_definition(metric)
    assert np.array_equal(copy.score(block, TREC_EVAL), before)


def test_scores_from_many_threads_are_the_same(block):
    metrics = parse_all(["nDCG@10", "AP", "RR", "P@2", "Compat"]) * 20
    with ThreadPoolExecutor(8) as pool:
        scores = list(pool.map(lambda metric: metric.score(block, TREC_EVAL).tolist(), metrics))
    assert scores == scores[:5] * 20


def test_import_needs_no_numba():
    code = "import sys, metrics_core.metrics; print('numba' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
