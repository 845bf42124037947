"""Lists of documents: comparison values become integer ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np

from metrics_core.blocks import BLOCK_CELLS, NO_RANK, FloatArray, IntArray, RankedBlock, pad
from metrics_core.documents import DocumentLike, comparison_value, comparison_values, first_of
from metrics_core.errors import InputError, MetricsError
from metrics_core.numbers import finite_floats
from metrics_core.policies import Policies
from metrics_core.sources.ids import NULL, DuplicateJudgementError, IdLists, match_ids

DocumentLists = Sequence[Sequence[DocumentLike]]

_CHUNK = 64  # questions that share a dict of ids: it stays in the cache (one dict for all takes twice the time)
_COMPARISONS_A_HASH = 10  # measured: comparing two different strings takes a tenth of hashing and looking up a new one


@dataclass(frozen=True, slots=True)
class Needs:
    """What the metrics at hand read of documents; what they do not is not found out."""

    grades: bool  # the scores of ground-truth documents
    unjudged_repeats: bool  # whether an unjudged document is retrieved twice
    only_first: bool  # of a ranking, no more than where the first judged document stands


_PLAIN = frozenset((str, int, float, bool, type(None)))


class DocumentSource:
    """Ground-truth and retrieved documents, question by question; a document is its comparison value.

    Args:
        query_ids: names of the questions, for messages and results.
        ground_truth, retrieved: one list of documents a question, equally many.
        field: the comparison field.
        policies: empty_key and duplicate_judgements are theirs to say.
        needs: where grades are not needed, every grade is 1, and no document's score is looked at; with only_first,
            documents after the first judged one may be left unread.

    Raises:
        InputError: an unknown comparison field.
    """

    releases_gil = False
    block_cells = BLOCK_CELLS

    def __init__(
        self,
        query_ids: Sequence[Any],
        ground_truth: DocumentLists,
        retrieved: DocumentLists,
        field: str,
        policies: Policies,
        needs: Needs,
    ) -> None:
        self.query_ids = query_ids
        self.ground_truth, self.retrieved = ground_truth, retrieved
        self.value, self.values, self.first_of = comparison_value(field), comparison_values(field), first_of(field)
        self.policies = policies
        self.needs = needs
        self._nulls: tuple[Any, ...] = (None, "") if policies.empty_key == "ignore" else (None,)
        with self._explained():
            self.n_judged: IntArray = np.fromiter(map(len, ground_truth), np.int64, len(ground_truth))
            self.n_retrieved: IntArray = np.fromiter(map(len, retrieved), np.int64, len(retrieved))

    def match(self, rows: IntArray) -> RankedBlock:
        """The judgements of the questions at `rows`, matched to their retrieved documents.

        Few relevant documents are compared with the retrieved ones; many are matched through ids. Comparing takes
        half the time of hashing at 2 relevant and 10 retrieved texts of 200 characters, but finds no repeats of
        unjudged documents.
        """
        n_judged, n_retrieved = self.n_judged[rows], self.n_retrieved[rows]
        n_comparisons = (n_judged * (n_judged // 2 + n_retrieved)).sum()
        few = n_comparisons <= _COMPARISONS_A_HASH * (n_judged + n_retrieved).sum()
        with self._explained():
            if few and not self.needs.unjudged_repeats:
                matched = self._match_by_comparing(rows, n_judged, n_retrieved)
                if matched is not None:
                    return matched
            return self._match_by_ids(rows, n_judged, n_retrieved)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Says which object is no document, where reading one failed."""
        try:
            yield
        except MetricsError:
            raise
        except ValueError as error:
            raise InputError(
                f"documents' comparison values must be equal or not, and scores numbers: {error}"
            ) from error
        except (AttributeError, TypeError):
            for name, lists in (
                ("ground truth", self.ground_truth),
                ("retrieved documents", self.retrieved),
            ):
                for question, documents in zip(self.query_ids, lists, strict=True):
                    _check_documents(name, question, documents)
            raise

    def _match_by_comparing(self, rows: IntArray, n_judged: IntArray, n_retrieved: IntArray) -> RankedBlock | None:
        """None if a ground-truth value is null, comes twice, or is of a type whose `==` may say else than its hash."""
        # A question's documents are visited once and together: what this loop costs is the memory they lie in.
        found: list[int] = []  # ground-truth documents that were retrieved, by their place among those of all rows
        positions: list[int] = []  # and where
        place = 0
        truths = self.values([self.ground_truth[row] for row in rows.tolist()])
        retrieved = [self.retrieved[row] for row in rows.tolist()]
        rankings: Iterable[Any] = retrieved if self.needs.only_first else self.values(retrieved)
        for truth, ranking in zip(truths, rankings, strict=True):
            for number, value in enumerate(truth):
                if type(value) not in _PLAIN or value in self._nulls or truth.index(value) != number:
                    return None
                if not self.needs.only_first and value in ranking:
                    found.append(place + number)
                    positions.append(ranking.index(value))
            if self.needs.only_first and (position := self.first_of(ranking, truth)) is not None:
                found.append(place)  # whichever: all have the same grade
                positions.append(position)
            place += len(truth)
        grades = self.grades(rows)
        queries = np.repeat(np.arange(rows.size), n_judged)[found]
        order = np.argsort(queries * (n_retrieved.max(initial=0) + 1) + positions, kind="stable")  # nearly in order
        n_found = np.bincount(queries, minlength=rows.size)
        cells = np.arange(order.size) - np.repeat(np.cumsum(n_found) - n_found, n_found), queries
        ranked = np.full((int(n_found.max(initial=0)), rows.size), np.nan)
        ranks = np.full(ranked.shape, NO_RANK, np.int32)
        ranked[cells] = grades[np.array(found, np.int64)[order]]
        ranks[cells] = np.array(positions, np.int32)[order] + 1
        return RankedBlock(rows, ranked, ranks, n_retrieved, pad(grades, n_judged, np.nan), has_repeats=False)

    def _judged_twice(self, rows: IntArray, place: int) -> InputError:
        row = int(np.repeat(rows, self.n_judged[rows])[place])
        value = self._flat_values(self.ground_truth, rows.tolist())[place]
        return InputError(
            f"question {self.query_ids[row]!r} has the ground-truth document {value!r} twice; remove one, or say which "
            "counts: duplicate_judgements='max' or duplicate_judgements='last'"
        )

    def _match_by_ids(self, rows: IntArray, n_judged: IntArray, n_retrieved: IntArray) -> RankedBlock:
        judged = IdLists.of_lengths(np.empty(n_judged.sum(), np.int64), n_judged)
        retrieved = IdLists.of_lengths(np.empty(n_retrieved.sum(), np.int64), n_retrieved)
        grades = self.grades(rows)
        judged_end = retrieved_end = 0
        for start in range(0, rows.size, _CHUNK):
            chunk = rows[start : start + _CHUNK].tolist()
            judged_values = self._flat_values(self.ground_truth, chunk)
            retrieved_values = self._flat_values(self.retrieved, chunk)
            judged_start, judged_end = judged_end, judged_end + len(judged_values)
            retrieved_start, retrieved_end = retrieved_end, retrieved_end + len(retrieved_values)
            try:
                ids = self._intern(judged_values, retrieved_values)
            except TypeError:  # an unhashable value
                lengths = n_judged[start : start + _CHUNK], n_retrieved[start : start + _CHUNK]
                ids = self._compare(judged_values, retrieved_values, *lengths)
            judged.ids[judged_start:judged_end], retrieved.ids[retrieved_start:retrieved_end] = ids
        try:
            matched = match_ids(
                np.arange(rows.size),
                judged,
                grades,
                retrieved,
                has_null=True,
                duplicate_judgements=self.policies.duplicate_judgements,
                unjudged_repeats=self.needs.unjudged_repeats,
            )
        except DuplicateJudgementError as error:
            raise self._judged_twice(rows, judged.place_of(error.place, error.position)) from None
        has_repeats = matched.n_repeats > 0
        return RankedBlock(rows, matched.grades, matched.ranks, n_retrieved, matched.judged, has_repeats)

    def _flat_values(self, lists: DocumentLists, chunk: list[int]) -> list[Any]:
        return list(chain.from_iterable(self.values(lists[row] for row in chunk)))

    def describe(self, row: int, position: int) -> str:
        """The comparison value of one retrieved document."""
        return repr(self.value(self.retrieved[row][position]))

    def _intern(self, judged: list[Any], retrieved: list[Any]) -> tuple[IntArray, IntArray]:
        """Ids by a dict: Python's own equality (1 == 1.0 == True, NaN by identity), at its own speed."""
        intern, fresh = dict.fromkeys(self._nulls, NULL).setdefault, count()
        return (
            np.fromiter(map(intern, judged, fresh), np.int64, len(judged)),
            np.fromiter(map(intern, retrieved, fresh), np.int64, len(retrieved)),
        )

    def _compare(
        self, judged: list[Any], retrieved: list[Any], n_judged: IntArray, n_retrieved: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Ids by comparing each value with every earlier one of its question, for values that have no hash."""
        judged_ids: list[int] = []
        retrieved_ids: list[int] = []
        for n_first, n_second in zip(n_judged.tolist(), n_retrieved.tolist(), strict=True):
            known: list[Any] = []
            for values, ids, n in ((judged, judged_ids, n_first), (retrieved, retrieved_ids, n_second)):
                for value in values[len(ids) : len(ids) + n]:
                    if value in self._nulls:
                        ids.append(NULL)
                    elif value in known:
                        ids.append(known.index(value))
                    else:
                        ids.append(len(known))
                        known.append(value)
        return np.array(judged_ids, np.int64), np.array(retrieved_ids, np.int64)

    def grades(self, rows: IntArray) -> FloatArray:
        """(n_judged of all rows together,) the scores of the ground-truth documents, 1 where a question has none.

        Raises:
            InputError: a question of whose documents some have a score and some none, or a score that is no finite
                number.
        """
        if not self.needs.grades:
            return np.ones(self.n_judged[rows].sum())
        ground_truth = [self.ground_truth[row] for row in rows.tolist()]
        with self._explained():
            scores: list[Any] = [document.score for documents in ground_truth for document in documents]
        if type(None) in map(type, scores):
            for row, documents in zip(rows.tolist(), ground_truth, strict=True):
                unscored = sum(document.score is None for document in documents)
                if 0 < unscored < len(documents):
                    raise InputError(
                        "either none or all ground-truth documents of a question must have a score; "
                        f"{unscored} of {len(documents)} have none in question {self.query_ids[row]!r}"
                    )
            scores = [1.0 if score is None else score for score in scores]

        def describe(position: int) -> str:
            questions = np.repeat(rows, [len(documents) for documents in ground_truth])
            return f"the score of a ground-truth document of question {self.query_ids[questions[position]]!r}"

        return finite_floats(scores, describe)


def _check_documents(name: str, question: object, documents: object) -> None:
    if isinstance(documents, (str, bytes)) or not isinstance(documents, Iterable) or not isinstance(documents, Sized):
        raise InputError(f"the {name} of question {question!r} must be a list of documents, got {_shown(documents)}")
    for document in documents:
        if not all(hasattr(document, attribute) for attribute in ("content", "id", "meta", "score")):
            raise InputError(
                f"the {name} of question {question!r} must be documents, with content, id, meta and score; got "
                f"{_shown(document)}"
            )


def _shown(value: object) -> str:
    return f"{value!r:.60} ({type(value).__name__})"
