"""Hypothesis strategies: small inputs in which matches, ties, repeats and gaps are frequent.

Each takes what to draw from, so that a test can leave out what its authority does not accept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

Judgements: TypeAlias = dict[Any, float]
Scored: TypeAlias = dict[Any, float]

NAN = float("nan")  # one object: NaN matches by identity

TEXT_IDS = ("a", "b", "c", "d", "e", "aa", "B", "10", "9", "é", "\ufb01", "\U0001f600")
"""Order as bytes differs from order as numbers, ignoring case, or as UTF-16."""

ODD_IDS = ("a\0b", "a\0", "\ud800", "a b", "#1", "x/y", "", " a", "\ufffd")
"""What file formats and C strings do not carry."""

INTEGER_IDS = (-2, -1, 0, 1, 2, 3, 9, 10, 2**31, 2**53, 2**53 + 1, -(2**63))
"""-1 and -2 have the same hash(); the last ones are equal as floats or too wide for 32 bits."""

BYTE_IDS = (b"a", b"b", b"c", b"ab", b"\xff", b"a\0", b"10", b"9")

INTEGER_GRADES = (0, 0, 1, 1, 1, 2, 3, 4)
GRADES = (*INTEGER_GRADES, -1, -2, 0.3, 0.5, 1.5)

TIED_SCORES = (0.0, -0.0, 1.0, 1.0, 2, -1.5, 0.1, 1 + 1e-9)
"""1 and 1 + 1e-9 are equal in float32 only."""

TEXT = st.sampled_from(TEXT_IDS)
INTEGERS = st.sampled_from(INTEGER_IDS)
BYTES = st.sampled_from(BYTE_IDS)
ANY_GRADE = st.sampled_from(GRADES)
INTEGER_GRADE = st.sampled_from(INTEGER_GRADES)


def scores() -> st.SearchStrategy[float]:
    """One finite score, often equal to another."""
    return st.sampled_from(TIED_SCORES) | st.floats(-1e6, 1e6)


def score_lists(n: int, *, tied: bool = True) -> st.SearchStrategy[list[float]]:
    """The scores of `n` documents; without `tied` no two are equal, in float32 either."""
    if tied:
        return st.lists(scores(), min_size=n, max_size=n)
    return st.permutations([place / 4 - 1 for place in range(n)])


def judgements(
    documents: st.SearchStrategy[Any] = TEXT,
    grade: st.SearchStrategy[float] = ANY_GRADE,
    *,
    min_size: int = 0,
    max_size: int = 8,
) -> st.SearchStrategy[Judgements]:
    """The judgements of a query: document -> grade."""
    return st.dictionaries(documents, grade, min_size=min_size, max_size=max_size)


@st.composite
def scored_documents(
    draw: st.DrawFn,
    documents: st.SearchStrategy[Any] = TEXT,
    *,
    tied: bool = True,
    min_size: int = 0,
    max_size: int = 10,
) -> Scored:
    """A query's part of a run: document -> score, in an order that has nothing to do with the scores."""
    found = draw(st.lists(documents, unique=True, min_size=min_size, max_size=max_size))
    return dict(zip(found, draw(score_lists(len(found), tied=tied)), strict=True))


def scored_pairs(
    documents: st.SearchStrategy[Any] = TEXT, *, max_size: int = 10
) -> st.SearchStrategy[list[tuple[Any, float]]]:
    """A query's part of a run as (document, score) pairs, where documents may come twice."""
    return st.lists(st.tuples(documents, scores()), max_size=max_size)


def rankings(
    documents: st.SearchStrategy[Any] = TEXT,
    *,
    repeats: bool = True,
    none: bool = True,
    max_size: int = 10,
) -> st.SearchStrategy[list[Any]]:
    """A ranking, best first: documents may come twice if `repeats`, and then may be None if `none`."""
    if not repeats:
        return st.lists(documents, unique=True, max_size=max_size)
    return st.lists(documents | st.none() if none else documents, max_size=max_size)


@st.composite
def qrels_and_run(
    draw: st.DrawFn,
    *,
    documents: st.SearchStrategy[Any] = TEXT,
    grade: st.SearchStrategy[float] = ANY_GRADE,
    ranking: st.SearchStrategy[Any] | None = None,
    query_ids: tuple[Any, ...] = ("q1", "q2", "q10", "é"),
    missing: bool = True,
    unjudged: bool = True,
    empty_judgements: bool = True,
) -> tuple[dict[Any, Judgements], dict[Any, Any]]:
    """Qrels and a run, each in its own order of queries; at least one query is in both.

    Args:
        draw: given by Hypothesis.
        documents: the ids of both sides.
        grade: the grades.
        ranking: what the run has for a query: `scored_documents` (the default) or `rankings`.
        query_ids: at least one.
        missing: a judged query may be absent from the run.
        unjudged: a query of the run may be absent from the qrels.
        empty_judgements: a query may be judged without a document.
    """
    judged = judgements(documents, grade, min_size=0 if empty_judgements else 1)
    ranking = scored_documents(documents) if ranking is None else ranking
    shared, *others = draw(st.permutations(query_ids))
    sides = ["both"] + ["missing"] * missing + ["unjudged"] * unjudged + ["neither"]
    side = {query: draw(st.sampled_from(sides)) for query in others} | {shared: "both"}
    in_qrels = [query for query in side if side[query] in ("both", "missing")]
    in_run = [query for query in side if side[query] in ("both", "unjudged")]
    qrels = {query: draw(judged) for query in draw(st.permutations(in_qrels))}
    run = {query: draw(ranking) for query in draw(st.permutations(in_run))}
    return qrels, run


FIELDS = ("content", "id", "meta.key", "meta.a.b")

CONTENTS = (None, "", "a", "b", "c", "9th", "9th century")

HASHABLE_VALUES = (None, "", "a", "b", 1, 1.0, True, 0, False, -1, -2, 2**53, 2**53 + 1, NAN, (1, 2), "1")
"""1 == 1.0 == True are one value, -1 and -2 share a hash, NaN equals itself only as the same object."""

UNHASHABLE_VALUES: tuple[Any, ...] = ([], [1], [1.0], [True, "a"], {"k": 1}, {"k": 1.0}, [[1]], [NAN])


def comparison_values(*, unhashable: bool = True, none: bool = True) -> st.SearchStrategy[Any]:
    """A value as it may stand in a document's meta."""
    pool = HASHABLE_VALUES if none else HASHABLE_VALUES[1:]
    # A fresh NaN is equal to none of the others.
    values = st.sampled_from(pool) | st.builds(float, st.just("nan"))
    return values | st.sampled_from(UNHASHABLE_VALUES) if unhashable else values


def metas(*, unhashable: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """A document's meta: the paths "key" and "a.b" lead to a value, to nothing, or through something not a dict."""
    value = comparison_values(unhashable=unhashable)
    nested = st.fixed_dictionaries({"b": value})
    inner = st.fixed_dictionaries({}, optional={"b": value, "c": value})
    return st.fixed_dictionaries({}, optional={"key": value, "a": nested | nested | inner | value})


def documents(*, unhashable: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """A document's id, content and meta by name; an id of "" is one that was not given."""
    return st.fixed_dictionaries(
        {
            "id": st.sampled_from(("", "", "x", "y")),
            "content": st.sampled_from(CONTENTS),
            "meta": metas(unhashable=unhashable),
        }
    )


@st.composite
def document_lists(
    draw: st.DrawFn,
    make: Callable[..., Any] = dict,
    *,
    unhashable: bool = True,
    gains: tuple[float, ...] = (0, 0.0, 0.5, 1, 1.0, 2.5, 3, True),
    max_questions: int = 4,
    max_size: int = 6,
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Ground truth and retrieved documents, a list each a question; repeats are frequent, inner lists may be empty.

    With the default `make` a document comes as its keyword arguments, from which two kinds of documents can be made.

    Args:
        draw: given by Hypothesis.
        make: called with id, content, meta and score.
        unhashable: lists and dicts as values in meta.
        gains: scores of ground-truth documents; within a question all have one or none. Empty: none has.
        max_questions: the most questions; there is at least one.
        max_size: the most documents of a list.
    """
    pool = st.sampled_from(draw(st.lists(documents(unhashable=unhashable), min_size=1, max_size=max_size)))
    gain = st.sampled_from(gains) if gains else st.none()

    def drawn(score: st.SearchStrategy[float | None]) -> list[Any]:
        return [make(**fields, score=draw(score)) for fields in draw(st.lists(pool, max_size=max_size))]

    questions = range(draw(st.integers(1, max_questions)))
    ground_truth = [drawn(gain if draw(st.booleans()) else st.none()) for _ in questions]
    retrieved = [drawn(st.sampled_from((None, 0.5, -1))) for _ in questions]
    return ground_truth, retrieved


class IdArrays(NamedTuple):
    """Judgements and rankings of some queries as padded arrays; cells after a query's length hold anything."""

    judged_ids: NDArray[np.int64]  # (n_queries, n_judged)
    grades: NDArray[np.float64]  # (n_queries, n_judged)
    n_judged: NDArray[np.int64]  # (n_queries,)
    retrieved_ids: NDArray[np.int64]  # (n_queries, width)
    scores: NDArray[np.float64]  # (n_queries, width)
    n_retrieved: NDArray[np.int64]  # (n_queries,)

    def judgements(self, query: int) -> Judgements:
        """One query's judgements: id -> grade."""
        n = self.n_judged[query]
        return dict(zip(self.judged_ids[query, :n].tolist(), self.grades[query, :n].tolist(), strict=True))

    def ranking(self, query: int) -> list[tuple[int, float]]:
        """One query's (id, score) pairs, in input order."""
        n = self.n_retrieved[query]
        return list(zip(self.retrieved_ids[query, :n].tolist(), self.scores[query, :n].tolist(), strict=True))


@st.composite
def id_arrays(
    draw: st.DrawFn,
    *,
    pool: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 7, 11, 2**31 - 1),
    padding: tuple[int, ...] = (-1, 0, 1),
    grade: st.SearchStrategy[float] = ANY_GRADE,
    tied: bool = True,
    repeats: bool = False,
    max_queries: int = 4,
    max_size: int = 8,
) -> IdArrays:
    """Padded integer ids: judged documents are distinct, retrieved ones too unless `repeats`.

    The padding may look like an id.
    """
    some_ids = st.sampled_from(pool)
    sides = st.tuples(
        st.lists(some_ids, unique=True, max_size=max_size),
        st.lists(some_ids, unique=not repeats, max_size=max_size),
    )
    judged, retrieved = zip(*draw(st.lists(sides, min_size=1, max_size=max_queries)), strict=True)
    grade_lists = [[draw(grade) for _ in row] for row in judged]
    spare = draw(st.integers(0, 2))

    def padded(lists: Sequence[list[Any]], fill: tuple[float, ...], dtype: type) -> NDArray[Any]:
        width = max(map(len, lists)) + spare
        rows = [row + [draw(st.sampled_from(fill)) for _ in range(len(row), width)] for row in lists]
        return np.array(rows, dtype).reshape(len(lists), width)

    return IdArrays(
        padded(judged, padding, np.int64),
        padded(grade_lists, (0.0, 1.0, 9.0), np.float64),
        np.array([len(row) for row in judged], np.int64),
        padded(retrieved, padding, np.int64),
        padded([draw(score_lists(len(row), tied=tied)) for row in retrieved], (0.0, 1.0, 9.0), np.float64),
        np.array([len(row) for row in retrieved], np.int64),
    )
