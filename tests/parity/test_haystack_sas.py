"""SASEvaluator against that of haystack-ai: the same answers through the same model."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from metrics_core import SASEvaluator
from tests.tiny_models import WORDS

WITHIN = {"rel": 0, "abs": 2e-6}
ANSWERS = (
    ("A construction budget of US $2.3 billion", "US $2.3 billion"),
    ("Paris", "the capital of France"),
    ("Paris", "Paris"),
    ("nine", "none"),
    ("", "Rome"),
    ("  ", ""),
    ("naïve façade 東京", "Tokyo's naive facade"),
    ("The tower was completed in 1889. " * 30, "It was finished in 1889."),
)


@pytest.fixture(scope="module")
def theirs(needs_sas):
    module = "haystack.components.evaluators.sas_evaluator"
    return pytest.importorskip(module, reason="haystack-ai is not installed").SASEvaluator


def both(theirs, model, golds, predicted, **settings):
    from haystack.utils import ComponentDevice

    oracle = theirs(model, device=ComponentDevice.from_str("cpu"))
    oracle.warm_up()
    return (
        SASEvaluator(model, device="cpu", **settings).run(golds, predicted),
        oracle.run(ground_truth_answers=golds, predicted_answers=predicted),
    )


def assert_equal(ours, expected):
    assert ours["individual_scores"] == pytest.approx(expected["individual_scores"], **WITHIN)
    assert ours["score"] == pytest.approx(expected["score"], **WITHIN)
    assert ours.keys() == expected.keys()


def made_up(count):
    rng = np.random.default_rng(0)
    return [[" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(count)] for _ in range(2)]


def test_a_real_bi_encoder(theirs, minilm):
    golds, predicted = map(list, zip(*ANSWERS, strict=True))
    assert_equal(*both(theirs, minilm, golds, predicted, on_truncation="ignore"))


def test_a_bi_encoder_of_many_answers(theirs, tiny):
    assert_equal(*both(theirs, tiny.bi, *made_up(300)))


def test_a_cross_encoder(theirs, tiny):
    """Its scores are sigmoids, none above 1: the oracle's rule for the whole batch does not fire."""
    ours, expected = both(theirs, tiny.cross, *made_up(300))
    assert max(expected["individual_scores"]) <= 1
    assert np.ptp(expected["individual_scores"]) > 0.5
    assert_equal(ours, expected)


def test_no_answers(theirs, tiny):
    ours, expected = both(theirs, tiny.bi, [], [])
    assert ours == expected == {"score": 0.0, "individual_scores": [0.0]}


def test_what_both_refuse(theirs, tiny):
    for evaluator in (SASEvaluator(tiny.bi), theirs(tiny.bi)):
        for golds, predicted in ((["a", "b"], ["a"]), (["a", "b"], ["a", None])):
            with pytest.raises(ValueError):  # noqa: PT011  # the words are each one's own
                evaluator.run(golds, predicted)


def test_secrets_and_devices_of_haystack(theirs, tiny, monkeypatch):
    from haystack.utils import ComponentDevice, Secret

    monkeypatch.setenv("MINE", "token")
    secret = Secret.from_env_var("MINE")
    evaluator = SASEvaluator(tiny.bi, 16, ComponentDevice.from_str("cpu"), secret)
    assert evaluator.run(["paris"], ["paris"])["score"] == 1.0
    saved = evaluator.to_dict()["init_parameters"]
    assert (saved["token"], saved["device"]) == (secret.to_dict(), "cpu")
    assert SASEvaluator.from_dict(evaluator.to_dict()).to_dict() == evaluator.to_dict()


@pytest.mark.parametrize("name", ["SQuAD_SAS.csv", "NQ-open_SAS.csv"])
def test_correlation_with_human_labels(theirs, minilm, shared, name):
    stats = pytest.importorskip("scipy.stats", reason="needs scipy")
    with (shared / "data" / "qa" / "sas" / name).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))[::12]  # all of them: python -m benchmarks.sas_labels
    golds, predicted = [row["answer1"] for row in rows], [row["answer2"] for row in rows]
    labels = [float(row["label"]) for row in rows]
    ours, expected = both(theirs, minilm, golds, predicted)
    assert_equal(ours, expected)
    for statistic in (stats.spearmanr, stats.kendalltau):
        found, known = (statistic(each["individual_scores"], labels).statistic for each in (ours, expected))
        assert found == pytest.approx(known, abs=5e-4)
