"""Runs a batch: a bounded number of calls at a time, retried, within budgets and deadlines; outcomes by row."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, fields
from logging import NullHandler, getLogger
from os import PathLike, fspath
from typing import Any, TypeVar

from llm_judges import prompt
from llm_judges.calls import connect
from llm_judges.failures import CallError, FatalError, InvalidOutputError, require
from llm_judges.generator import Call, Message, Reply, Request, reply_limit
from llm_judges.store import Store, generator_identity, request_key
from metrics_core.errors import InputError

T = TypeVar("T")

getLogger("stamina").addHandler(NullHandler())  # else its records are bare words on standard error, one a retry
_LONGEST_WAIT = 600.0  # seconds that a server may ask for; a daily quota must not hold a run until tomorrow
_BACKOFF = {"timeout": None, "wait_initial": 0.5, "wait_max": 30.0, "wait_jitter": 0.5}
_CUT_OFF = {
    "length": ("truncated", "the reply reached its limit of tokens"),
    "max_tokens": ("truncated", "the reply reached its limit of tokens"),
    "content_filter": ("content_filter", "the server's filter cut the reply"),
}
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "requests", "stored")
_LEAST = {"max_concurrency": 1, "max_retries": 0, "budget_tokens": 0, "budget_requests": 0, "samples": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a batch is run. All have defaults; an evaluator takes them as keyword arguments.

    Attributes:
        max_concurrency: how many calls are under way at once.
        timeout: seconds for one judgement with all its retries and waits; None: no limit.
        max_retries: how often a call that failed for a passing reason is repeated.
        store: path of a sqlite file that keeps each reply, and answers what was asked before; None: none.
        store_identity: what tells the generator's replies from those of others, where its `to_dict()` does not.
        budget_tokens: no call is begun that could exceed as many tokens, counted in this run: characters of the prompt
            / 3 and the generator's limit of a reply are reserved. Without such a limit, or where the reservation was
            too small, each worker may exceed it by one call. Replies from the store cost nothing.
        budget_requests: no more calls than that.
        samples: how many replies are asked for each row and generator; a generator's `seed` is one more for each.

    Raises:
        InputError: a number that is out of range, or a store that is no path.
    """

    max_concurrency: int = 8
    timeout: float | None = None
    max_retries: int = 5
    store: str | PathLike[str] | None = None
    store_identity: str | None = None
    budget_tokens: int | None = None
    budget_requests: int | None = None
    samples: int = 1

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None and name.startswith("budget"):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(f"{name} must be an integer of at least {least}, got {value!r}")
        if self.timeout is not None and not (isinstance(self.timeout, (int, float)) and self.timeout > 0):
            raise InputError(f"timeout must be a positive number of seconds, got {self.timeout!r}")
        # sqlite takes an empty name, and would keep nothing beyond the run
        if self.store is not None and not (isinstance(self.store, (str, PathLike)) and fspath(self.store)):
            raise InputError(f"store must be the path of a file, got {self.store!r}")

    def to_dict(self) -> dict[str, Any]:
        """Those that differ from their defaults, as plain values."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}
        return given if self.store is None else given | {"store": fspath(self.store)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one judgement: outputs and their score, or the reason why there are none."""

    result: dict[str, Any] | None = None
    score: float | None = None
    reason: str | None = None
    detail: str | None = None  # the reason in words
    meta: Mapping[str, Any] | None = None  # what came with the reply

    @property
    def failed(self) -> bool:
        """Whether it was tried in vain."""
        return self.reason not in {None, "skipped"}


_SKIPPED = Outcome(reason="skipped", detail="the run ended before this row was judged")


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be judged, and by whom."""

    n_rows: int
    prompt: Callable[[int], str]  # of a row
    read: Callable[[str], tuple[dict[str, Any], float | None]]  # a reply's outputs and score, or an InvalidOutputError
    generators: Sequence[Any]  # all of them judge each row
    schema: Mapping[str, Any] | None  # that a reply must conform to


class _Gate:
    """Holds back every worker until the endpoint is ready: one row's 429 is a message to all."""

    def __init__(self) -> None:
        self._opens = 0.0  # in the event loop's time

    def hold(self, seconds: float) -> None:
        self._opens = max(self._opens, asyncio.get_running_loop().time() + seconds)

    async def wait(self, deadline: float | None) -> None:
        now = asyncio.get_running_loop().time
        while (delay := self._opens - now()) > 0:
            if delay > _LONGEST_WAIT or (deadline is not None and self._opens > deadline):
                raise CallError(f"the server asked to wait, for another {delay:.0f} s", "rate_limited")
            await asyncio.sleep(delay)


class _Budget:
    """Tokens and calls that may be spent: reserved before a call, settled after it."""

    def __init__(self, tokens: int | None, requests: int | None) -> None:
        self._tokens = tokens
        self._requests = requests
        self._spent = 0  # tokens, with those reserved for calls under way
        self._under_way = 0
        self._settled = asyncio.Condition()

    async def reserve(self, tokens: int) -> None:
        async with self._settled:
            while self._tokens is not None and self._spent + tokens > self._tokens:
                if not self._under_way:
                    self._tokens = -1  # nothing more is begun, be it ever so small
                    raise CallError("budget_tokens is used up", "skipped")
                await self._settled.wait()  # a call under way may take less than was reserved for it
            if self._requests is not None:
                if not self._requests:
                    raise CallError("budget_requests is used up", "skipped")
                self._requests -= 1
            self._spent += tokens
            self._under_way += 1

    async def settle(self, reserved: int, used: int) -> None:
        async with self._settled:
            self._spent += used - reserved
            self._under_way -= 1
            self._settled.notify_all()


@dataclass(frozen=True, slots=True)
class _Endpoint:
    call: Call
    identity: str  # empty without a store
    reply_limit: int
    gate: _Gate = field(default_factory=_Gate)


class Run:
    """A batch that is run once; what it has come to can be read at any time, also after an interrupt.

    Args:
        batch: what is to be judged.
        options: how.
        stop_on_failure: begins no more rows once one could not be judged; calls under way are finished, since they are
            paid for. A used-up budget is no such failure.

    Attributes:
        outcomes: of each row: the generators in order, the samples of each; "skipped" until there is another.
        usage: tokens as the generators count them, "requests", and replies that the store had: "stored".
        fatal: what stopped the run, if anything did.
    """

    def __init__(self, batch: Batch, options: RunOptions, *, stop_on_failure: bool) -> None:
        self._batch = batch
        self._options = options
        self._stop_on_failure = stop_on_failure
        self._per_row = len(batch.generators) * options.samples
        self._todo = iter([(row, judge) for row in range(batch.n_rows) for judge in range(self._per_row)])
        self._retrying = require("stamina").AsyncRetryingCaller(attempts=options.max_retries + 1, **_BACKOFF).on(_retry)
        self._budget = _Budget(options.budget_tokens, options.budget_requests)
        self._endpoints: list[_Endpoint] = []
        self._store: Store | None = None
        self._n_failed = 0
        self.outcomes = [[_SKIPPED] * self._per_row for _ in range(batch.n_rows)]
        self.usage = Counter(dict.fromkeys(_COUNTS, 0))
        self.fatal: FatalError | None = None

    async def finish(self, *, own_loop: bool, progress_bar: bool) -> None:
        """Judges all rows, or as many as there is a budget for.

        Args:
            own_loop: whether the running event loop ends with the run.
            progress_bar: shows rows, failures and tokens on standard error.
        """
        total, unit = len(self.outcomes) * self._per_row, "row" if self._per_row == 1 else "judgement"
        async with AsyncExitStack() as stack:
            await self._open(stack, own_loop)
            bar = stack.enter_context(require("tqdm").tqdm(total=total, unit=unit, disable=not progress_bar))
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._options.max_concurrency, total)):
                        group.create_task(self._work(bar))
            except BaseExceptionGroup as stopped:
                first = stopped.exceptions[0]
                if not isinstance(first, FatalError):
                    raise first from None
                self.fatal = first

    async def _open(self, stack: AsyncExitStack, own_loop: bool) -> None:
        options, generators = self._options, self._batch.generators
        identities = [""] * len(generators)
        if options.store is not None:
            self._store = stack.enter_context(Store(options.store))
            identities = [generator_identity(generator, options.store_identity) for generator in generators]
            if len(set(identities)) < len(identities):
                raise InputError("two generators are the same to the store; samples= asks one several times")
        for generator, identity in zip(generators, identities, strict=True):
            call = await stack.enter_async_context(connect(generator, options.max_concurrency, own_loop=own_loop))
            self._endpoints.append(_Endpoint(call, identity, reply_limit(generator)))

    async def _work(self, bar: Any) -> None:
        for row, judge in self._todo:
            outcome = self.outcomes[row][judge] = await self._judge(row, judge)
            self._n_failed += outcome.failed
            if self._n_failed and self._stop_on_failure:
                return
            bar.set_postfix(failed=self._n_failed, tokens=self.usage["total_tokens"], refresh=False)
            bar.update()
            await asyncio.sleep(0)  # lets a cancellation in where no reply has to be waited for

    async def _judge(self, row: int, judge: int) -> Outcome:
        """One judgement: asks, and once again where the reply cannot be read."""
        generator, sample = divmod(judge, self._options.samples)
        endpoint, seconds = self._endpoints[generator], self._options.timeout
        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        messages = [Message("user", self._batch.prompt(row))]
        try:
            async with asyncio.timeout_at(deadline):
                for attempt in range(2):
                    request = Request(tuple(messages), self._batch.schema, sample)
                    reply = await self._ask(endpoint, request, attempt, deadline)
                    outcome = self._read(reply)
                    if outcome.reason != "invalid_output":
                        break
                    messages += [Message("assistant", reply.text)] if reply.text else []
                    messages += [Message("user", prompt.correction(str(outcome.detail)))]
                return outcome
        except TimeoutError:
            return Outcome(reason="timeout", detail=f"no judgement within {seconds:g} s")
        except CallError as error:
            if error.fatal:
                raise FatalError(f"the run stopped at row {row}: {error}") from error
            return Outcome(reason=error.reason, detail=str(error))

    def _read(self, reply: Reply) -> Outcome:
        meta, finish_reason = reply.meta or None, reply.meta.get("finish_reason")
        if isinstance(finish_reason, str) and finish_reason in _CUT_OFF:
            reason, detail = _CUT_OFF[finish_reason]
            return Outcome(reason=reason, detail=detail, meta=meta)
        if reply.refusal or reply.text is None:
            return Outcome(reason="refused", detail=reply.refusal or "the reply has no text", meta=meta)
        try:
            return Outcome(*self._batch.read(reply.text), meta=meta)
        except InvalidOutputError as error:
            return Outcome(reason="invalid_output", detail=str(error), meta=meta)

    async def _ask(self, endpoint: _Endpoint, request: Request, attempt: int, deadline: float | None) -> Reply:
        """The reply, from the store or from the generator."""
        reply: Reply
        if self._store is None:
            reply = await self._retrying(self._call, endpoint, request, deadline)
            return reply
        key = request_key(request, endpoint.identity)
        if stored := self._store.get(key):
            self.usage["stored"] += 1
            return stored
        reply = await self._retrying(self._call, endpoint, request, deadline)
        return self._store.put(key, reply, attempt)

    async def _call(self, endpoint: _Endpoint, request: Request, deadline: float | None) -> Reply:
        """One call, when the endpoint is ready, within the budget."""
        reserved = endpoint.reply_limit + prompt.estimated_tokens(request)
        await endpoint.gate.wait(deadline)
        await self._budget.reserve(reserved)
        used = 0
        try:
            await endpoint.gate.wait(deadline)  # it may have closed while the reservation waited
            self.usage["requests"] += 1
            reply = await endpoint.call(request)
            self.usage.update(reply.usage)
            used = reply.usage.get("total_tokens") or reserved
        except CallError as error:
            if error.retry_after is not None:
                endpoint.gate.hold(error.retry_after)
            raise
        finally:
            await self._budget.settle(reserved, used)
        return reply


def _retry(error: Exception) -> bool | float:
    """Whether stamina repeats a call, and after how long: where the server said when, the gate waits."""
    if not isinstance(error, CallError) or not error.retry:
        return False
    return 0.0 if error.retry_after is not None else True


def run_in_thread(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a coroutine to its end in an event loop of its own, whether or not one is running here.

    An interrupt cancels it, and is raised when it has cleaned up.
    """
    with require("anyio.from_thread").start_blocking_portal() as portal:
        result: T = portal.call(main)
        return result
