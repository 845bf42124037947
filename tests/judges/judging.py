"""Evaluators against the loopback server, and rows for them."""

from __future__ import annotations

import json
from typing import Any

from llm_judges import (
    ContextRelevanceEvaluator,
    FaithfulnessEvaluator,
    LLMEvaluator,
    OpenAIChatGenerator,
    Reply,
    Request,
    ScriptedChatGenerator,
)
from tests.judges.server import Server

KEY = "sk-loopback-0123456789"


class Recording(ScriptedChatGenerator):
    """Keeps what it was asked."""

    def __init__(self, replies: Any) -> None:
        super().__init__(replies)
        self.requests: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return await super().reply(request)


def generator(server: Server, **more: Any) -> OpenAIChatGenerator:
    return OpenAIChatGenerator("loopback", more.pop("api_key", KEY), server.url, **more)


def faithfulness(server: Server | None = None, **options: Any) -> FaithfulnessEvaluator:
    return FaithfulnessEvaluator(**_with_defaults(server, options))


def relevance(server: Server | None = None, **options: Any) -> ContextRelevanceEvaluator:
    return ContextRelevanceEvaluator(**_with_defaults(server, options))


def llm(server: Server | None = None, outputs: Any = None, **options: Any) -> LLMEvaluator:
    """One column, "texts", and the output "ok" unless others are given."""
    outputs = ["ok"] if outputs is None else outputs
    examples = [{"inputs": {"texts": "t"}, "outputs": {"ok": 1}}] if isinstance(outputs, list) else None
    inputs = [("texts", list[str])]
    return LLMEvaluator("Is it well?", inputs, outputs, examples, **_with_defaults(server, options))


def _with_defaults(server: Server | None, options: dict[str, Any]) -> dict[str, Any]:
    chat_generator = {} if server is None else {"chat_generator": generator(server, **options.pop("client", {}))}
    return {"progress_bar": False, "raise_on_failure": False} | chat_generator | options


def rows(count: int) -> dict[str, list[Any]]:
    """Columns of the judges of answers; the question tells the row."""
    return {
        "questions": [f"question <{row}>" for row in range(count)],
        "contexts": [[f"context {row}"] for row in range(count)],
        "predicted_answers": [f"answer {row}" for row in range(count)],
    }


def row_of(prompt: str) -> int:
    """The row that a prompt made of `rows` or of "<3>" asks about."""
    return int(prompt.rpartition("<")[2].partition(">")[0])


def verdict(*scores: Any, statements: int | None = None) -> str:
    """A reply of the judge of faithfulness."""
    count = len(scores) if statements is None else statements
    return json.dumps({"statements": [f"s{i}" for i in range(count)], "statement_scores": list(scores)})
