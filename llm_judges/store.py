"""The store: every reply that was paid for, by what was asked; a rerun asks only for what is missing."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike, fspath
from typing import Any, Self

from llm_judges.failures import FatalError
from llm_judges.generator import Reply, Request
from metrics_core.errors import InputError

_TABLE = """CREATE TABLE IF NOT EXISTS replies
    (key TEXT PRIMARY KEY, attempt INTEGER NOT NULL, reply TEXT NOT NULL) WITHOUT ROWID"""
_SECRET = re.compile(r"api_?key|secret|password|authorization|(^|_)token$", re.IGNORECASE)
_NOT_OF_THE_REPLY = {"timeout", "max_retries", "streaming_callback"}


class Store:
    """A sqlite file of raw replies; several runs and processes may share one.

    A reply is on its way to the disk before `put` returns: it survives the process, whatever ends it. Outcomes are not
    kept: they are read from the replies, so that a better reader rescores for free.

    Args:
        path: the file; created if there is none.

    Raises:
        InputError: a file that cannot be one.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = fspath(path)
        with ExitStack() as opened:
            try:
                self._database = sqlite3.connect(self._path, timeout=60, isolation_level=None)
                opened.callback(self._database.close)
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = NORMAL")  # in WAL: no fsync a reply, never a torn file
                self._database.execute(_TABLE)
            except sqlite3.Error as error:
                raise InputError(f"{self._path} cannot be used as a store: {error}") from error
            opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._database.close()

    def get(self, key: str) -> Reply | None:
        """The reply to that request, if it has been paid for."""
        with self._or_stop():
            found = self._database.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            return Reply(**json.loads(found[0])) if found else None

    def put(self, key: str, reply: Reply, attempt: int) -> Reply:
        """Keeps a reply, and gives back the one that counts: the first, where another run was faster."""
        # JSON in ASCII: a reply may have lone surrogates, which sqlite's UTF-8 has not
        text = json.dumps({"text": reply.text, "refusal": reply.refusal, "meta": reply.meta}, default=str)
        with self._or_stop():
            insert = "INSERT OR IGNORE INTO replies VALUES (?, ?, ?)"
            is_first = self._database.execute(insert, (key, attempt, text)).rowcount
        return reply if is_first else self.get(key) or reply

    @contextmanager
    def _or_stop(self) -> Iterator[None]:
        try:
            yield
        # A full disk, a file that was taken away or holds something else: going on would lose what is paid for
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise FatalError(f"the run stopped: the store {self._path} failed: {error}") from error


def request_key(request: Request, identity: str) -> str:
    """The key of a request to a generator of that identity: equal for equal requests, whatever the order of keys."""
    asked = {
        "generator": identity,
        "messages": [[message.role, message.text] for message in request.messages],
        "schema": request.schema,
        "sample": request.sample,
    }
    return hashlib.sha256(_canonical(asked).encode()).hexdigest()


def generator_identity(generator: Any, store_identity: str | None) -> str:
    """What tells a generator's replies from another's: its `to_dict()` without secrets, and `store_identity`.

    Raises:
        InputError: it has no usable `to_dict()`, and there is no store_identity.
    """
    try:
        described = _public(generator.to_dict()) if hasattr(generator, "to_dict") else None
    except ValueError:  # Haystack's, of a secret that is no environment variable
        described = None
    if described is None and store_identity is None:
        raise InputError(
            f"store needs to know whose replies it keeps, and {type(generator).__name__} cannot be described by "
            "to_dict(); pass store_identity='<a name for the model and its settings>'"
        )
    return _canonical([described, store_identity])


def _public(value: Any) -> Any:
    """Without secrets, and without what does not change a reply."""
    if isinstance(value, dict):
        shown = (name for name in value if name not in _NOT_OF_THE_REPLY and not _SECRET.search(str(name)))
        return {name: _public(value[name]) for name in shown}
    return [_public(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
