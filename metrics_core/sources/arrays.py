"""Judgements and rankings as integer ids in NumPy arrays, padded or flat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metrics_core.blocks import (
    BLOCK_CELLS,
    BoolArray,
    FloatArray,
    Int32Array,
    IntArray,
    KeyTable,
    RankedBlock,
    ScoredBlock,
)
from metrics_core.errors import InputError
from metrics_core.policies import Policies
from metrics_core.sources.ids import DuplicateJudgementError, IdLists, MatchedIds, match_ids


class IdArrays:
    """The documents of many queries as integer ids: the judged documents of each, or its ranking.

    Args:
        ids: (n_queries, width) padded rows, or (n,) with offsets; any integers that fit in 64 bits with a sign. Ids
            need to agree only within a query.
        grades: as ids; for judgements, None: every document has grade 1.
        scores: as ids; for rankings, None: the ids are in rank order.
        lengths: (n_queries,) how many ids of each padded row count; None: all.
        offsets: (n_queries + 1,) where the ids of each query begin and end, for flat ids.

    Raises:
        InputError: shapes, dtypes, lengths or offsets that do not fit; NaN or infinite grades or scores.
    """

    __slots__ = ("grades", "lists", "scores")

    def __init__(
        self,
        ids: ArrayLike,
        *,
        grades: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        offsets: ArrayLike | None = None,
    ) -> None:
        array = _array("ids", ids)
        if array.dtype.kind not in "iu" and array.size:
            raise InputError(f"ids must be integers, got an array of {array.dtype}")
        if array.ndim != (2 if offsets is None else 1):
            raise InputError(
                f"ids must be (n_queries, width), or (n,) with offsets; got {array.ndim} dimensions "
                f"{'without' if offsets is None else 'with'} offsets"
            )
        counts, begins = _padded(array, lengths) if offsets is None else _flat(array, offsets, lengths)
        given = array
        if array.dtype != np.int32:  # which is matched as it is
            array = array.astype(np.int64, copy=False)
        self.lists = IdLists(np.ascontiguousarray(array).reshape(-1), counts, begins)
        if given.dtype.kind == "u" and (wrapped := _counted(self.lists.ids < 0, self.lists)).size:
            raise InputError(f"ids must fit in 64-bit signed integers, got {given.reshape(-1)[wrapped[0]]}")
        self.grades = None if grades is None else _values("grades", grades, array, self.lists)
        self.scores = None if scores is None else _values("scores", scores, array, self.lists)

    def __len__(self) -> int:
        return self.lists.lengths.size

    def __repr__(self) -> str:
        return f"IdArrays(queries={len(self)}, documents={int(self.lists.lengths.sum())})"


def _padded(array: NDArray[Any], lengths: ArrayLike | None) -> tuple[IntArray, int]:
    n_queries, width = array.shape
    if lengths is None:
        return np.broadcast_to(np.int64(width), n_queries), width
    counts = _integers("lengths", lengths)
    if counts.shape != (n_queries,):
        raise InputError(f"lengths must have one value a query: {n_queries}, got shape {counts.shape}")
    wrong = np.flatnonzero((counts < 0) | (counts > width))
    if wrong.size:
        raise InputError(f"lengths must be between 0 and the width {width}, got {counts[wrong[0]]} in row {wrong[0]}")
    return counts, width


def _flat(array: NDArray[Any], offsets: ArrayLike, lengths: ArrayLike | None) -> tuple[IntArray, IntArray]:
    if lengths is not None:
        raise InputError("lengths goes with padded ids, offsets with flat ones; give one of them")
    ends = _integers("offsets", offsets)
    if ends.ndim != 1 or not ends.size or ends[0] != 0 or ends[-1] != array.size or (np.diff(ends) < 0).any():
        raise InputError(f"offsets must rise from 0 to the number of ids, {array.size}, got {ends!r}")
    return np.diff(ends), ends[:-1].copy()


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array; give plain values, and say with lengths= how many count in a row")
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(
            f"{name} must be an array, rows of one length: pad the shorter ones, and give lengths="
        ) from None


def _integers(name: str, values: ArrayLike) -> IntArray:
    array = _array(name, values)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} must be integers, got an array of {array.dtype}")
    return array.astype(np.int64)


def _values(name: str, values: ArrayLike, ids: NDArray[Any], lists: IdLists) -> FloatArray:
    array = _array(name, values)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be numbers, got an array of {array.dtype}")
    if array.shape != ids.shape:
        raise InputError(f"{name} must have the shape of ids, {ids.shape}, got {array.shape}")
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float64 is not finite, either
        flat = np.ascontiguousarray(array, np.float64).reshape(-1)
        all_finite = np.isfinite(flat.sum())  # no array as large again
    if not all_finite and (wrong := _counted(~np.isfinite(flat), lists)).size:
        raise InputError(f"{name} of row {lists.lists_of(wrong)[0]} must be finite, got {flat[wrong[0]]}")
    return flat


def _counted(found: BoolArray, lists: IdLists) -> IntArray:
    """The places of what was found within the lists: padding may hold anything."""
    places = np.flatnonzero(found)
    rows = lists.lists_of(places)
    counted: IntArray = places[places < lists.starts(rows) + lists.lengths[rows]]
    return counted


@dataclass(frozen=True, slots=True)
class ArraySource:
    """Judged and retrieved ids of the same queries, row by row."""

    query_ids: Sequence[Any]
    judged: IdLists
    grades: FloatArray  # of the judged ids
    retrieved: IdArrays
    policies: Policies
    unjudged_repeats: bool  # whether it matters that an unjudged document is retrieved twice
    releases_gil: ClassVar[bool] = True

    @property
    def n_judged(self) -> IntArray:
        """(n_queries,) judged documents of each query."""
        return self.judged.lengths

    @property
    def n_retrieved(self) -> IntArray:
        """(n_queries,) documents in each ranking."""
        return self.retrieved.lists.lengths

    @property
    def block_cells(self) -> int:
        """Twice as many without scores, where no array has a cell for each retrieved document."""
        return BLOCK_CELLS if self.retrieved.scores is not None else 2 * BLOCK_CELLS

    def match(self, rows: IntArray) -> RankedBlock | ScoredBlock:
        """The judgements of the queries at `rows`, matched to their retrieved documents."""
        retrieved = self.retrieved.lists
        matched = self._matched(rows)
        n_retrieved = retrieved.lengths[rows]
        if self.retrieved.scores is None:
            has_repeats = matched.n_repeats > 0
            return RankedBlock(rows, matched.grades, matched.ranks, n_retrieved, matched.judged, has_repeats)
        shape = rows.size, int(n_retrieved.max(initial=0))
        grades, repeat_of = np.full(shape, np.nan), None
        numbers, queries = np.nonzero(~np.isnan(matched.grades))
        grades[queries, matched.ranks[numbers, queries] - 1] = matched.grades[numbers, queries]
        if matched.n_repeats:
            repeat_of = np.full(shape, -1, np.int32)
            self._matched(rows, repeat_of)
            queries, places = np.nonzero(repeat_of >= 0)
            grades[queries, places] = grades[queries, repeat_of[queries, places]]
        places = retrieved.starts(rows)[:, None] + np.arange(shape[1])
        scores = self.retrieved.scores[np.minimum(places, self.retrieved.scores.size - 1)] if places.size else grades
        scores[np.arange(shape[1]) >= n_retrieved[:, None]] = np.nan
        return ScoredBlock(rows, grades, n_retrieved, scores, matched.judged, repeat_of, partial(self._keys, rows))

    def _matched(self, rows: IntArray, repeat_of: Int32Array | None = None) -> MatchedIds:
        try:
            return match_ids(
                rows,
                self.judged,
                self.grades,
                self.retrieved.lists,
                has_null=False,
                duplicate_judgements=self.policies.duplicate_judgements,
                unjudged_repeats=self.unjudged_repeats or self.retrieved.scores is not None,
                repeat_of=repeat_of,
            )
        except DuplicateJudgementError as error:
            row = rows[error.place]
            document = self.judged.ids[self.judged.place_of(row, error.position)]
            raise InputError(
                f"query {self.query_ids[row]!r} judges document {document} twice; remove one, or say which counts: "
                "duplicate_judgements='max' or duplicate_judgements='last'"
            ) from None

    def _keys(self, rows: IntArray, places: IntArray, positions: IntArray) -> KeyTable:
        ids = self.retrieved.lists.ids[self.retrieved.lists.starts(rows[places]) + positions].astype(np.int64)
        text = ids.astype("S20")  # decimal, as the same ids would stand in a file
        lengths = np.char.str_len(text).astype(np.int32)
        return KeyTable(text.view(np.uint8), np.arange(ids.size) * 20, lengths)

    def describe(self, row: int, position: int) -> str:
        """The id of one retrieved document."""
        lists = self.retrieved.lists
        return str(lists.ids[lists.place_of(row, position)])
