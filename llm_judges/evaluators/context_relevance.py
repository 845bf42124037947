"""ContextRelevanceEvaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from llm_judges import outputs as reading
from llm_judges.evaluators.answer_judge import AnswerJudge
from llm_judges.verdict import ScoreOf, Verdict


class ContextRelevanceEvaluator(AnswerJudge):
    """Whether the contexts hold anything that is needed to answer the question: 1 or 0.

    Args:
        examples: rows with "questions" and "contexts" in, "relevant_statements" out; None or empty: our own.
        progress_bar: as in LLMEvaluator, and so are the next two.
        raise_on_failure: whether a row that cannot be judged raises.
        chat_generator: who judges.
        **options: see RunOptions.

    `run(questions=[...], contexts=[[...], ...])` returns what LLMEvaluator's does with a score. A row's result is
    {"relevant_statements", "score", "status"}; an unscored one has no statements, the score NaN and the status "error".
    "flags" has "not_in_context" for rows with a statement that occurs in none of the contexts, spaces apart: the judge
    has not kept to the text.
    """

    _instructions = (
        "Copy from the contexts, word for word, each sentence without which the question could not be answered. Leave "
        "out whatever is merely about the same subject. If the contexts do not answer the question, or have no such "
        "sentence, give an empty list: []"
    )
    _inputs: ClassVar = [("questions", list[str]), ("contexts", list[list[str]])]
    _outputs: ClassVar = ["relevant_statements"]
    _default_examples: ClassVar = [
        {
            "inputs": {
                "questions": "When was the Eiffel Tower completed?",
                "contexts": ["The Eiffel Tower was completed in 1889."],
            },
            "outputs": {"relevant_statements": ["The Eiffel Tower was completed in 1889."]},
        },
        {
            "inputs": {
                "questions": "Who composed The Magic Flute?",
                "contexts": [
                    "Salzburg lies on the river Salzach.",
                    "The flute is a woodwind instrument without a reed.",
                    "Vienna has had an opera house since 1869.",
                ],
            },
            "outputs": {"relevant_statements": []},
        },
        {
            "inputs": {
                "questions": "How long is the Danube?",
                "contexts": ["The Danube is 2,850 km long. It flows through ten countries.", "The Rhine is shorter."],
            },
            "outputs": {"relevant_statements": ["The Danube is 2,850 km long."]},
        },
    ]
    _binary = True

    def _read(self, value: dict[str, Any]) -> dict[str, Any]:
        result = self._reply.read(value)
        reading.statements(result["relevant_statements"], "relevant_statements")
        return result

    @property
    def _score_of(self) -> ScoreOf:
        return lambda result: 1 if result["relevant_statements"] else 0

    def _extra(self, columns: Mapping[str, list[Any]], verdicts: Sequence[Verdict]) -> dict[str, Any]:
        flags = []
        for contexts, one in zip(columns["contexts"], verdicts, strict=True):
            found = [] if one.outcome.result is None else one.outcome.result["relevant_statements"]
            text = _folded("\n".join(map(str, contexts)) if isinstance(contexts, list) else str(contexts))
            flags.append([] if all(_folded(statement) in text for statement in found) else ["not_in_context"])
        return {"flags": flags}


def _folded(text: str) -> str:
    return " ".join(text.split())
