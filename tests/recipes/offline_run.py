"""Evaluates a question-answering pipeline from end to end, without a network: retrieve, answer, judge, report.

Needs `pip install 'metrics-core[haystack]'`. In place of the two scripted generators stands what you use: Haystack's
OpenAIChatGenerator, or any other.

It prints:

    EvaluationRunResult 'bm25': 3 rows of question, contexts, answer, predicted
      nDCG@10       1.0000
      RR            1.0000
      R@1           1.0000
      exact_match   0.6667
      faithfulness  0.6667
    What is the capital of France?: RR 1.0, exact match 1
    Which river flows through Vienna?: RR 1.0, exact match 1
    What is the capital of Portugal?: RR 1.0, exact match 0
"""

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import MockChatGenerator
from haystack.components.retrievers import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore

from llm_judges import ScriptedChatGenerator
from metrics_core import EvaluationRunResult
from metrics_core.haystack import AnswerExactMatchEvaluator, DocumentMetricsEvaluator, FaithfulnessEvaluator

TEXTS = [
    "Paris is the capital of France.",
    "Vienna is the capital of Austria.",
    "The Danube flows through Vienna and Budapest.",
    "Lisbon is the capital of Portugal.",
]
QUESTIONS = ["What is the capital of France?", "Which river flows through Vienna?", "What is the capital of Portugal?"]
ANSWERS = ["Paris", "The Danube", "Lisbon"]
RELEVANT = [[0], [2], [3]]


def pipeline_under_test(documents: list[Document]) -> Pipeline:
    """Retrieves two documents by BM25, and has a chat generator answer from them."""
    store = InMemoryDocumentStore()
    store.write_documents(documents)
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=2))
    prompt = [ChatMessage.from_user("{% for d in documents %}{{ d.content }} {% endfor %} {{ question }}")]
    pipeline.add_component("prompt", ChatPromptBuilder(prompt, required_variables=["documents", "question"]))
    pipeline.add_component("generator", MockChatGenerator(["Paris", "The Danube", "Porto"]))
    pipeline.connect("retriever.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "generator.messages")
    return pipeline


def evaluation() -> Pipeline:
    """What is measured: the documents, the answers, and what a judge makes of the answers."""
    verdict = '{"statements": ["s"], "statement_scores": [%d]}'
    judge = ScriptedChatGenerator([verdict % 1, verdict % 1, verdict % 0])
    pipeline = Pipeline()
    pipeline.add_component("documents", DocumentMetricsEvaluator(["nDCG@10", "RR", "R@1"]))
    pipeline.add_component("exact_match", AnswerExactMatchEvaluator())
    # In turn, so that the script's replies meet their rows; details= also puts out each row's status and reason
    faithfulness = FaithfulnessEvaluator(chat_generator=judge, max_concurrency=1, details=True, progress_bar=False)
    pipeline.add_component("faithfulness", faithfulness)
    return pipeline


def main() -> None:
    """Runs both pipelines and prints the reports."""
    documents = [Document(content=text) for text in TEXTS]
    rag = pipeline_under_test(documents)
    runs = [
        rag.run(
            {"retriever": {"query": question}, "prompt": {"question": question}}, include_outputs_from={"retriever"}
        )
        for question in QUESTIONS
    ]
    retrieved = [run["retriever"]["documents"] for run in runs]
    predicted = [run["generator"]["replies"][0].text for run in runs]
    contexts = [[document.content for document in found] for found in retrieved]
    results = evaluation().run(
        {
            "documents": {
                "ground_truth_documents": [[documents[n] for n in relevant] for relevant in RELEVANT],
                "retrieved_documents": retrieved,
            },
            "exact_match": {"ground_truth_answers": ANSWERS, "predicted_answers": predicted},
            "faithfulness": {"questions": QUESTIONS, "contexts": contexts, "predicted_answers": predicted},
        }
    )
    inputs = {"question": QUESTIONS, "contexts": contexts, "answer": ANSWERS, "predicted": predicted}
    run = EvaluationRunResult("bm25", inputs, results)
    print(run)
    for question, score, match in zip(*map(run.detailed_report().get, ("question", "RR", "exact_match")), strict=True):
        print(f"{question}: RR {score}, exact match {match}")


if __name__ == "__main__":
    main()
