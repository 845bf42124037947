"""DocumentMetricsEvaluator: many metrics in one pass, the same numbers as each alone."""

from __future__ import annotations

import json
from math import isnan, log2

import pytest
from hypothesis import given

from metrics_core import (
    Document,
    DocumentMetricsEvaluator,
    InputError,
    MetricNameError,
    Policies,
    PolicyError,
    evaluate,
    evaluators,
)
from tests import strategies
from tests.evaluators.inputs import made

METRICS = {
    "Success": ("DocumentRecallEvaluator", {"mode": "single_hit"}),
    "SetR": ("DocumentRecallEvaluator", {"mode": "multi_hit"}),
    "RR": ("DocumentMRREvaluator", {}),
    "AP": ("DocumentMAPEvaluator", {}),
    "nDCG": ("DocumentNDCGEvaluator", {}),
}


def documents(*contents):
    return [Document(content=content) for content in contents]


@given(lists=strategies.document_lists())
def test_equals_the_evaluators_of_one_metric(lists):
    truths, retrieved = made(Document, lists)
    found = {policy: DocumentMetricsEvaluator(list(METRICS), policy).run(truths, retrieved) for policy in POLICIES}
    for metric, (name, arguments) in METRICS.items():
        alone = getattr(evaluators, name)(**arguments).run(truths, retrieved)
        together = found[POLICIES[1] if "Recall" in name else POLICIES[0]]
        assert together["individual_scores"][metric] == alone["individual_scores"]
        assert together["scores"][metric] == alone["score"]


POLICIES = (None, Policies("haystack", empty_key="ignore"))  # recall leaves "" out


def test_cutoffs_and_names():
    truths, found = [documents("a", "b")], [documents("x", "a", "b")]
    result = DocumentMetricsEvaluator(["ndcg@2", "R@1", "R@3", "mrr"]).run(truths, found)
    assert result == {
        "scores": {"nDCG@2": pytest.approx((1 / log2(3)) / (1 + 1 / log2(3))), "R@1": 0, "R@3": 1, "RR": 1 / 2},
        "individual_scores": {name: [score] for name, score in result["scores"].items()},
    }
    assert json.loads(json.dumps(result)) == result


def test_policies_are_applied():
    truths, found = [documents("a"), []], [documents("a"), documents("a")]
    result = DocumentMetricsEvaluator("AP", Policies("haystack", no_relevant="skip")).run(truths, found)
    assert result["scores"] == {"AP": 1}
    assert isnan(result["individual_scores"]["AP"][1])


def test_sums_are_sums():
    found = [documents("a", "b"), documents("c")]
    truths = [documents("a"), documents("a")]
    expected = evaluate(truths, found, "NumRet").aggregate()["NumRet"].value
    assert DocumentMetricsEvaluator("NumRet").run(truths, found)["scores"] == {"NumRet": expected} == {"NumRet": 3}


@pytest.mark.parametrize("policies", [None, "trec_eval", Policies("haystack", empty_key="ignore", duplicates="error")])
def test_dict_form(policies):
    evaluator = DocumentMetricsEvaluator(["nDCG@10", "P(rel=2)@5"], policies, "meta.a")
    data = json.loads(json.dumps(evaluator.to_dict()))
    assert data["init_parameters"]["metrics"] == ["nDCG@10", "P(rel=2)@5"]
    restored = DocumentMetricsEvaluator.from_dict(data)
    assert restored == evaluator
    assert restored.policies == evaluator.policies
    assert eval(repr(evaluator), vars(evaluators)) == evaluator
    assert hash(restored) == hash(evaluator)


def test_dict_form_of_the_defaults():
    assert DocumentMetricsEvaluator("AP").to_dict() == {
        "type": "metrics_core.evaluators.document_metrics.DocumentMetricsEvaluator",
        "init_parameters": {
            "metrics": ["AP"],
            "policies": {"profile": "haystack"},
            "document_comparison_field": "content",
        },
    }
    assert DocumentMetricsEvaluator("AP") != DocumentMetricsEvaluator("AP", "trec_eval")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"metrics": []}, MetricNameError, "metrics must not be empty"),
        ({"metrics": "ndgc"}, MetricNameError, "did you mean 'nDCG'"),
        ({"metrics": "AP", "policies": "x"}, PolicyError, "profile must be one of"),
        ({"metrics": "AP", "policies": {"x": 1}}, PolicyError, "no policy: .*'x'"),
        ({"metrics": "AP", "policies": Policies(ties="expected")}, PolicyError, "rankings without scores"),
        ({"metrics": "AP", "document_comparison_field": "x"}, InputError, "document_comparison_field must be"),
    ],
)
def test_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        DocumentMetricsEvaluator(**arguments)


@pytest.mark.parametrize("lists", [([], []), ([[]], [[], []]), ("ab", [[]])])
def test_questions_that_do_not_pair_up(lists):
    with pytest.raises(InputError, match="ground_truth_documents"):
        DocumentMetricsEvaluator("AP").run(*lists)
