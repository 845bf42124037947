"""The judges of answers and their contexts, under Haystack's names and contracts."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any, ClassVar

from llm_judges import outputs as reading
from llm_judges.evaluators import LLMEvaluator
from llm_judges.runner import Outcome, Run
from metrics_core.errors import InputError

# The default examples: a question, its contexts, what of them is relevant, an answer, and its statements with scores
_SCENES: list[tuple[str, list[str], list[str], str, dict[str, int]]] = [
    (
        "When was the Eiffel Tower completed, and where does it stand?",
        ["The Eiffel Tower, completed in 1889, stands on the Champ de Mars in Paris."],
        ["The Eiffel Tower, completed in 1889, stands on the Champ de Mars in Paris."],
        "It was completed in 1889 and stands in Paris.",
        {"The Eiffel Tower was completed in 1889.": 1, "The Eiffel Tower stands in Paris.": 1},
    ),
    (
        "Who composed The Magic Flute?",
        ["Salzburg lies on the river Salzach.", "The flute is a woodwind instrument without a reed."],
        [],
        "Mozart",
        {"Mozart composed The Magic Flute.": 0},
    ),
    (
        "How long is the Danube?",
        ["The Danube is 2,850 km long. It flows through ten countries.", "The Rhine is shorter."],
        ["The Danube is 2,850 km long."],
        "The Danube is 2,850 km long and the longest river of Europe.",
        {"The Danube is 2,850 km long.": 1, "The Danube is the longest river of Europe.": 0},
    ),
]


class _AnswerJudge(LLMEvaluator):
    """A judge whose instructions, columns and outputs are fixed; rows are shown with their score and status."""

    _instructions: ClassVar[str]
    _inputs: ClassVar[list[tuple[str, Any]]]
    _keys: ClassVar[list[str]]
    _examples: ClassVar[list[dict[str, Any]]]
    _is_scored = True

    def __init__(
        self,
        examples: list[dict[str, Any]] | None = None,
        progress_bar: bool = True,
        raise_on_failure: bool = True,
        chat_generator: Any = None,
        **options: Any,
    ) -> None:
        fixed = (self._instructions, self._inputs, self._keys, examples or self._examples)
        options |= {"raise_on_failure": raise_on_failure, "chat_generator": chat_generator}
        super().__init__(*fixed, progress_bar, **options)

    def _parameters(self) -> dict[str, Any]:
        return self._shared_parameters()

    def _shown(self, outcome: Outcome) -> dict[str, Any]:
        if outcome.result is None:
            return {name: [] for name in self._keys} | {"score": nan, "status": "error"}
        return outcome.result | {"score": outcome.score, "status": "evaluated"}


class ContextRelevanceEvaluator(_AnswerJudge):
    """Whether the contexts hold anything that is needed to answer the question: 1 or 0.

    Args:
        examples: rows with "questions" and "contexts" in, "relevant_statements" out; None or empty: our own.
        progress_bar, raise_on_failure, chat_generator: as in LLMEvaluator.
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
    _keys: ClassVar = ["relevant_statements"]
    _examples: ClassVar = [
        {"inputs": {"questions": question, "contexts": contexts}, "outputs": {"relevant_statements": relevant}}
        for question, contexts, relevant, _, _ in _SCENES
    ]
    _is_binary = True

    def _read(self, result: dict[str, Any]) -> tuple[dict[str, Any], float]:
        found = reading.statements(result["relevant_statements"], "relevant_statements")
        return result, int(bool(found))

    def _result(self, inputs: Mapping[str, Any], run: Run) -> dict[str, Any]:
        result = super()._result(inputs, run)
        result["flags"] = flags = []
        for contexts, row in zip(inputs["contexts"], result["results"], strict=True):
            text = _folded("\n".join(map(str, contexts)) if isinstance(contexts, list) else str(contexts))
            kept = all(_folded(statement) in text for statement in row["relevant_statements"])
            flags.append([] if kept else ["not_in_context"])
        return result


def _folded(text: str) -> str:
    return " ".join(text.split())


class FaithfulnessEvaluator(_AnswerJudge):
    """Which share of an answer's statements can be inferred from the contexts: from 0 to 1.

    Args:
        examples: rows with "questions", "contexts" and "predicted_answers" in, "statements" and "statement_scores" out;
            None or empty: our own.
        progress_bar, raise_on_failure, chat_generator: as in LLMEvaluator.
        empty_score: the score of an answer in which the judge finds no statement; NaN leaves it out.
        **options: see RunOptions.

    `run(questions=[...], contexts=[[...], ...], predicted_answers=[...])` returns what LLMEvaluator's does with a
    score. A row's result is {"statements", "statement_scores", "score", "status"}; an unscored one has empty lists, the
    score NaN and the status "error". "flags" has "empty" for answers without statements, and "coverage" counts them.
    """

    _instructions = (
        "Judge how faithful the predicted answer is to the contexts. First break the answer up into statements, each "
        "of which claims one thing and can be understood by itself. Then score each statement: 1 if it follows from "
        "the contexts alone, 0 if it does not. What you know from elsewhere does not count."
    )
    _inputs: ClassVar = [("questions", list[str]), ("contexts", list[list[str]]), ("predicted_answers", list[str])]
    _keys: ClassVar = ["statements", "statement_scores"]
    _examples: ClassVar = [
        {
            "inputs": {"questions": question, "contexts": contexts, "predicted_answers": answer},
            "outputs": {"statements": list(scores), "statement_scores": list(scores.values())},
        }
        for question, contexts, _, answer, scores in _SCENES
    ]

    def __init__(
        self,
        examples: list[dict[str, Any]] | None = None,
        progress_bar: bool = True,
        raise_on_failure: bool = True,
        chat_generator: Any = None,
        *,
        empty_score: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(examples, progress_bar, raise_on_failure, chat_generator, **options)
        if not isinstance(empty_score, (int, float)):
            raise InputError(f"empty_score must be a number, or NaN, got {empty_score!r}")
        self.empty_score = empty_score

    def _parameters(self) -> dict[str, Any]:
        return self._shared_parameters() | ({"empty_score": self.empty_score} if self.empty_score != 0 else {})

    def _read(self, result: dict[str, Any]) -> tuple[dict[str, Any], float]:
        statements = reading.statements(result["statements"], "statements")
        scores = reading.binary_scores(result["statement_scores"], "statement_scores", len(statements))
        score = sum(scores) / len(scores) if scores else self.empty_score
        return result | {"statement_scores": scores}, score

    def _result(self, inputs: Mapping[str, Any], run: Run) -> dict[str, Any]:
        result = super()._result(inputs, run)
        empty = [row["status"] == "evaluated" and not row["statements"] for row in result["results"]]
        result["flags"] = [["empty"] if one else [] for one in empty]
        result["coverage"]["empty"] = sum(empty)
        return result
