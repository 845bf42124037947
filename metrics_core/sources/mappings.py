"""Judgements and rankings as dicts: {query: {document: grade}}, {query: {document: score}}, {query: [document]}."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from itertools import chain, compress, repeat
from math import nan
from typing import Any, TypeAlias

import numpy as np

from metrics_core.blocks import BoolArray, FloatArray, Int32Array, IntArray, KeyTable, RankedBlock, ScoredBlock, pad
from metrics_core.compile import compiled
from metrics_core.kernels.join import locate
from metrics_core.keys import check_one_kind, encode_keys
from metrics_core.numbers import finite_floats, floats
from metrics_core.ranks import ranked_block

Id: TypeAlias = Any  # str, bytes or int; one kind in both
Numbers: TypeAlias = Mapping[Id, float]  # of documents

_COMPARISONS_A_LOOKUP = 64  # of scores in a kernel, against a look into a dict: as many take as long

_locate = compiled(locate, lambda scores, _n, judged, *_: scores.size * (1 + judged.shape[1]))


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
        # Of each ranking the first document alone: to look at them all takes a third of an evaluation.
        firsts = [*map(next, map(iter, filter(len, rankings)))]
        try:
            "".join(firsts)
            all_grades, all_scores, looked_up = _read(judgements, rankings, tables, wanted, "".join)
        except TypeError:  # they are not all str
            check_one_kind("document", [*judgements, firsts])
            all_grades, all_scores, looked_up = _read(judgements, rankings, tables, wanted, len)  # checked already
        scores = self._padded("score", all_scores, rankings, n_retrieved, rows)
        grades_of_judged = self._padded("grade", all_grades, judgements, n_judged, rows)
        found = pad(floats(looked_up), n_retrieved if by_document else n_judged, nan)
        grades = found
        tied = np.zeros(scores.shape, np.bool_)
        documents_of_tied: list[Id] = []
        if not by_document:
            grades = np.full(scores.shape, nan)
            _locate(scores, n_retrieved, grades_of_judged, found, grades, tied)
            grades_of_tied: list[Any] = []
            for place in np.flatnonzero(tied.any(axis=1)).tolist():
                documents = [*_marked(rankings[place], tied[place])]
                grades_of_tied += map(judgements[place].get, documents, repeat(nan))
                documents_of_tied += documents
            grades[tied] = floats(grades_of_tied)

        def keys(places: IntArray, positions: IntArray) -> KeyTable:
            listed, documents = tied, documents_of_tied
            cells = places * scores.shape[1] + positions
            if not tied.take(cells).all():  # they were looked up, or their scores are equal as float32 only
                listed = np.zeros(scores.shape, np.bool_)
                listed.put(cells, True)
                documents = [*chain.from_iterable(map(_marked, rankings, listed))]
            return encode_keys(documents).take(np.cumsum(listed)[cells] - 1)

        return ScoredBlock(rows, grades, n_retrieved, scores, grades_of_judged, None, keys)

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
        all_grades = [*chain.from_iterable(judged.values() for judged in judgements)]
        grades_of_judged = self._padded("grade", all_grades, judgements, self.n_judged[rows], rows)
        found = chain.from_iterable(
            map(grade_of.get, ranking, repeat(nan)) for grade_of, ranking in zip(judgements, rankings, strict=True)
        )
        grades = pad(floats([*found]), n_retrieved, nan)
        return ranked_block(rows, grades, n_retrieved, grades_of_judged, _repeats(rankings, grades.shape))

    def describe(self, row: int, position: int) -> str:
        """The id of one retrieved document."""
        return repr(self.rankings[row][position])


def _read(
    judgements: Sequence[Numbers],
    rankings: Sequence[Numbers],
    tables: Sequence[Numbers],
    wanted: Sequence[Numbers],
    check: Callable[[Numbers], Any],
) -> tuple[list[Any], list[Any], list[Any]]:
    """All grades, all scores, and what the tables hold of the documents wanted, NaN where nothing; end to end.

    A query at a time, as what was just read is cached: with many judgements this takes half the time of reading first
    all that is judged. For the same reason the judged documents are checked here.

    Args:
        judgements, rankings: of each query.
        tables, wanted: the rankings and the judgements, or the other way round.
        check: called with the judgements of each query; raises where their ids are not what it checks for.
    """
    grades: list[Any] = []
    scores: list[Any] = []
    found: list[Any] = []
    for judged, ranking, table, documents in zip(judgements, rankings, tables, wanted, strict=True):
        grades += judged.values()
        check(judged)
        scores += ranking.values()
        found += map(table.get, documents, repeat(nan))
    return grades, scores, found


def _marked(ranking: Numbers, marks: BoolArray) -> Iterator[Id]:
    """The documents at the positions that are marked; those after the last are not touched."""
    return compress(ranking, marks.tobytes().rstrip(b"\0"))


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
