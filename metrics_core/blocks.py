"""The arrays that pass from a source to a metric, and how queries are cut into blocks.

Padded arrays are the fastest layout for the kernels, and the most wasteful one where lengths differ: padding 100,000
rankings of 100 documents to the one that has 100,000 takes 40 GB. So queries are cut into blocks of similar lengths,
each padded to its own width, which caps the waste at a quarter whatever the skew; a block is also the unit of
threading and bounds the memory in use.

The kernels see of a ranking its judged documents and their ranks, as no metric but the counts of documents depends on
the others: five of a hundred, where five are judged. And they see them document by document, (n_documents, n_queries):
one step down the rankings is then the same operation on adjacent numbers, which the compiler vectorises. Measured on a
million rankings of ten, the five contract metrics take a ninth of the time that they take query by query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Int32Array: TypeAlias = NDArray[np.int32]
ByteArray: TypeAlias = NDArray[np.uint8]
UInt16Array: TypeAlias = NDArray[np.uint16]
UInt64Array: TypeAlias = NDArray[np.uint64]
BoolArray: TypeAlias = NDArray[np.bool_]

_Scalar = TypeVar("_Scalar", bound=np.generic)

REPEAT = -inf  # the grade of a document's second place in a ranking: neither relevant, non-relevant nor unjudged
NO_RANK = 2**31 - 1  # of a cell that holds no document
LARGEST_GRADE = 1e300  # or gain: sums of larger ones would overflow

BLOCK_CELLS = 1 << 18  # 2 MB of grades, if every document has one: bounds the memory, and leaves blocks for the threads
_GROWTH = 1.25  # the widths within a block differ by at most this factor


@dataclass(frozen=True, slots=True)
class KeyTable:
    """Byte strings where they lie in a buffer; strings compare as their UTF-8 bytes do."""

    blob: ByteArray  # any length
    starts: IntArray  # (n_keys,), offsets into blob
    lengths: Int32Array  # (n_keys,), in bytes

    def take(self, places: IntArray | BoolArray | slice) -> KeyTable:
        """The strings at these places."""
        return KeyTable(self.blob, self.starts[places], self.lengths[places])


@dataclass(frozen=True, slots=True)
class RankedBlock:
    """What a source knows of some queries whose rankings are in rank order: judgements matched to their documents.

    Equality of documents is settled here. Cells after a query's last document or judgement are NaN, and NO_RANK.
    """

    rows: IntArray  # (n_queries,), where the queries stand in the batch
    grades: FloatArray  # (n_documents, n_queries), of the judged documents and repeats (REPEAT), in rank order; only
    # the first one may be there if no metric reads another
    ranks: Int32Array  # (n_documents, n_queries), from 1
    n_retrieved: IntArray  # (n_queries,)
    judged: FloatArray  # (n_queries, n_judged), the grades of all judged documents, in any order; any memory order
    has_repeats: bool


@dataclass(frozen=True, slots=True)
class ScoredBlock:
    """What a source knows of some queries with scores: judgements matched to the documents, in the order they came.

    Equality of documents is settled here, so that ids are no longer needed but to order ties. Cells after a query's
    last document or judgement are NaN.
    """

    rows: IntArray  # (n_queries,), where the queries stand in the batch
    grades: FloatArray  # (n_queries, width), the judgement of each retrieved document, NaN = unjudged
    n_retrieved: IntArray  # (n_queries,)
    scores: FloatArray  # (n_queries, width)
    judged: FloatArray  # (n_queries, n_judged), the grades of all judged documents, in any order; any memory order
    repeat_of: Int32Array | None  # (n_queries, width), where an equal document came first, else -1; None: no repeats
    keys: Callable[[IntArray, IntArray], KeyTable]  # ids by place in rows and position


class Source(Protocol):
    """Judgements and rankings of the same queries, of whatever kind: what the join asks of them, block by block."""

    @property
    def query_ids(self) -> Sequence[Any]:
        """The judged queries, in the order of the results."""

    @property
    def n_retrieved(self) -> IntArray:
        """(n_queries,) documents in each ranking."""

    @property
    def n_judged(self) -> IntArray:
        """(n_queries,) judged documents of each query."""

    @property
    def releases_gil(self) -> bool:
        """Whether several threads match faster than one."""

    @property
    def block_cells(self) -> int:
        """How many padded cells a block may have: see `cut_blocks`."""

    def match(self, rows: IntArray) -> RankedBlock | ScoredBlock:
        """The judgements of the queries at `rows`, matched to their retrieved documents; called from any thread."""

    def describe(self, row: int, position: int) -> str:
        """One retrieved document, for a message: its id, and its file and line where it has them."""


@dataclass(frozen=True, slots=True)
class GradeBlock:
    """What the kernels see of some queries: grades, their ranks, and the ideal order; no ids, no scores.

    Arrays are C-contiguous. A grade is any finite float, NaN for an unjudged document, or REPEAT. Cells after a query's
    last document or judgement are NaN, and NO_RANK.
    """

    rows: IntArray  # (n_queries,), where the queries stand in the batch
    grades: FloatArray  # (n_documents, n_queries), in rank order, of all judged documents and repeats at least, or
    # the first one alone if no metric reads another
    ranks: Int32Array  # (n_documents, n_queries), from 1
    n_retrieved: IntArray  # (n_queries,), the length of each ranking
    ideal: FloatArray  # (n_judged, n_queries), the grades of all judged documents, descending
    tie_ends: IntArray | None = None  # (width, n_queries), for ties="expected": where ranks' ties end; None: no ties


def cut_blocks(n_retrieved: IntArray, n_judged: IntArray, block_cells: int = BLOCK_CELLS) -> Iterator[IntArray]:
    """Positions of the queries of each block, ascending: every query in one block, similar lengths together.

    Args:
        n_retrieved: (n_queries,) documents in each ranking.
        n_judged: (n_queries,) judged documents of each query.
        block_cells: the padded cells a block may have, unless it is a single query.
    """
    n_queries = n_retrieved.size
    if n_queries == 0:
        return
    lengths = n_retrieved, n_judged
    longest = sum(int(each.max()) for each in lengths)
    if n_queries * longest <= block_cells or all(each.max() <= _GROWTH * each.min() for each in lengths):
        step = max(1, block_cells // max(longest, 1))
        for first in range(0, n_queries, step):
            yield np.arange(first, min(first + step, n_queries))
        return
    classes = [_length_class(each) for each in lengths]
    order = np.lexsort(classes[::-1])
    changes = np.diff(classes[0][order]) | np.diff(classes[1][order])
    for group in np.split(order, np.flatnonzero(changes) + 1):
        step = max(1, block_cells // max(sum(int(each[group].max()) for each in lengths), 1))
        for first in range(0, group.size, step):
            yield group[first : first + step]


def _length_class(lengths: IntArray) -> IntArray:
    """Classes within which lengths differ by at most _GROWTH."""
    classes: IntArray = np.ceil(np.log(np.maximum(lengths, 1)) / np.log(_GROWTH)).astype(np.int64)
    classes[lengths == 0] = -1
    return classes


def pad(flat: NDArray[_Scalar], lengths: IntArray, fill: float) -> NDArray[_Scalar]:
    """Flat values of rows of the given lengths as a (n_rows, longest) array; a view where the rows are equally long."""
    width = int(lengths.max(initial=0))
    if flat.size == lengths.size * width:
        return flat.reshape(lengths.size, width)
    padded = np.full((lengths.size, width), fill, flat.dtype)
    padded[np.arange(width) < lengths[:, None]] = flat
    return padded
