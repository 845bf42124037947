"""Judgements and rankings as dicts: {query: {document: grade}}, {query: {document: score}}, {query: [document]}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from math import nan
from typing import Any, TypeAlias

import numpy as np

from metrics_core.blocks import FloatArray, Int32Array, IntArray, KeyTable, RankedBlock, ScoredBlock, pad
from metrics_core.compile import compiled
from metrics_core.kernels.join import locate
from metrics_core.keys import encode_keys
from metrics_core.numbers import finite_floats
from metrics_core.ranks import ranked_block

Id: TypeAlias = Any  # str, bytes or int; one kind in both
Mappings: TypeAlias = Mapping[Id, Mapping[Id, float]]

_COMPARISONS_A_LOOKUP = 64  # of scores in a kernel, against a look into a dict: as many take as long

_locate = compiled(locate)


class _Mappings:
    """Dicts of judgements and of rankings.

    Args:
        query_ids: the judged queries, in the order of the results.
        qrels: {query: {document: grade}}.
        run: the ranking of each query; queries of query_ids that it lacks have an empty one.
    """

    releases_gil = False

    def __init__(self, query_ids: Sequence[Id], qrels: Mappings, run: Mapping[Id, Any]) -> None:
        self.query_ids = query_ids
        self.judgements = [qrels[query] for query in query_ids]
        self.rankings: list[Any] = [run.get(query, {}) for query in query_ids]
        self.n_judged: IntArray = np.fromiter(map(len, self.judgements), np.int64, len(query_ids))
        self.n_retrieved: IntArray = np.fromiter(map(len, self.rankings), np.int64, len(query_ids))


class _Listed:
    """The documents of some rankings of a block as lists, end to end, as dicts know no positions.

    What this costs is the memory in which the documents lie, touched here for the first time.
    """

    def __init__(self) -> None:
        self._documents: list[Id] = []
        self._starts: dict[int, int] = {}

    def add(self, place: int, ranking: Iterable[Id]) -> list[Id]:
        """The documents of the ranking at this place in the block, kept for `documents_at`."""
        documents = list(ranking)
        self._starts[place] = len(self._documents)
        self._documents += documents
        return documents

    def documents_at(self, places: IntArray, positions: IntArray, rankings: Sequence[Iterable[Id]]) -> list[Id]:
        """The documents at `positions` (from 0) of the rankings at `places` in the block."""
        distinct, which = np.unique(places, return_inverse=True)
        for place in distinct.tolist():
            if place not in self._starts:
                self.add(place, rankings[place])
        starts = np.array([self._starts[place] for place in distinct.tolist()])
        return [*map(self._documents.__getitem__, (starts[which] + positions).tolist())]


class MappingSource(_Mappings):
    """Dicts of judgements and of scored documents, {query: {document: score}}."""

    def match(self, rows: IntArray) -> ScoredBlock:
        """The judgements of the queries at `rows`, matched to their retrieved documents.

        The few judged documents are looked up in the ranking rather than the many retrieved ones in the judgements
        (a seventh of the time at 5 judged and 100 retrieved); their positions follow from their scores, but for ties.
        """
        n_judged, n_retrieved = self.n_judged[rows], self.n_retrieved[rows]
        judgements = [self.judgements[row] for row in rows]
        rankings = [self.rankings[row] for row in rows]
        judged = pad(_numbers("grade", judgements, n_judged, self.query_ids, rows), n_judged, nan)
        scores = pad(_numbers("score", rankings, n_retrieved, self.query_ids, rows), n_retrieved, nan)
        listed = _Listed()
        comparisons = (n_judged * n_retrieved).sum()
        if n_judged.sum() > n_retrieved.sum() or comparisons > _COMPARISONS_A_LOOKUP * n_retrieved.sum():
            grades = _look_up(judgements, rankings, n_retrieved)
        else:
            judged_scores = _look_up(rankings, judgements, n_judged)
            grades = np.full(scores.shape, nan)
            tied = np.empty((judged.size, 3), np.int64)
            tied = tied[: _locate(scores, n_retrieved, judged, judged_scores, grades, tied)]
            places, numbers, firsts = tied.T
            # By columns: a list for each tied document would make the garbage collector visit all of the input.
            positions: list[int] = []
            last = -1
            for q, j, first in zip(places.tolist(), numbers.tolist(), firsts.tolist(), strict=True):
                if q != last:
                    last, documents, wanted = q, listed.add(q, rankings[q]), list(judgements[q])
                positions.append(documents.index(wanted[j], first))
            grades[places, positions] = judged[places, numbers]

        def keys(places: IntArray, positions: IntArray) -> KeyTable:
            return encode_keys(listed.documents_at(places, positions, rankings))

        return ScoredBlock(rows, grades, n_retrieved, scores, judged, None, keys)

    def describe(self, row: int, position: int) -> str:
        """The id of one retrieved document."""
        return repr(list(self.rankings[row])[position])


class RankedListSource(_Mappings):
    """Dicts of judgements and of documents in rank order, {query: [document, ...]}."""

    def match(self, rows: IntArray) -> RankedBlock:
        """The judgements of the queries at `rows`, matched to their retrieved documents."""
        n_judged, n_retrieved = self.n_judged[rows], self.n_retrieved[rows]
        judgements = [self.judgements[row] for row in rows]
        rankings = [self.rankings[row] for row in rows]
        judged = pad(_numbers("grade", judgements, n_judged, self.query_ids, rows), n_judged, nan)
        grades = _look_up(judgements, rankings, n_retrieved)
        return ranked_block(rows, grades, n_retrieved, judged, _repeats(rankings, grades.shape))

    def describe(self, row: int, position: int) -> str:
        """The id of one retrieved document."""
        return repr(self.rankings[row][position])


def _numbers(
    what: str, mappings: Sequence[Mapping[Id, float]], lengths: IntArray, query_ids: Sequence[Id], rows: IntArray
) -> FloatArray:
    def describe(position: int) -> str:
        place = int(np.searchsorted(np.cumsum(lengths), position, side="right"))
        document = list(mappings[place])[position - int(lengths[:place].sum())]
        return f"the {what} of document {document!r} for query {query_ids[rows[place]]!r}"

    return finite_floats(
        lambda: chain.from_iterable(mapping.values() for mapping in mappings),
        int(lengths.sum()),
        describe,
        samples=[next(iter(mapping.values())) for mapping in mappings if mapping] if what == "score" else None,
    )


def _look_up(tables: Sequence[Mapping[Id, float]], keys: Sequence[Iterable[Id]], n: IntArray) -> FloatArray:
    """(n_tables, longest) the number that each table has for each of its keys, NaN for none; n: (n_tables,) keys."""
    numbers = chain.from_iterable(
        map(table.get, wanted, repeat(nan)) for table, wanted in zip(tables, keys, strict=True)
    )
    return pad(np.fromiter(numbers, np.float64, int(n.sum())), n, nan)


def _repeats(rankings: Sequence[Sequence[Id]], shape: tuple[int, int]) -> Int32Array | None:
    with_repeats = [place for place, ranking in enumerate(rankings) if len(set(ranking)) < len(ranking)]
    if not with_repeats:
        return None
    repeat_of = np.full(shape, -1, np.int32)
    for place in with_repeats:
        first: dict[Id, int] = {}
        for position, document in enumerate(rankings[place]):
            if first.setdefault(document, position) != position:
                repeat_of[place, position] = first[document]
    return repeat_of
