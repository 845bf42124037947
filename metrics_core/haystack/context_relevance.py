"""ContextRelevanceEvaluator as a component."""

from __future__ import annotations

from typing import Any

from haystack import component

import llm_judges
from metrics_core.haystack.llm_evaluator import ANSWER_SOCKETS, JudgeComponent, default_generator


@component
class ContextRelevanceEvaluator(JudgeComponent, llm_judges.ContextRelevanceEvaluator):
    """llm_judges.ContextRelevanceEvaluator as a component.

    Args:
        examples, progress_bar, raise_on_failure, options: as there.
        chat_generator, details: as in LLMEvaluator.
    """

    def __init__(
        self,
        examples: list[dict[str, Any]] | None = None,
        progress_bar: bool = True,
        raise_on_failure: bool = True,
        chat_generator: Any = None,
        *,
        details: bool = False,
        **options: Any,
    ) -> None:
        generator = default_generator() if chat_generator is None else chat_generator
        llm_judges.ContextRelevanceEvaluator.__init__(
            self, examples, progress_bar, raise_on_failure, generator, **options
        )
        self._set_sockets(details=details, **ANSWER_SOCKETS)
