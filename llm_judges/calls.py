"""How a generator is asked: by our own protocol, or by Haystack's, in the event loop or in threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import copy_context
from functools import partial
from inspect import Parameter, iscoroutinefunction, signature, unwrap
from typing import Any

from llm_judges.failures import CallError, call_error
from llm_judges.generator import Call, ConnectedGenerator, Message, Reply, Request, seed_of
from metrics_core.errors import InputError


def check_generator(generator: Any) -> None:
    """Refuses what cannot be asked.

    Raises:
        InputError: it has none of the methods, or is a class of those that have.
    """
    if isinstance(generator, type) or not is_generator(generator):
        given = f"the class {generator.__name__}" if isinstance(generator, type) else type(generator).__name__
        raise InputError(
            "chat_generator must have run(messages), run_async(messages) or an asynchronous reply(request), "
            f"got {given}"
        )


def is_generator(generator: Any) -> bool:
    """Whether a generator can be asked, or those of a class."""
    kind = generator if isinstance(generator, type) else type(generator)
    reply: Any = getattr(generator, "reply", None)
    return (
        issubclass(kind, ConnectedGenerator)
        or _takes(generator, "run")
        or _takes(generator, "run_async")
        or iscoroutinefunction(unwrap(reply))
    )


def _takes(generator: Any, method: str, parameter: str = "messages") -> bool:
    """Whether the method is there and takes that: there are other things to `run` than messages."""
    found: Any = getattr(generator, method, None)
    try:
        parameters = signature(found).parameters
    except (TypeError, ValueError):  # no function, or one that does not tell
        return False
    return parameter in parameters or any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())


@asynccontextmanager
async def connect(generator: Any, max_concurrency: int, *, own_loop: bool) -> AsyncIterator[Call]:
    """The function that asks a generator of any kind; what it raises is a CallError.

    Args:
        generator: a ConnectedGenerator; or one with Haystack's `run(messages)` or `run_async(messages)`, whatever else
            it has; or one with our own `async def reply(request) -> Reply`.
        max_concurrency: how many threads a generator may have that blocks.
        own_loop: whether the event loop ends with the run. Then Haystack's generators are asked in threads, where they
            can be: they would keep an asynchronous client that is bound to the loop.
    """
    async with AsyncExitStack() as stack:
        call: Call
        blocks = _takes(generator, "run")
        if isinstance(generator, ConnectedGenerator):
            call = await stack.enter_async_context(generator.connect())
        elif _takes(generator, "run_async") and not (own_loop and blocks):
            call = _haystack_call(generator.run_async, generator, _takes(generator, "run_async", "generation_kwargs"))
        elif blocks:
            threads = ThreadPoolExecutor(max_concurrency, thread_name_prefix="llm-judges")
            # A call whose row has given up on it ends by itself
            stack.callback(threads.shutdown, wait=False, cancel_futures=True)
            run = partial(_run_in_thread, threads, generator.run)
            call = _haystack_call(run, generator, _takes(generator, "run", "generation_kwargs"))
        else:
            call = generator.reply

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
    context = copy_context()  # has the span that is open, to whoever traces

    def call() -> Any:
        try:
            return context.run(run, **given)
        except StopIteration as error:  # a future cannot carry it, and would be waited for without end
            raise CallError("the generator raised StopIteration") from error

    return await asyncio.get_running_loop().run_in_executor(threads, call)


def _haystack_call(run: Callable[..., Awaitable[Any]], generator: Any, takes_parameters: bool) -> Call:
    says: Mapping[str, Callable[[str], Any]]
    try:
        from haystack.dataclasses import ChatMessage
        from haystack.tracing.tracer import tracer
    except ModuleNotFoundError:  # then the generator only has Haystack's shape
        says = {role: partial(Message, role) for role in ("user", "assistant")}
        ask = run
    else:
        says = {"user": ChatMessage.from_user, "assistant": ChatMessage.from_assistant}
        ask = partial(_run_traced, tracer, type(generator).__name__, run)
    parameters = getattr(generator, "generation_kwargs", None) or {}

    async def call(request: Request) -> Reply:
        messages = [says[message.role](message.text) for message in request.messages]
        seed = seed_of(request.sample, parameters) if takes_parameters else {}
        result = await ask(messages=messages, **({"generation_kwargs": seed} if seed else {}))
        if not isinstance(result, Mapping) or not isinstance(result.get("replies"), Sequence):
            raise CallError(f"the generator gave no {{'replies': [...]}}, but {result!r:.200}")
        if not result["replies"]:
            raise CallError("the generator gave no reply", retry=True)
        reply = result["replies"][0]
        return Reply(reply.text, meta=dict(reply.meta or {}))

    return call


async def _run_traced(tracer: Any, name: str, run: Callable[..., Awaitable[Any]], **given: Any) -> Any:
    """Runs in a span of Haystack's tracer, as Haystack has it: whoever traces a pipeline sees what the call cost."""
    tags = {"haystack.component.name": "chat_generator", "haystack.component.type": name}
    with tracer.trace("haystack.chat_generator.run", tags=tags, parent_span=tracer.current_span()) as span:
        span.set_content_tag("haystack.component.input", given)
        result = await run(**given)
        span.set_content_tag("haystack.component.output", result)
    return result
