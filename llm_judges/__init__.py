"""Language models as judges: concurrent, resumable, bounded, and honest about what could not be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llm_judges.answer_judges import (
    ContextRelevanceEvaluator as ContextRelevanceEvaluator,
    FaithfulnessEvaluator as FaithfulnessEvaluator,
)
from llm_judges.evaluators import LLMEvaluator as LLMEvaluator
from llm_judges.failures import (
    CallError as CallError,
    FatalError as FatalError,
    InterruptedRun as InterruptedRun,
    RowError as RowError,
)
from llm_judges.generator import (
    Message as Message,
    Reply as Reply,
    Request as Request,
    ScriptedChatGenerator as ScriptedChatGenerator,
)
from llm_judges.openai_chat import EnvVar as EnvVar, OpenAIChatGenerator as OpenAIChatGenerator
from llm_judges.runner import RunOptions as RunOptions

if TYPE_CHECKING:
    from llm_judges.reliability import Agreement as Agreement, agreement as agreement


def __getattr__(name: str) -> Any:
    if name not in {"Agreement", "agreement"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from llm_judges import reliability  # imports NumPy, which nothing else here needs

    return getattr(reliability, name)
