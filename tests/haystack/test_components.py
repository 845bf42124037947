"""Each component beside Haystack's of the same name: constructor, sockets, dict form, attributes."""

from __future__ import annotations

import json
from importlib import import_module
from inspect import Parameter, signature

import pytest

import metrics_core.evaluators
from metrics_core.errors import InputError
from tests.haystack.components import COMPONENTS, LLM

every_component = pytest.mark.parametrize(
    ("module", "name", "arguments"), COMPONENTS, ids=[row[1] for row in COMPONENTS]
)
required = {"LLMEvaluator": LLM}


def classes(module, name):
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


@pytest.mark.parametrize(("module", "name", "arguments"), COMPONENTS[:-1])  # LLMEvaluator: it has no defaults
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
