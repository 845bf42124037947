"""A small OpenAI-compatible server on loopback: real HTTP, scripted answers, bounded in requests and in time.

In a thread of a test:

    with Server([says('{"ok": 1}'), fails(429, headers={"retry-after": "1"})]) as server:
        OpenAIChatGenerator(api_key="none", api_base_url=server.url)

In a process of its own, which prints its URL and ends with its standard input:

    python -m tests.judges.server --delay 0.05 --text '{"ok": 1}'
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Seen:
    """A request as it came: when (monotonic seconds), its headers (names in lower case) and its body."""

    at: float
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        return self.body["messages"][0]["content"]

    @property
    def is_correction(self) -> bool:
        return len(self.body["messages"]) > 1


@dataclass(frozen=True)
class Answer:
    """What is sent back, after `delay` seconds; `drop` resets the connection instead."""

    status: int = 200
    body: Any = ""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drop: bool = False


def says(text: str | None, *, finish: str = "stop", tokens: int = 30, delay: float = 0.0, refusal: str | None = None):
    """A completion; a third of its tokens are the prompt's."""
    usage = {"prompt_tokens": tokens // 3, "completion_tokens": tokens - tokens // 3, "total_tokens": tokens}
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": "loopback", "choices": [choice]}
    return Answer(body=body | {"usage": usage}, delay=delay)


def fails(
    status: int, code: str | None = None, message: str = "no", *, param: str | None = None, **more: Any
) -> Answer:
    """An error in OpenAI's form."""
    return Answer(status, {"error": {"message": message, "type": code, "code": code, "param": param}}, **more)


Script = Iterable[Answer] | Callable[[Seen], Answer]


class Server:
    """Answers POSTs by a script: answers in the order of arrival, or a function of the request.

    After `max_requests` it answers 503 and no more of the script; after `max_seconds` it stops.
    """

    def __init__(self, script: Script, *, max_requests: int = 1_000, max_seconds: float = 60.0, keep: bool = True):
        self.requests: list[Seen] = []
        self.answered = 0
        self.under_way = 0
        self.most_under_way = 0
        self._script = script if callable(script) else None
        self._answers = iter(() if callable(script) else script)
        self._max_requests = max_requests
        self._max_seconds = max_seconds
        self._keep = keep
        self._connections: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._started: Future[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._started.result(10)[0]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result(10)
        return self

    def __exit__(self, *error: object) -> None:
        _, loop, stop = self._started.result(10)
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        stop = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=2**24)
        self._started.set_result((server.sockets[0].getsockname()[1], asyncio.get_running_loop(), stop))
        try:
            async with asyncio.timeout(self._max_seconds):
                await stop.wait()
        except TimeoutError:
            pass
        server.close()
        for connection, handler in list(self._connections.items()):
            connection.transport.abort()
            handler.cancel()
        await asyncio.gather(*self._connections.values(), return_exceptions=True)
        await asyncio.sleep(0)  # the transports close

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[writer] = asyncio.current_task()
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            del self._connections[writer]
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        seen = Seen(time.monotonic(), head[0].split()[1], headers, json.loads(body or b"{}"))
        self.answered += 1
        if self._keep:
            self.requests.append(seen)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            answer = self._answer(seen)
            if answer.delay:
                await asyncio.sleep(answer.delay)
        finally:
            self.under_way -= 1
        if answer.drop:
            writer.transport.abort()
            return False
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        payload = text.encode()
        sent = {"content-type": "application/json", "content-length": str(len(payload))} | answer.headers
        lines = [f"HTTP/1.1 {answer.status} Scripted", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        writer.write("\r\n".join(lines).encode("latin-1") + payload)
        await writer.drain()
        return True

    def _answer(self, seen: Seen) -> Answer:
        if self.answered > self._max_requests:
            return fails(503, message="the test server has answered enough")
        if self._script is not None:
            return self._script(seen)
        return next(self._answers, fails(400, message="the script has ended"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--text", default='{"statements": ["a", "b"], "statement_scores": [1, 0]}')
    parser.add_argument("--max-requests", type=int, default=5_000)
    parser.add_argument("--max-seconds", type=float, default=120.0)
    options = parser.parse_args()
    answer = says(options.text, delay=options.delay)
    limits = {"max_requests": options.max_requests, "max_seconds": options.max_seconds}
    with Server(lambda _: answer, keep=False, **limits) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
