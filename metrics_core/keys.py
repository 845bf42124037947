"""Ids of documents and queries as byte strings in one buffer."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from numbers import Integral
from typing import TypeAlias, TypeGuard, TypeVar, cast

import numpy as np

from metrics_core.blocks import Int32Array, IntArray, KeyTable
from metrics_core.errors import InputError

Id: TypeAlias = str | bytes

_T = TypeVar("_T")


def file_keys(ids: Iterable[Id]) -> KeyTable:
    """Ids as they stand in a file: what is read from one and decoded gives the same bytes again."""
    ids = list(ids)
    if _only(ids, str):
        try:
            return _encode(ids)
        except UnicodeEncodeError as error:
            raise InputError(f"id {error.object!r} has no form in bytes: {error.reason}") from None
    if _only(ids, bytes):
        return _key_table(ids)
    kinds = ", ".join(sorted({type(key).__name__ for key in ids}))
    odd = next((key for key in ids if not isinstance(key, (str, bytes))), ids[0])
    raise InputError(f"ids must be all str or all bytes, got {kinds} ({odd!r})")


def encode_keys(keys: Sequence[object]) -> KeyTable:
    """Ids as byte strings that compare as trec_eval compares them, to settle ties.

    Args:
        keys: all str (their UTF-8 bytes; what `surrogateescape` stands for becomes the byte it was), all bytes, or
            all integers (their decimal text, as they would stand in a file).

    Raises:
        InputError: keys of several kinds.
    """
    with suppress(TypeError):  # they are not all str, which takes less time to find by joining than by types
        texts = cast("Sequence[str]", keys)
        try:
            return _encode(texts)
        except UnicodeEncodeError:
            return _key_table([_encode_any(text) for text in texts])
    if _only(keys, bytes):
        return _key_table(keys)
    if all(issubclass(kind, Integral) for kind in set(map(type, keys))):
        return _encode([str(int(key)) for key in cast("Sequence[int]", keys)])
    kinds = ", ".join(sorted({type(key).__name__ for key in keys}))
    raise InputError(f"ids of mixed types have no order: {kinds}; make them one type")


def check_one_kind(what: str, collections: Iterable[Collection[object]]) -> None:
    """Refuses ids of which some are strings and others numbers, say, which would never match.

    Args:
        what: the ids are of, for the message.
        collections: of ids; dicts' keys are.

    Raises:
        InputError: ids of different kinds, or of one that is no id's.
    """
    collections = list(collections)
    with suppress(TypeError):
        deque(map("".join, cast("list[Iterable[str]]", collections)), maxlen=0)  # half the time of looking at types
        return
    examples = {type(one): one for one in chain.from_iterable(collections)}
    kinds = {_kind_of_id(what, one): one for one in examples.values()}
    if len(kinds) > 1:
        shown = " and ".join(f"{one!r} ({kind})" for kind, one in kinds.items())
        raise InputError(f"{what} ids are of mixed types and would never match: {shown}; make them one type")


def _kind_of_id(what: str, one: object) -> str:
    for kind, name in ((str, "str"), (bytes, "bytes"), (Integral, "int")):
        if isinstance(one, kind):
            return name
    hint = "; documents and scores are a dict, {document: score}" if isinstance(one, tuple) else ""
    raise InputError(f"{what} ids must be str, int or bytes, got {one!r} ({type(one).__name__}){hint}")


def _only(keys: Sequence[object], kind: type[_T]) -> TypeGuard[Sequence[_T]]:
    return all(issubclass(key_type, kind) for key_type in set(map(type, keys)))


def _encode(texts: Sequence[str]) -> KeyTable:
    with suppress(UnicodeEncodeError):
        # Ends are found where NULs stand: in a quarter of the time of asking each text for its length. Of a bytearray,
        # so that the array can be written to like all others: numba compiles once more for read-only ones.
        blob = np.frombuffer(bytearray("\0".join(texts), "utf-8", "surrogateescape"), np.uint8)
        ends = np.append(np.flatnonzero(blob == 0), blob.size)
        if ends.size == len(texts):
            starts = np.append(0, ends[:-1] + 1)
            return KeyTable(blob, starts, (ends - starts).astype(np.int32))
    # A text holds a NUL itself or what has no bytes, or there is none.
    return _key_table([text.encode("utf-8", "surrogateescape") for text in texts])


def _encode_any(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _key_table(keys: Sequence[bytes]) -> KeyTable:
    lengths = np.fromiter(map(len, keys), np.int32, len(keys))
    return KeyTable(np.frombuffer(bytearray(b"".join(keys)), np.uint8), starts_of(lengths), lengths)


def starts_of(lengths: Int32Array | IntArray) -> IntArray:
    """(n,) where strings of these lengths begin that lie one after the other."""
    starts = np.cumsum(lengths, dtype=np.int64)
    starts -= lengths
    return starts


def decode_keys(keys: KeyTable) -> list[str]:
    """The ids as text: UTF-8, other bytes by `surrogateescape`, so that different bytes stay different."""
    blob = keys.blob.data
    ends = (keys.starts + keys.lengths).tolist()
    return [
        str(blob[start:end], "utf-8", "surrogateescape") for start, end in zip(keys.starts.tolist(), ends, strict=True)
    ]
