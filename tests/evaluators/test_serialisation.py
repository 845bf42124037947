"""Evaluators as values: to_dict, from_dict, equality, repr, pickling."""

from __future__ import annotations

import json
import pickle
from copy import deepcopy
from importlib import import_module
from typing import Any

import pytest

import metrics_core
from metrics_core import evaluators
from metrics_core.errors import InputError, MetricsError

DEFAULTS: dict[str, dict[str, Any]] = {
    "AnswerExactMatchEvaluator": {"normalize": None},
    "AnswerF1Evaluator": {"normalize": "squad"},
    "DocumentMAPEvaluator": {"document_comparison_field": "content"},
    "DocumentMRREvaluator": {"document_comparison_field": "content"},
    "DocumentNDCGEvaluator": {"document_comparison_field": "content"},
    "DocumentRecallEvaluator": {"mode": "single_hit", "document_comparison_field": "content"},
    "SASEvaluator": {
        "model": "sentence-transformers/paraphrase-multilingual-mpnet-base-v2",
        "batch_size": 32,
        "device": None,
        "token": {"type": "env_var", "env_vars": ["HF_API_TOKEN", "HF_TOKEN"], "strict": False},
        "kind": "auto",
        "dtype": "float32",
        "token_budget": None,
        "label": None,
        "prompt": None,
        "truncate_dim": None,
        "on_truncation": "warn",
        "empty": "encode",
        "fast_fp32": False,
        "revision": None,
        "trust_remote_code": False,
        "local_files_only": False,
        "progress_bar": False,
    },
}
OTHERS: dict[str, list[dict[str, Any]]] = {
    "AnswerExactMatchEvaluator": [{"normalize": "squad"}],
    "AnswerF1Evaluator": [{"normalize": None}],
    "DocumentMAPEvaluator": [{"document_comparison_field": "id"}],
    "DocumentMRREvaluator": [{"document_comparison_field": "meta.a.b"}],
    "DocumentNDCGEvaluator": [{"document_comparison_field": "meta.key"}],
    "DocumentRecallEvaluator": [
        {"mode": "multi_hit", "document_comparison_field": "content"},
        {"mode": "single_hit", "document_comparison_field": "id"},
    ],
    "SASEvaluator": [
        DEFAULTS["SASEvaluator"]
        | {"model": "a/b", "device": ["cpu", "cuda:1"], "prompt": ["query: ", "answer: "], "token": None, "label": 2}
    ],
}
MODULES = {
    "AnswerExactMatchEvaluator": "answer_exact_match",
    "AnswerF1Evaluator": "answer_f1",
    "DocumentMAPEvaluator": "document_map",
    "DocumentMRREvaluator": "document_mrr",
    "DocumentNDCGEvaluator": "document_ndcg",
    "DocumentRecallEvaluator": "document_recall",
    "SASEvaluator": "sas",
}
every_name = pytest.mark.parametrize("name", DEFAULTS)
every_evaluator = pytest.mark.parametrize(
    ("name", "parameters"),
    [(name, parameters) for name in DEFAULTS for parameters in (DEFAULTS[name], *OTHERS[name])],
)


def type_name(name: str) -> str:
    return f"metrics_core.evaluators.{MODULES[name]}.{name}"


@every_evaluator
def test_to_dict(name: str, parameters: dict[str, Any]) -> None:
    evaluator = getattr(evaluators, name)(**parameters)
    assert evaluator.to_dict() == {"type": type_name(name), "init_parameters": parameters}


@every_name
def test_type_is_where_the_class_lives(name: str) -> None:
    module, _, attribute = type_name(name).rpartition(".")
    assert getattr(import_module(module), attribute) is getattr(evaluators, name) is getattr(metrics_core, name)


@every_evaluator
def test_from_dict_restores_an_equal_evaluator(name: str, parameters: dict[str, Any]) -> None:
    evaluator = getattr(evaluators, name)(**parameters)
    restored = type(evaluator).from_dict(json.loads(json.dumps(evaluator.to_dict())))
    assert type(restored) is type(evaluator)
    assert restored == evaluator
    assert restored.to_dict() == evaluator.to_dict()
    assert hash(restored) == hash(evaluator)


@every_name
@pytest.mark.parametrize("parameters", [{}, {"init_parameters": {}}])
def test_missing_parameters_take_their_defaults(name: str, parameters: dict[str, Any]) -> None:
    evaluator = getattr(evaluators, name)
    assert evaluator.from_dict({"type": type_name(name)} | parameters) == evaluator()
    assert evaluator().to_dict()["init_parameters"] == DEFAULTS[name]


def test_one_parameter_may_be_missing() -> None:
    recall = evaluators.DocumentRecallEvaluator
    kind = {"type": type_name("DocumentRecallEvaluator")}
    assert recall.from_dict(kind | {"init_parameters": {"mode": "multi_hit"}}) == recall("multi_hit")
    assert recall.from_dict(kind | {"init_parameters": {"document_comparison_field": "id"}}) == recall(
        document_comparison_field="id"
    )


@every_name
def test_unknown_parameter(name: str) -> None:
    data = {"type": type_name(name), "init_parameters": {**DEFAULTS[name], "threshold": 1}}
    with pytest.raises(InputError) as caught:
        getattr(evaluators, name).from_dict(data)
    assert str(caught.value) == f"{name} has no parameter 'threshold'"


@every_name
@pytest.mark.parametrize("kind", [{}, {"type": "haystack.Pipeline"}, {"type": "DocumentMAPEvaluator"}])
def test_dict_of_something_else(name: str, kind: dict[str, str]) -> None:
    with pytest.raises(InputError) as caught:
        getattr(evaluators, name).from_dict({**kind, "init_parameters": {}})
    assert str(caught.value) == f"data describes {kind.get('type')!r}, not {type_name(name)!r}"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("DocumentRecallEvaluator", {"mode": "x"}),
        ("DocumentMAPEvaluator", {"document_comparison_field": "x"}),
        ("AnswerF1Evaluator", {"normalize": "x"}),
    ],
)
def test_from_dict_refuses_values_as_the_constructor_does(name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(MetricsError, match=f"{next(iter(parameters))} must be .*, got 'x'"):
        getattr(evaluators, name).from_dict({"type": type_name(name), "init_parameters": parameters})


@every_evaluator
def test_dicts_are_not_shared(name: str, parameters: dict[str, Any]) -> None:
    evaluator = getattr(evaluators, name)(**parameters)
    data = evaluator.to_dict()
    before = deepcopy(data)
    type(evaluator).from_dict(data)
    assert data == before
    data["init_parameters"].clear()
    assert evaluator.to_dict() == before


def test_equality() -> None:
    every = [getattr(evaluators, name)(**p) for name in DEFAULTS for p in (DEFAULTS[name], *OTHERS[name])]
    for place, evaluator in enumerate(every):
        assert [evaluator == other for other in every] == [place == other for other in range(len(every))]
        assert evaluator != evaluator.to_dict()
    assert len(set(every + deepcopy(every))) == len(every)


@every_evaluator
def test_repr_is_the_call_that_makes_it(name: str, parameters: dict[str, Any]) -> None:
    evaluator = getattr(evaluators, name)(**parameters)
    assert eval(repr(evaluator), vars(evaluators)) == evaluator


@every_evaluator
def test_pickling(name: str, parameters: dict[str, Any]) -> None:
    evaluator = getattr(evaluators, name)(**parameters)
    assert pickle.loads(pickle.dumps(evaluator)) == evaluator
    assert deepcopy(evaluator) == evaluator
