"""The evaluators against those of haystack-ai: the same inputs through both."""

from __future__ import annotations

import os
from inspect import signature
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from metrics_core import evaluators
from metrics_core.documents import Document
from tests import strategies
from tests.evaluators.inputs import EVALUATORS, SHAPES, Lists, every_evaluator, made, many

if TYPE_CHECKING:
    from collections.abc import Iterable

KINDS = ("ours", "Haystack's", "a duck type")
FIELDS = st.sampled_from((*strategies.FIELDS, "meta.key.b", "meta.absent"))


@pytest.fixture(scope="module")
def haystack() -> SimpleNamespace:
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported
    theirs = pytest.importorskip("haystack.components.evaluators", reason="haystack-ai is not installed")
    return SimpleNamespace(evaluators=theirs, Document=pytest.importorskip("haystack").Document)


def of_kind(kind: str, haystack: SimpleNamespace, lists: Lists) -> tuple[Lists, Lists]:
    """The same documents for Haystack and for us: Haystack's, and those of the kind; or the duck types themselves."""
    if kind == "a duck type":
        ducks = made(SimpleNamespace, lists)
        return ducks, ducks
    theirs = made(haystack.Document, lists)
    return theirs, theirs if kind == "Haystack's" else made(Document, lists)


def bits(scores: Iterable[float]) -> list[str]:
    return [float(score).hex() for score in scores]


def assert_equal(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert bits(ours["individual_scores"]) == bits(theirs["individual_scores"])
    assert ours["score"] == pytest.approx(theirs["score"], rel=0, abs=1e-12)
    assert ours.keys() == theirs.keys()


def both(name: str, parameters: dict[str, Any], haystack: SimpleNamespace) -> tuple[Any, Any]:
    return getattr(evaluators, name)(**parameters), getattr(haystack.evaluators, name)(**parameters)


@every_evaluator
@pytest.mark.parametrize("kind", KINDS)
@given(lists=strategies.document_lists(unhashable=False), field=FIELDS)
def test_equals_haystack(
    haystack: SimpleNamespace, kind: str, name: str, parameters: dict[str, Any], lists: Lists, field: str
) -> None:
    theirs, ours = of_kind(kind, haystack, lists)
    evaluator, oracle = both(name, parameters | {"document_comparison_field": field}, haystack)
    assert_equal(evaluator.run(*ours), oracle.run(*theirs))


@pytest.mark.parametrize("name", ["DocumentMRREvaluator", "DocumentMAPEvaluator"])
@given(lists=strategies.document_lists(max_size=12), field=FIELDS | st.just("meta.a"))
def test_mrr_and_map_equal_haystack_on_unhashable_values(
    haystack: SimpleNamespace, name: str, lists: Lists, field: str
) -> None:
    theirs, ours = of_kind("ours", haystack, lists)
    evaluator, oracle = both(name, {"document_comparison_field": field}, haystack)
    assert_equal(evaluator.run(*ours), oracle.run(*theirs))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("field", strategies.FIELDS)
@every_evaluator
def test_equals_haystack_on_many_documents(
    haystack: SimpleNamespace, shape: str, field: str, name: str, parameters: dict[str, Any]
) -> None:
    documents = many(shape)
    evaluator, oracle = both(name, parameters | {"document_comparison_field": field}, haystack)
    assert_equal(evaluator.run(*documents), oracle.run(*documents))


@every_evaluator
def test_equals_haystack_on_a_ranking_longer_than_a_block(
    haystack: SimpleNamespace, name: str, parameters: dict[str, Any]
) -> None:
    nothing, a, b = (SimpleNamespace(content=content, score=None) for content in (None, "a", "b"))
    long = [nothing] * 2**18 + [a, b, a]
    documents = [[a], [a, b, a], [b]], [[b, a], long, [a]]
    evaluator, oracle = both(name, parameters, haystack)
    assert_equal(evaluator.run(*documents), oracle.run(*documents))


@given(lists=strategies.document_lists(unhashable=False, max_questions=1), field=FIELDS)
def test_dcg_and_idcg_equal_haystack(haystack: SimpleNamespace, lists: Lists, field: str) -> None:
    (their_truths,), (their_retrieved,) = made(haystack.Document, lists)
    (truths,), (retrieved,) = made(Document, lists)
    evaluator, oracle = both("DocumentNDCGEvaluator", {"document_comparison_field": field}, haystack)
    ours = evaluator.calculate_dcg(truths, retrieved), evaluator.calculate_idcg(truths)
    assert bits(ours) == bits(
        [oracle.calculate_dcg(their_truths, their_retrieved), oracle.calculate_idcg(their_truths)]
    )


@pytest.mark.parametrize(
    "lists",
    [
        ([], []),
        ([[{"content": "a"}]], []),
        ([[{"content": "a"}]], [[], []]),
        ([[{"content": "a", "score": 1}, {"content": "b"}]], [[]]),
        ([[]], [[]]),
        ([[{"content": "a", "score": 0}], [{"content": "b"}]], [[], []]),
    ],
)
def test_ndcg_refuses_what_haystack_refuses(haystack: SimpleNamespace, lists: Lists) -> None:
    evaluator, oracle = both("DocumentNDCGEvaluator", {}, haystack)

    def refuses(check: Any, lists: Lists) -> bool:
        try:
            check(*lists)
        except ValueError:
            return True
        return False

    refused = refuses(oracle.run, made(haystack.Document, lists))
    assert refuses(evaluator.run, made(Document, lists)) == refused
    assert refuses(evaluator.validate_inputs, made(Document, lists)) == refused


@pytest.mark.parametrize(
    ("name", "parameters"), [pytest.param("AnswerExactMatchEvaluator", {}, id="exact match"), *EVALUATORS]
)
def test_constructor_run_and_dict_have_haystacks_names(
    haystack: SimpleNamespace, name: str, parameters: dict[str, Any]
) -> None:
    ours, theirs = both(name, parameters, haystack)
    assert list(signature(type(ours).run).parameters) == list(signature(type(theirs).run).parameters)
    if name != "AnswerExactMatchEvaluator":  # theirs has no to_dict, ours a parameter of its own
        assert list(signature(type(ours)).parameters) == list(signature(type(theirs).__init__).parameters)[1:]
        assert ours.to_dict()["init_parameters"] == theirs.to_dict()["init_parameters"]
        assert ours.to_dict().keys() == theirs.to_dict().keys()


def test_recall_modes_are_haystacks(haystack: SimpleNamespace) -> None:
    from haystack.components.evaluators.document_recall import RecallMode

    assert {mode.name: mode.value for mode in evaluators.RecallMode} == {mode.name: mode.value for mode in RecallMode}
    assert list(map(str, evaluators.RecallMode)) == list(map(str, RecallMode))


ANSWERS = st.text("ab A.", max_size=3) | st.sampled_from(("Berlin", "berlin", "é", "e\u0301", "\0", "\ud800"))


@given(pairs=st.lists(st.tuples(ANSWERS, ANSWERS), min_size=1))
def test_exact_match_equals_haystack(haystack: SimpleNamespace, pairs: list[tuple[str, str]]) -> None:
    truths, predicted = map(list, zip(*pairs, strict=True))
    ours, theirs = both("AnswerExactMatchEvaluator", {}, haystack)
    assert ours.run(truths, predicted) == theirs.run(truths, predicted)


@given(
    content=st.none() | st.text(),
    meta=st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.tuples(st.integers()),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        ),
        max_size=4,
    ),
)
def test_document_id_equals_haystacks(haystack: SimpleNamespace, content: str | None, meta: dict[str, Any]) -> None:
    assert Document(content=content, meta=meta).id == haystack.Document(content=content, meta=meta).id


@pytest.mark.parametrize("fields", [{}, {"content": ""}, {"meta": {}}, {"score": 0.5}, {"id": "x", "content": "a"}])
def test_document_id_equals_haystacks_at_the_edges(haystack: SimpleNamespace, fields: dict[str, Any]) -> None:
    assert Document(**fields).id == haystack.Document(**fields).id
