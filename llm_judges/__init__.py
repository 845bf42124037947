"""Language models as judges: concurrent, resumable, bounded, and honest about what could not be judged.

Importing the package loads nothing else; each name below is imported from its module at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llm_judges.evaluators import (
        ContextRelevanceEvaluator as ContextRelevanceEvaluator,
        FaithfulnessEvaluator as FaithfulnessEvaluator,
        LLMEvaluator as LLMEvaluator,
    )
    from llm_judges.failures import CallError as CallError, FatalError as FatalError, RowError as RowError
    from llm_judges.generator import (
        Generator as Generator,
        Message as Message,
        Reply as Reply,
        Request as Request,
        ScriptedChatGenerator as ScriptedChatGenerator,
    )
    from llm_judges.openai_chat import EnvVar as EnvVar, OpenAIChatGenerator as OpenAIChatGenerator
    from llm_judges.reliability import Agreement as Agreement, agreement as agreement
    from llm_judges.runner import RunOptions as RunOptions

_HOMES = {
    "evaluators": ("ContextRelevanceEvaluator", "FaithfulnessEvaluator", "LLMEvaluator"),
    "failures": ("CallError", "FatalError", "RowError"),
    "generator": ("Generator", "Message", "Reply", "Request", "ScriptedChatGenerator"),
    "openai_chat": ("EnvVar", "OpenAIChatGenerator"),
    "runner": ("RunOptions",),
    "reliability": ("Agreement", "agreement"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF]  # noqa: PLE0604  # computed from the one list of names


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
