"""FaithfulnessEvaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from llm_judges import outputs as reading
from llm_judges.evaluators.answer_judge import AnswerJudge
from llm_judges.runner import Run
from llm_judges.verdict import ScoreOf, Verdict


class FaithfulnessEvaluator(AnswerJudge):
    """Which share of an answer's statements can be inferred from the contexts: from 0 to 1.

    Args:
        examples: rows with "questions", "contexts" and "predicted_answers" in, "statements" and "statement_scores" out;
            None or empty: our own.
        progress_bar: as in LLMEvaluator, and so are the next two.
        raise_on_failure: whether a row that cannot be judged raises.
        chat_generator: who judges.
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
    _outputs: ClassVar = ["statements", "statement_scores"]
    _default_examples: ClassVar = [
        {
            "inputs": {
                "questions": "When was the Eiffel Tower completed, and where does it stand?",
                "contexts": ["The Eiffel Tower, completed in 1889, stands on the Champ de Mars in Paris."],
                "predicted_answers": "It was completed in 1889 and stands in Paris.",
            },
            "outputs": {
                "statements": ["The Eiffel Tower was completed in 1889.", "The Eiffel Tower stands in Paris."],
                "statement_scores": [1, 1],
            },
        },
        {
            "inputs": {
                "questions": "Who composed The Magic Flute?",
                "contexts": ["Salzburg lies on the river Salzach."],
                "predicted_answers": "Mozart",
            },
            "outputs": {"statements": ["Mozart composed The Magic Flute."], "statement_scores": [0]},
        },
        {
            "inputs": {
                "questions": "How long is the Danube?",
                "contexts": ["The Danube is 2,850 km long."],
                "predicted_answers": "The Danube is 2,850 km long and the longest river of Europe.",
            },
            "outputs": {
                "statements": ["The Danube is 2,850 km long.", "The Danube is the longest river of Europe."],
                "statement_scores": [1, 0],
            },
        },
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
        self.empty_score = empty_score

    def _parameters(self) -> dict[str, Any]:
        own = {"empty_score": self.empty_score} if self.empty_score != 0 else {}
        return self._shared_parameters() | own

    def _read(self, value: dict[str, Any]) -> dict[str, Any]:
        result = self._reply.read(value)
        statements = reading.statements(result["statements"], "statements")
        scores = reading.binary_scores(result["statement_scores"], "statement_scores", len(statements))
        return result | {"statement_scores": scores}

    @property
    def _score_of(self) -> ScoreOf:
        def score_of(result: Mapping[str, Any]) -> float:
            scores = result["statement_scores"]
            return sum(scores) / len(scores) if scores else self.empty_score

        return score_of

    def _extra(self, columns: Mapping[str, list[Any]], verdicts: Sequence[Verdict]) -> dict[str, Any]:  # noqa: ARG002
        read = [one.outcome.result for one in verdicts]
        return {"flags": [["empty"] if result is not None and not result["statements"] else [] for result in read]}

    def _result(self, columns: Mapping[str, list[Any]], run: Run) -> dict[str, Any]:
        result = super()._result(columns, run)
        result["coverage"]["empty"] = sum("empty" in flags for flags in result["flags"])
        return result
