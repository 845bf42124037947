"""What answers a prompt: a small protocol of our own, Haystack's chat generators as they are, and a scripted one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from llm_judges.failures import CallError, call_error
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


@asynccontextmanager
async def connect(generator: Any, max_concurrency: int, *, own_loop: bool) -> AsyncIterator[Call]:
    """The function that asks a generator of any kind; what it raises is a CallError.

    Args:
        generator: our own protocol is `async def reply(request) -> Reply`, or `connect()`, an asynchronous context
            manager that gives such a function, entered once a run in its event loop; else Haystack's `run(messages)`
            or `run_async(messages)`.
        max_concurrency: how many threads a generator may have that blocks.
        own_loop: whether the event loop ends with the run. Then Haystack's generators are asked in threads, where they
            can be: they would keep an asynchronous client that is bound to the loop.
    """
    async with AsyncExitStack() as stack:
        call: Call
        if hasattr(generator, "connect"):
            call = await stack.enter_async_context(generator.connect())
        elif hasattr(generator, "reply"):
            call = generator.reply
        elif hasattr(generator, "run_async") and not (own_loop and hasattr(generator, "run")):
            call = _haystack_call(generator.run_async, generator)
        else:
            threads = ThreadPoolExecutor(max_concurrency, thread_name_prefix="llm-judges")
            # A call whose row has given up on it ends by itself
            stack.callback(threads.shutdown, wait=False, cancel_futures=True)
            run = partial(_run_in_thread, threads, generator.run)
            call = _haystack_call(run, generator)

        async def understood(request: Request) -> Reply:
            try:
                reply = await call(request)
            except CallError:
                raise
            except Exception as error:  # a generator of others raises anything; it costs one row
                raise call_error(error) from error
            except asyncio.CancelledError as error:
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                raise CallError("the generator cancelled the call") from error
            except (KeyboardInterrupt, SystemExit) as error:  # in a task it would end the loop before all is cleaned up
                raise CallError(f"the generator raised {error!r}", fatal=True) from error
            if not isinstance(reply, Reply):
                raise CallError(f"the generator gave a {type(reply).__name__} in the place of a Reply")
            return reply

        yield understood


async def _run_in_thread(threads: ThreadPoolExecutor, run: Callable[..., Any], **given: Any) -> Any:
    def call() -> Any:
        try:
            return run(**given)
        except StopIteration as error:  # a future cannot carry it, and would be waited for without end
            raise CallError("the generator raised StopIteration") from error

    return await asyncio.get_running_loop().run_in_executor(threads, call)


def _haystack_call(run: Callable[..., Awaitable[Any]], generator: Any) -> Call:
    says: Mapping[str, Callable[[str], Any]]
    tracer: Any = None
    try:
        from haystack.dataclasses import ChatMessage
        from haystack.tracing.tracer import tracer
    except ModuleNotFoundError:  # then the generator only has Haystack's shape
        says = {role: partial(Message, role) for role in ("user", "assistant")}
    else:
        says = {"user": ChatMessage.from_user, "assistant": ChatMessage.from_assistant}

    async def call(request: Request) -> Reply:
        messages = [says[message.role](message.text) for message in request.messages]
        with _traced(tracer, generator, messages) as told:
            result = await run(messages=messages)
            told(result)
        if not isinstance(result, Mapping) or not isinstance(result.get("replies"), Sequence):
            raise CallError(f"the generator gave no {{'replies': [...]}}, but {result!r:.200}")
        if not result["replies"]:
            raise CallError("the generator gave no reply", retry=True)
        reply = result["replies"][0]
        return Reply(reply.text, meta=dict(reply.meta or {}))

    return call


@contextmanager
def _traced(tracer: Any, generator: Any, messages: Sequence[Any]) -> Iterator[Callable[[Any], None]]:
    """A span of Haystack's tracer around a call, as Haystack has it: whoever traces a pipeline sees what the call cost.

    Gives the function that tells the call's result.
    """
    if tracer is None:
        yield lambda _: None
        return
    tags = {"haystack.component.name": "chat_generator", "haystack.component.type": type(generator).__name__}
    with tracer.trace("haystack.chat_generator.run", tags=tags, parent_span=tracer.current_span()) as span:
        span.set_content_tag("haystack.component.input", {"messages": messages})
        yield lambda result: span.set_content_tag("haystack.component.output", result)


def reply_limit(generator: Any) -> int:
    """How many tokens a reply can have by the generator's `generation_kwargs` (ours and Haystack's); 0: unlimited."""
    parameters = getattr(generator, "generation_kwargs", None) or {}
    return next((limit for name in REPLY_LIMITS if isinstance(limit := parameters.get(name), int)), 0)


def check_generator(generator: Any) -> None:
    """Refuses what cannot be asked.

    Raises:
        InputError: it has none of the methods.
    """
    if not any(callable(getattr(generator, name, None)) for name in ("connect", "reply", "run", "run_async")):
        raise InputError(
            "chat_generator must have run(messages), run_async(messages) or reply(request), "
            f"got {type(generator).__name__}"
        )


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
