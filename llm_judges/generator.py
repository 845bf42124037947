"""What answers a prompt: a small protocol of our own, and a generator that answers from a script."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from metrics_core.errors import InputError

REPLY_LIMITS = ("max_completion_tokens", "max_tokens")  # what OpenAI's protocol calls it, now and before
_PARTS = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Message:
    """What one side says: role is "user" or "assistant"."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a generator.

    Attributes:
        messages: the prompt; after an unreadable reply that reply and its correction, too.
        schema: the JSON schema that the reply must conform to; None: any JSON object.
        sample: which of several replies to the same prompt this one is, from 0.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a generator answered.

    Attributes:
        text: None where it said nothing.
        refusal: its words where it refused.
        meta: what came with the text, in Haystack's form: "model", "finish_reason", "usage" with token counts.

    Raises:
        InputError: any of them of another type.
    """

    text: str | None
    refusal: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for said in (self.text, self.refusal):
            if not isinstance(said, (str, type(None))):
                raise InputError(f"text and refusal of a Reply are str or None, got {said!r:.80}")
        if not isinstance(self.meta, Mapping):
            raise InputError(f"meta of a Reply is a mapping, got {self.meta!r:.80}")

    @property
    def usage(self) -> dict[str, int]:
        """The token counts of `meta`, with their total; empty where the generator tells none."""
        usage = self.meta.get("usage")
        told = usage.items() if isinstance(usage, Mapping) else ()
        counts = {name: count for name, count in told if isinstance(count, int)}
        return counts and {"total_tokens": sum(counts.get(name, 0) for name in _PARTS)} | counts


Call = Callable[[Request], Awaitable[Reply]]
Said: TypeAlias = str | Reply | Exception


class ConnectedGenerator(ABC):
    """A generator that holds connections while a batch runs; one that holds none has `async def reply(request)`."""

    @abstractmethod
    def connect(self) -> AbstractAsyncContextManager[Call]:
        """The function that asks it, in the running event loop, until the context ends."""


def reply_limit(generator: Any) -> int:
    """How many tokens a reply can have by the generator's `generation_kwargs` (ours and Haystack's); 0: unlimited."""
    parameters = getattr(generator, "generation_kwargs", None) or {}
    return next((limit for name in REPLY_LIMITS if isinstance(limit := parameters.get(name), int)), 0)


def seed_of(sample: int, parameters: Mapping[str, Any]) -> dict[str, int]:
    """The parameter that another sample has in place of the first one's seed, by which it would be the same reply."""
    seed = parameters.get("seed")
    return {"seed": seed + sample} if sample and isinstance(seed, int) else {}


class ScriptedChatGenerator:
    """Answers from a script, without a network: for tests, demonstrations and dry runs.

    Args:
        replies: one text or Reply for each call, in the order of the calls (that of the rows, if no call fails or is
            repeated); or a function from the last message's text to one. An exception in the place of a reply is
            raised.
    """

    def __init__(self, replies: Sequence[Said] | Callable[[str], Said]) -> None:
        self.replies = replies
        self.calls = 0

    async def reply(self, request: Request) -> Reply:
        """The scripted reply."""
        self.calls += 1
        if callable(self.replies):
            said = self.replies(request.messages[-1].text)
        elif self.calls > len(self.replies):
            raise InputError(f"the script has {len(self.replies)} replies, and this is call {self.calls}")
        else:
            said = self.replies[self.calls - 1]
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Reply) else Reply(said, meta={"finish_reason": "stop", "model": "scripted"})

    def to_dict(self) -> dict[str, Any]:
        """The script, if it is a list of texts.

        Raises:
            InputError: it is anything else.
        """
        if callable(self.replies) or not all(isinstance(said, str) for said in self.replies):
            raise InputError("a ScriptedChatGenerator has a dict form only if its replies are a list of texts")
        name = f"{type(self).__module__}.{type(self).__qualname__}"
        return {"type": name, "init_parameters": {"replies": list(self.replies)}}
