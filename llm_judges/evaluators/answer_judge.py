"""What the judges of retrieval-augmented answers share."""

from __future__ import annotations

from math import nan
from typing import Any, ClassVar

from llm_judges.evaluators.llm import LLMEvaluator
from llm_judges.verdict import Verdict


class AnswerJudge(LLMEvaluator):
    """A judge whose instructions, columns and outputs are fixed; rows are shown with their score and status."""

    _instructions: ClassVar[str]
    _inputs: ClassVar[list[tuple[str, Any]]]
    _outputs: ClassVar[list[str]]
    _default_examples: ClassVar[list[dict[str, Any]]]

    def __init__(
        self,
        examples: list[dict[str, Any]] | None = None,
        progress_bar: bool = True,
        raise_on_failure: bool = True,
        chat_generator: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(
            self._instructions,
            self._inputs,
            self._outputs,
            examples or self._default_examples,
            progress_bar,
            raise_on_failure=raise_on_failure,
            chat_generator=chat_generator,
            **options,
        )

    def _parameters(self) -> dict[str, Any]:
        return self._shared_parameters()

    def _shown(self, verdict: Verdict) -> dict[str, Any]:
        result = verdict.outcome.result
        if result is None:
            return {name: [] for name in self._outputs} | {"score": nan, "status": "error"}
        return result | {"score": verdict.score, "status": "evaluated"}
