"""Lists of documents: comparison values become integer ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count, repeat
from typing import Any

import numpy as np

from metrics_core.blocks import FloatArray, IntArray, MatchedBlock, pad
from metrics_core.documents import DocumentLike, comparison_values
from metrics_core.errors import InputError
from metrics_core.policies import Policies
from metrics_core.sources.ids import NULL, DuplicateJudgementError, IdLists, match_ids
from metrics_core.sources.numbers import finite_floats

DocumentLists = Sequence[Sequence[DocumentLike]]

_CHUNK = 64  # questions that share a dict of ids: it stays in the cache (one dict for all takes twice the time)
_COMPARISONS_A_HASH = 10  # measured: comparing two different strings takes a tenth of hashing and looking up a new one


@dataclass(frozen=True, slots=True)
class Needs:
    """What the metrics at hand read of documents; what they do not is not found out."""

    grades: bool  # the scores of ground-truth documents
    unjudged_repeats: bool  # whether an unjudged document is retrieved twice


class DocumentSource:
    """Ground-truth and retrieved documents, question by question; a document is its comparison value.

    Args:
        query_ids: names of the questions, for messages and results.
        ground_truth, retrieved: one list of documents a question, equally many.
        field: the comparison field.
        policies: empty_key and duplicate_judgements are theirs to say.
        needs: where grades are not needed, every grade is 1, and no document's score is looked at.

    Raises:
        InputError: an unknown comparison field.
    """

    releases_gil = False

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
        self.values = comparison_values(field)
        self.policies = policies
        self.needs = needs
        self.n_judged: IntArray = np.fromiter(map(len, ground_truth), np.int64, len(ground_truth))
        self.n_retrieved: IntArray = np.fromiter(map(len, retrieved), np.int64, len(retrieved))

    def match(self, rows: IntArray) -> MatchedBlock:
        """The judgements of the questions at `rows`, matched to their retrieved documents.

        Few relevant documents are compared with the retrieved ones; many are matched through ids. Comparing takes a
        quarter of the time of hashing at 2 relevant and 10 retrieved texts of 200 characters, but leaves repeats of
        unjudged documents unfound.
        """
        n_judged, n_retrieved = self.n_judged[rows], self.n_retrieved[rows]
        few = (n_judged * n_retrieved).sum() <= _COMPARISONS_A_HASH * (n_judged + n_retrieved).sum()
        policies = self.policies
        if few and not self.needs.unjudged_repeats and policies.duplicates == "first_keep_rank":
            return self._match_by_comparing(rows, n_judged, n_retrieved)
        return self._match_by_ids(rows, n_judged, n_retrieved)

    def _match_by_comparing(self, rows: IntArray, n_judged: IntArray, n_retrieved: IntArray) -> MatchedBlock:
        grades = np.full((rows.size, int(n_retrieved.max(initial=0))), np.nan)
        width, values_of, nulls = grades.shape[1], self.values, tuple(self._null_ids())
        judgements = iter(self._grades(rows).tolist()) if self.needs.grades else repeat(1.0)
        places: list[int] = []  # in grades, of the relevant documents
        place_grades: list[float] = []
        judged: list[float] = []
        n_distinct: list[int] = []
        for start, row in zip(range(0, grades.size + 1, width or 1), rows.tolist(), strict=False):
            retrieved = values_of(self.retrieved[row])
            known: list[Any] = []
            kept: list[float] = []
            for value, grade in zip(values_of(self.ground_truth[row]), judgements, strict=False):
                if value in nulls:
                    continue
                if value in known:
                    self._keep(row, known, kept, value, grade)
                else:
                    known.append(value)
                    kept.append(grade)
            for value, grade in zip(known, kept, strict=True):
                if value in retrieved:
                    places.append(start + retrieved.index(value))
                    place_grades.append(grade)
            judged += kept
            n_distinct.append(len(known))
        grades.reshape(-1)[places] = place_grades
        return MatchedBlock(rows, grades, n_retrieved, None, pad(np.array(judged), np.array(n_distinct), np.nan), None)

    def _keep(self, row: int, known: list[Any], kept: list[float], value: Any, grade: float) -> None:
        place = known.index(value)
        if self.policies.duplicate_judgements == "error":
            raise self._judged_twice(row, value)
        kept[place] = grade if self.policies.duplicate_judgements == "last" else max(kept[place], grade)

    def _judged_twice(self, row: int, value: Any) -> InputError:
        return InputError(
            f"question {self.query_ids[row]!r} has the ground-truth document {value!r} twice; remove one, or say which "
            "counts: duplicate_judgements='max' or 'last'"
        )

    def _match_by_ids(self, rows: IntArray, n_judged: IntArray, n_retrieved: IntArray) -> MatchedBlock:
        judged = IdLists.of_lengths(np.empty(n_judged.sum(), np.int64), n_judged)
        retrieved = IdLists.of_lengths(np.empty(n_retrieved.sum(), np.int64), n_retrieved)
        grades = self._grades(rows) if self.needs.grades else np.ones(judged.ids.size)
        judged_end = retrieved_end = 0
        for start in range(0, rows.size, _CHUNK):
            chunk = rows[start : start + _CHUNK].tolist()
            judged_values = self._flat_values(self.ground_truth, chunk)
            retrieved_values = self._flat_values(self.retrieved, chunk)
            judged_start, judged_end = judged_end, judged_end + len(judged_values)
            retrieved_start, retrieved_end = retrieved_end, retrieved_end + len(retrieved_values)
            try:
                judged_ids, retrieved_ids = self._intern(judged_values, retrieved_values)
            except TypeError:  # an unhashable value
                lengths = n_judged[start : start + _CHUNK], n_retrieved[start : start + _CHUNK]
                judged_ids, retrieved_ids = self._compare(judged_values, retrieved_values, *lengths)
            judged.ids[judged_start:judged_end] = judged_ids
            retrieved.ids[retrieved_start:retrieved_end] = retrieved_ids
        try:
            matched_grades, judged_grades, repeat_of = match_ids(
                np.arange(rows.size),
                judged,
                grades,
                retrieved,
                has_null=True,
                duplicate_judgements=self.policies.duplicate_judgements,
            )
        except DuplicateJudgementError as error:
            row = int(rows[error.place])
            raise self._judged_twice(row, self.values(self.ground_truth[row])[error.position]) from None
        return MatchedBlock(rows, matched_grades, n_retrieved, None, judged_grades, repeat_of)

    def _flat_values(self, lists: DocumentLists, chunk: list[int]) -> list[Any]:
        return list(chain.from_iterable([self.values(lists[row]) for row in chunk]))

    def document(self, row: int, position: int) -> object:
        """The comparison value of one retrieved document."""
        return self.values([self.retrieved[row][position]])[0]

    def _null_ids(self) -> dict[Any, int]:
        return {None: NULL, "": NULL} if self.policies.empty_key == "ignore" else {None: NULL}

    def _intern(self, judged: list[Any], retrieved: list[Any]) -> tuple[IntArray, IntArray]:
        """Ids by a dict: Python's own equality (1 == 1.0 == True, NaN by identity), at its own speed."""
        intern, fresh = self._null_ids().setdefault, count()
        return (
            np.fromiter(map(intern, judged, fresh), np.int64, len(judged)),
            np.fromiter(map(intern, retrieved, fresh), np.int64, len(retrieved)),
        )

    def _compare(
        self, judged: list[Any], retrieved: list[Any], n_judged: IntArray, n_retrieved: IntArray
    ) -> tuple[list[int], list[int]]:
        """Ids by comparing each value with every earlier one of its question, for values that have no hash."""
        judged_ids: list[int] = []
        retrieved_ids: list[int] = []
        nulls = list(self._null_ids())
        for n_first, n_second in zip(n_judged.tolist(), n_retrieved.tolist(), strict=True):
            known: list[Any] = []
            for values, ids, n in ((judged, judged_ids, n_first), (retrieved, retrieved_ids, n_second)):
                for value in values[len(ids) : len(ids) + n]:
                    if value in nulls:
                        ids.append(NULL)
                    elif value in known:
                        ids.append(known.index(value))
                    else:
                        ids.append(len(known))
                        known.append(value)
        return judged_ids, retrieved_ids

    def _grades(self, rows: IntArray) -> FloatArray:
        ground_truth = [self.ground_truth[row] for row in rows.tolist()]
        scores: list[Any] = [document.score for documents in ground_truth for document in documents]
        if None in scores:
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

        return finite_floats(lambda: scores, len(scores), describe)
