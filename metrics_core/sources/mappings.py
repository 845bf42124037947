"""Judgements and rankings as dicts: {query: {document: grade}}, {query: {document: score}}, {query: [document]}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from itertools import chain, repeat
from math import nan
from typing import Any, TypeAlias

import numpy as np

from metrics_core.blocks import FloatArray, Int32Array, IntArray, KeyTable, RankedBlock, ScoredBlock, pad
from metrics_core.compile import compiled
from metrics_core.kernels.join import locate
from metrics_core.keys import check_one_kind, encode_keys
from metrics_core.numbers import finite_floats, floats
from metrics_core.ranks import ranked_block

Id: TypeAlias = Any  # str, bytes or int; one kind in both
Numbers: TypeAlias = Mapping[Id, float]  # of documents

_COMPARISONS_A_LOOKUP = 64  # of scores in a kernel, against a look into a dict: as many take as long

_locate = compiled(locate)


class _Mappings:
    """Dicts of judgements and rankings of the same queries.

    Args:
        query_ids: the judged queries, in the order of the results.
        judgements: of each query, {document: grade}.
        rankings: of each query; an empty one where it has none.
    """

    releases_gil = False
    block_cells = 1 << 16  # smaller than others', as Python's numbers take more of the cache

    def __init__(self, query_ids: Sequence[Id], judgements: Sequence[Numbers], rankings: Sequence[Any]) -> None:
        self.query_ids = query_ids
        self.judgements, self.rankings = judgements, rankings
        self.n_judged, self.n_retrieved = _lengths(judgements), _lengths(rankings)

    def _grades(self, judgements: Sequence[Numbers], rows: IntArray) -> FloatArray:
        """(n_queries, n_judged) the grades that the queries at `rows` have; see `_padded`."""
        grades = [*chain.from_iterable(judged.values() for judged in judgements)]
        return self._padded("grade", grades, judgements, self.n_judged[rows], rows)

    def _padded(
        self, what: str, numbers: Sequence[Any], mappings: Sequence[Numbers], lengths: IntArray, rows: IntArray
    ) -> FloatArray:
        """(n_queries, longest) the numbers in the mappings of the queries at `rows`, NaN after a query's last.

        Args:
            what: they are, for the message.
            numbers: one after the other.
            lengths: (n_queries,) of the mappings.

        Raises:
            InputError: one of them is not a finite number.
        """

        def describe(position: int) -> str:
            place = int(np.searchsorted(np.cumsum(lengths), position, side="right"))
            document = list(mappings[place])[position - int(lengths[:place].sum())]
            return f"the {what} of document {document!r} for query {self.query_ids[rows[place]]!r}"

        return pad(finite_floats(numbers, describe), lengths, nan)


class _Listed:
    """The documents of some rankings of a block as lists, end to end, as dicts know no positions.

    What this costs is the memory in which the documents lie, touched here for the first time.
    """

    def __init__(self, rankings: Sequence[Numbers]) -> None:
        self.documents: list[Id] = []
        self._rankings = rankings
        self._starts = [-1] * len(rankings)

    def start(self, place: int) -> int:
        """Where in `documents` those of the ranking at this place in the block begin, from now on if not before."""
        if self._starts[place] < 0:
            self._starts[place] = len(self.documents)
            self.documents += self._rankings[place]
        return self._starts[place]

    def documents_at(self, places: IntArray, positions: IntArray) -> list[Id]:
        """The documents at `positions` (from 0) of the rankings at `places` in the block."""
        for place in np.flatnonzero(np.bincount(places)).tolist():
            self.start(place)
        return [*map(self.documents.__getitem__, (np.array(self._starts)[places] + positions).tolist())]


class MappingSource(_Mappings):
    """Dicts of judgements and of scored documents, {query: {document: score}}."""

    def match(self, rows: IntArray) -> ScoredBlock:
        """The judgements of the queries at `rows`, matched to their retrieved documents.

        The few judged documents are looked up in the ranking rather than the many retrieved ones in the judgements
        (a seventh of the time at 5 judged and 100 retrieved); their positions follow from their scores, but for ties.

        Raises:
            InputError: a grade or score that is not a finite number; documents' ids of several kinds.
        """
        n_judged, n_retrieved = self.n_judged[rows], self.n_retrieved[rows]
        judgements = [self.judgements[row] for row in rows.tolist()]
        rankings = [self.rankings[row] for row in rows.tolist()]
        comparisons = (n_judged * n_retrieved).sum()
        by_document = n_judged.sum() > n_retrieved.sum() or comparisons > _COMPARISONS_A_LOOKUP * n_retrieved.sum()
        tables, wanted = (judgements, rankings) if by_document else (rankings, judgements)
        n_wanted = n_retrieved if by_document else n_judged
        scores_in_turn: list[Any] = []
        looked_up: list[Any] = []
        for ranking, table, documents in zip(rankings, tables, wanted, strict=True):
            scores_in_turn += ranking.values()
            looked_up += map(table.get, documents, repeat(nan))  # in half the time, what was just read being cached
        scores = self._padded("score", scores_in_turn, rankings, n_retrieved, rows)
        judged = self._grades(judgements, rows)
        found = pad(floats(looked_up), n_wanted, nan)
        # Of each ranking the first document alone: to look at them all takes a third of an evaluation.
        check_one_kind("document", [*judgements, [*map(next, map(iter, filter(len, rankings)))]])
        listed = _Listed(rankings)
        if by_document:
            grades = found
        else:
            grades = np.full(scores.shape, nan)
            tied = np.empty((judged.size, 3), np.int64)
            tied = tied[: _locate(scores, n_retrieved, judged, found, grades, tied)]
            places, numbers, firsts = tied.T
            # By columns: a list for each tied document would make the garbage collector visit all of the input.
            positions: list[int] = []
            last = -1
            for q, j, first in zip(places.tolist(), numbers.tolist(), firsts.tolist(), strict=True):
                if q != last:
                    last, start, known = q, listed.start(q), list(judgements[q])
                positions.append(listed.documents.index(known[j], start + first) - start)
            grades[places, positions] = judged[places, numbers]

        def keys(places: IntArray, positions: IntArray) -> KeyTable:
            return encode_keys(listed.documents_at(places, positions))

        return ScoredBlock(rows, grades, n_retrieved, scores, judged, None, keys)

    def describe(self, row: int, position: int) -> str:
        """The id of one retrieved document."""
        return repr(list(self.rankings[row])[position])


class RankedListSource(_Mappings):
    """Dicts of judgements and of documents in rank order, {query: [document, ...]}."""

    def match(self, rows: IntArray) -> RankedBlock:
        """The judgements of the queries at `rows`, matched to their retrieved documents."""
        n_retrieved = self.n_retrieved[rows]
        judgements = [self.judgements[row] for row in rows.tolist()]
        rankings = [self.rankings[row] for row in rows.tolist()]
        check_one_kind("document", [*judgements, *rankings])
        judged = self._grades(judgements, rows)
        found = chain.from_iterable(
            map(grade_of.get, ranking, repeat(nan)) for grade_of, ranking in zip(judgements, rankings, strict=True)
        )
        grades = pad(floats([*found]), n_retrieved, nan)
        return ranked_block(rows, grades, n_retrieved, judged, _repeats(rankings, grades.shape))

    def describe(self, row: int, position: int) -> str:
        """The id of one retrieved document."""
        return repr(self.rankings[row][position])


def _lengths(collections: Sequence[Sized]) -> IntArray:
    """(n_collections,) how long each is."""
    return np.fromiter(map(len, collections), np.int64, len(collections))


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
