"""Judgements and rankings as a report shows them: a few documents of a few queries, in the order that was scored."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from metrics_core.documents import DocumentLike, comparison_value
from metrics_core.errors import InputError
from metrics_core.lists import is_list
from metrics_core.policies import Policies
from metrics_core.sources.arrow import is_frame, long_table
from metrics_core.trec import Qrels, Run, read_qrels, read_run


class Judged(NamedTuple):
    """A judged document of a query."""

    document: Any  # its id, or the comparison value of a document of a list
    grade: float
    text: str | None  # None: it did not come with one


class Retrieved(NamedTuple):
    """A document of a ranking."""

    document: Any
    score: float | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Documents:
    """How documents of lists, a list a query, are told apart and which queries they belong to.

    Attributes:
        field: the comparison field.
        rows: {query: its place in the lists}.
    """

    field: str
    rows: Mapping[Any, int]

    def checked(self, lists: Any, name: str) -> Sequence[Sequence[DocumentLike]]:
        """The lists, if there are as many as queries.

        Raises:
            InputError: there are not.
        """
        if len(lists) != len(self.rows):
            raise InputError(
                f"{name} has {len(lists)} lists of documents, and the runs have {len(self.rows)} queries; lists belong "
                "to queries by their place"
            )
        return list(lists)

    def described(self) -> Callable[[DocumentLike], tuple[Any, str | None]]:
        """The function that gives a document's comparison value, and its text where that is something else."""
        value_of = comparison_value(self.field)

        def described(document: DocumentLike) -> tuple[Any, str | None]:
            value = value_of(document)
            key = value if isinstance(value, Hashable) else repr(value)
            return key, None if self.field == "content" else document.content

        return described


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """Judgements of whatever kind `evaluate` takes.

    Attributes:
        data: {query: {document: grade}}, Qrels, or lists of documents.
        documents: what lists of documents mean.
    """

    data: Any
    documents: Documents

    @classmethod
    def of(cls, qrels: Any, policies: Policies | None, documents: Documents) -> Judgements:
        """A path or table is read under the policies that scored the runs; None: the default.

        Raises:
            InputError: what `evaluate` does not take, or as many lists of documents as there are not queries.
        """
        settled = "error" if policies is None else policies.duplicate_judgements
        if isinstance(qrels, (str, os.PathLike)):
            qrels = read_qrels(qrels, duplicate_judgements=settled)
        elif is_frame(qrels):
            qrels = long_table(qrels, Qrels, settled).data
        elif _is_lists_of_documents(qrels):
            qrels = documents.checked(qrels, "qrels")
        elif not isinstance(qrels, (Mapping, Qrels)):
            raise InputError(
                "qrels must be {query: {document: grade}}, Qrels, a path, a long table or lists of documents, got "
                f"{qrels!r:.80}"
            )
        return cls(qrels, documents)

    def judged(self, query: Any) -> list[Judged]:
        """The judged documents of a query, in the order given."""
        if isinstance(self.data, list):
            return self._of_documents(self.data[self.documents.rows[query]])
        nested = self.data.nested() if isinstance(self.data, Qrels) else self.data
        return [Judged(document, grade, None) for document, grade in nested.get(query, {}).items()]

    def _of_documents(self, judged: Sequence[DocumentLike]) -> list[Judged]:
        described = self.documents.described()
        found: dict[Any, Judged] = {}
        for each in judged:
            key, text = described(each)
            grade = 1.0 if each.score is None else float(each.score)
            if key is not None and (key not in found or grade > found[key].grade):
                found[key] = Judged(key, grade, text)
        return list(found.values())


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """What a run retrieved, of whatever kind `evaluate` takes, and how its ties were settled.

    Attributes:
        data: {query: {document: score}}, {query: [document, ...]}, a Run, or lists of documents.
        policies: those that scored the run; None: the default of the kind.
        documents: what lists of documents mean.
    """

    data: Any
    policies: Policies | None
    documents: Documents

    @classmethod
    def of(cls, name: str, run: Any, policies: Policies | None, documents: Documents) -> Rankings:
        """A path or table is read.

        Raises:
            InputError: what `evaluate` does not take, or as many lists of documents as there are not queries.
        """
        if isinstance(run, (str, os.PathLike)):
            run = read_run(run)
        elif is_frame(run):
            run = long_table(run, Run, "error").data
        elif _is_lists_of_documents(run):
            run = documents.checked(run, f"rankings[{name!r}]")
        elif not isinstance(run, (Mapping, Run)):
            raise InputError(
                f"rankings[{name!r}] must be {{query: {{document: score}}}}, {{query: [document]}}, a Run, a path, a "
                f"long table or lists of documents, got {run!r:.80}"
            )
        return cls(run, policies, documents)

    def top(self, query: Any, depth: int) -> list[Retrieved]:
        """The first documents of a query, best first; none where it was not retrieved."""
        if isinstance(self.data, list):
            described = self.documents.described()
            found = self.data[self.documents.rows[query]][:depth]
            return [Retrieved(key, each.score, text) for each in found for key, text in (described(each),)]
        if isinstance(self.data, Run):
            retrieved = self._of_file(self.data, query)
        elif query not in self.data:
            retrieved = []
        elif isinstance(self.data[query], Mapping):
            retrieved = list(self.data[query].items())
        else:
            return [Retrieved(document, None, None) for document in self.data[query][:depth]]
        policies = self.policies or Policies()
        if policies.drop_identical_ids:
            retrieved = [(document, score) for document, score in retrieved if str(document) != str(query)]
        if policies.order == "score":
            if policies.ties == "docid_desc":
                retrieved.sort(key=lambda each: _as_bytes(each[0]), reverse=True)
            number = np.float32 if policies.score_dtype == "float32" else np.float64
            retrieved.sort(key=lambda each: -number(each[1]))  # stable: ties stay as they are
        return [Retrieved(document, float(score), None) for document, score in retrieved[:depth]]

    @staticmethod
    def _of_file(run: Run, query: Any) -> list[tuple[Any, float]]:
        if query not in run.query_ids:
            return []
        row = run.query_ids.index(query)
        places = np.arange(run.offsets[row], run.offsets[row + 1])
        return [
            (run.document(place), score)
            for place, score in zip(places.tolist(), run.scores[places].tolist(), strict=True)
        ]


def _is_lists_of_documents(value: Any) -> bool:
    """Whether a value has a list of documents for each of several queries."""
    return is_list(value) and all(is_list(each) and all(hasattr(found, "content") for found in each) for each in value)


def _as_bytes(document: Any) -> Any:
    return document.encode("utf-8", "surrogateescape") if isinstance(document, str) else document
