"""Scores do not depend on how documents are matched: alone or beside others, with few relevant ones or with many."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from metrics_core import evaluators
from metrics_core.documents import Document
from metrics_core.errors import InputError
from metrics_core.evaluation import evaluate, pack
from metrics_core.policies import Policies
from tests import strategies
from tests.evaluators.inputs import Lists, every_evaluator, many

METRICS = ("Success", "SetR", "RR", "AP", "nDCG")
FIELDS = st.sampled_from((*strategies.FIELDS, "meta.a"))
POLICIES = {"match": Policies("haystack"), "ignore": Policies("haystack", empty_key="ignore")}

lists_of_documents = strategies.document_lists(SimpleNamespace)
lists_of_many = st.builds(
    lambda seed, shape, unhashable: many(shape, seed, unhashable=unhashable),
    st.integers(0, 9),
    st.sampled_from(("few relevant", "many relevant")),
    st.booleans(),
)


def outcome(lists: Lists, field: str, policies: Policies, *more_metrics: str) -> Any:
    """The scores of METRICS, or the message of the error."""
    try:
        scores = evaluate(*lists, [*METRICS, *more_metrics], policies=policies, document_comparison_field=field)
    except InputError as error:
        return str(error)
    return scores.values[:, : len(METRICS)].tolist()


def beside(lists: Lists, n_judged: int, n_retrieved: int) -> Lists:
    """The questions and one more, of so many documents that none of them is relevant or found."""
    other = SimpleNamespace(content=None, id=None, meta={}, score=1.0)
    return [*lists[0], [other] * n_judged], [*lists[1], [other] * n_retrieved]


@pytest.mark.parametrize("empty_key", POLICIES)
@given(lists=lists_of_documents, field=FIELDS)
def test_metrics_that_read_more_change_no_other(lists: Lists, field: str, empty_key: str) -> None:
    policies = POLICIES[empty_key]
    assert outcome(lists, field, policies) == outcome(lists, field, policies, "Unj@5", "Judged")


@settings(max_examples=5)
@given(lists=lists_of_many, field=FIELDS)
def test_metrics_that_read_more_change_no_other_on_many_documents(lists: Lists, field: str) -> None:
    policies = POLICIES["match"]
    assert outcome(lists, field, policies) == outcome(lists, field, policies, "Unj@5", "Judged")


@pytest.mark.parametrize("duplicate_judgements", ["last", "error"])
@given(lists=lists_of_documents, field=FIELDS)
def test_metrics_that_read_more_change_no_policy(lists: Lists, field: str, duplicate_judgements: Any) -> None:
    policies = Policies("haystack", duplicate_judgements=duplicate_judgements)
    assert outcome(lists, field, policies) == outcome(lists, field, policies, "Unj@5")


@given(lists=lists_of_documents, field=FIELDS)
def test_evaluate_equals_pack(lists: Lists, field: str) -> None:
    batch = pack(*lists, document_comparison_field=field)
    assert batch.evaluate(METRICS).values.tolist() == outcome(lists, field, POLICIES["match"])


@every_evaluator
@settings(max_examples=20)
@given(lists=lists_of_documents, field=FIELDS)
def test_a_question_scores_alone_what_it_scores_beside_others(
    name: str, parameters: dict[str, Any], lists: Lists, field: str
) -> None:
    evaluator = getattr(evaluators, name)(**parameters, document_comparison_field=field)
    alone = [evaluator.run([truths], [retrieved])["score"] for truths, retrieved in zip(*lists, strict=True)]
    assert evaluator.run(*lists)["individual_scores"] == alone
    reverse = evaluator.run(lists[0][::-1], lists[1][::-1])
    assert reverse["individual_scores"] == alone[::-1]


@pytest.mark.parametrize(("n_judged", "n_retrieved"), [(300, 300), (2**17, 1), (1, 600), (1, 2**18)])
@settings(max_examples=10)
@given(lists=lists_of_documents, field=FIELDS)
def test_a_question_scores_alone_what_it_scores_beside_a_large_one(
    lists: Lists, field: str, n_judged: int, n_retrieved: int
) -> None:
    scores = outcome(lists, field, POLICIES["match"])
    assert outcome(beside(lists, n_judged, n_retrieved), field, POLICIES["match"]) == [*scores, [0] * len(METRICS)]


@settings(max_examples=3)
@given(lists=lists_of_many, field=FIELDS)
def test_many_questions_score_alone_what_they_score_together(lists: Lists, field: str) -> None:
    alone = [outcome(([truths], [found]), field, POLICIES["match"])[0] for truths, found in zip(*lists, strict=True)]
    assert outcome(lists, field, POLICIES["match"]) == alone


@every_evaluator
@given(lists=lists_of_documents, field=FIELDS)
def test_evaluators_give_what_evaluate_gives(name: str, parameters: dict[str, Any], lists: Lists, field: str) -> None:
    metric, empty_key = {
        "single_hit": ("Success", "ignore"),
        "multi_hit": ("SetR", "ignore"),
        "DocumentMRREvaluator": ("RR", "match"),
        "DocumentMAPEvaluator": ("AP", "match"),
        "DocumentNDCGEvaluator": ("nDCG", "match"),
    }[parameters.get("mode", name)]
    evaluator = getattr(evaluators, name)(**parameters, document_comparison_field=field)
    scores = evaluate(*lists, metric, policies=POLICIES[empty_key], document_comparison_field=field)
    assert evaluator.run(*lists)["individual_scores"] == scores[metric].tolist()


@every_evaluator
@given(lists=lists_of_documents, field=FIELDS)
def test_scores_are_from_zero_to_one_and_more_documents_at_the_end_lower_none(
    name: str, parameters: dict[str, Any], lists: Lists, field: str
) -> None:
    evaluator = getattr(evaluators, name)(**parameters, document_comparison_field=field)
    scores = evaluator.run(*lists)["individual_scores"]
    longer = evaluator.run(lists[0], [found + truths for truths, found in zip(*lists, strict=True)])
    pairs = zip(scores, longer["individual_scores"], strict=True)
    assert all(0 <= before <= after <= 1 + 1e-12 for before, after in pairs)


@every_evaluator
@given(judged=strategies.judgements(st.sampled_from(("", *strategies.TEXT_IDS)), min_size=1))
def test_the_ideal_ranking_scores_one(name: str, parameters: dict[str, Any], judged: dict[str, float]) -> None:
    ideal = [Document(content=content, score=judged[content]) for content in sorted(judged, key=lambda c: -judged[c])]
    without = (
        max(judged.values()) <= 0 if name == "DocumentNDCGEvaluator" else "mode" in parameters and set(judged) == {""}
    )
    assert getattr(evaluators, name)(**parameters).run([ideal[::-1]], [ideal])["score"] == (0 if without else 1)


@given(lists=lists_of_documents, field=FIELDS, empty_key=st.sampled_from([*POLICIES]))
def test_a_metric_alone_equals_it_beside_others(lists: Lists, field: str, empty_key: str) -> None:
    together = outcome(lists, field, POLICIES[empty_key])
    if isinstance(together, str):
        return  # other metrics may read what is at fault
    for place, metric in enumerate(METRICS):
        alone = evaluate(*lists, metric, policies=POLICIES[empty_key], document_comparison_field=field)
        assert alone.values[:, 0].tolist() == [row[place] for row in together]


def test_reciprocal_rank_reads_no_further_than_the_first_relevant_document() -> None:
    class Read:
        """Its values, each of which may be taken once."""

        meta = id = score = None

        def __init__(self, content: str) -> None:
            self._contents = [content]

        @property
        def content(self) -> str:
            return self._contents.pop()

        @property
        def was_read(self) -> bool:
            return not self._contents

    retrieved = [Read("x"), Read("b"), Read("a")]
    result = evaluators.DocumentMRREvaluator().run([[Document(content="a"), Document(content="b")]], [retrieved])
    assert result["individual_scores"] == [1 / 2]
    assert [document.was_read for document in retrieved] == [True, True, False]
