"""From matched documents to grades at ranks, and the matching of ids, against a few lines of Python."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, islice

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core.blocks import BLOCK_CELLS, NO_RANK, REPEAT, ScoredBlock
from metrics_core.errors import InputError
from metrics_core.join import join
from metrics_core.keys import encode_keys
from metrics_core.policies import Policies
from metrics_core.sources.ids import NULL, DuplicateJudgementError, IdLists, match_ids
from tests.blocks import grades_at_every_rank

NAN = float("nan")


class Rankings:
    """A source of (document, score, grade) rows; documents come in this order, and are matched already."""

    releases_gil = True
    block_cells = BLOCK_CELLS

    def __init__(self, rankings, judged=()):
        self.rankings = rankings
        self.judged = judged or [[grade for _, _, grade in ranking if not np.isnan(grade)] for ranking in rankings]
        self.query_ids = [f"q{row}" for row in range(len(rankings))]

    def match(self, rows):
        rankings = [self.rankings[row] for row in rows.tolist()]
        repeat_of = [[self.first(ranking, i) for i in range(len(ranking))] for ranking in rankings]
        return ScoredBlock(
            rows,
            matrix([[grade for _, _, grade in ranking] for ranking in rankings]),
            np.array([len(ranking) for ranking in rankings]),
            matrix([[score for _, score, _ in ranking] for ranking in rankings]),
            matrix([self.judged[row] for row in rows.tolist()]),
            matrix(repeat_of, -1, np.int32) if any(place >= 0 for row in repeat_of for place in row) else None,
            lambda places, positions: encode_keys(
                [rankings[q][i][0] for q, i in zip(places.tolist(), positions.tolist(), strict=True)]
            ),
        )

    @staticmethod
    def first(ranking, position):
        documents = [document for document, _, _ in ranking]
        place = documents.index(documents[position])
        return place if place < position else -1

    def describe(self, row, position):
        return repr(self.rankings[row][position][0])


def matrix(rows, fill=NAN, dtype=np.float64):
    width = max(map(len, rows), default=0)
    return np.array([[*row, *[fill] * (width - len(row))] for row in rows], dtype).reshape(len(rows), width)


def in_order(ranking, ties):
    """By descending score; (document, score, grade) rows."""
    documents = sorted(ranking, key=lambda row: row[0], reverse=True) if ties == "docid_desc" else ranking
    return sorted(documents, key=lambda row: -row[1])


def expected_grades(ranking, ties, duplicates):
    grades, seen = [], set()
    for document, _, grade in in_order(ranking, ties):
        if document not in seen:
            grades.append(grade)
        elif duplicates == "first_keep_rank":
            grades.append(REPEAT)
        seen.add(document)
    return grades


def joined_grades(block, ranking_lengths):
    """The grades at every rank of each query, as lists."""
    width = max(ranking_lengths, default=0)
    found = grades_at_every_rank(block.grades, block.ranks, width)
    assert np.isnan(found[np.arange(width) >= np.array(block.n_retrieved)[:, None]]).all()
    return [row[:n].tolist() for row, n in zip(found, block.n_retrieved, strict=True)]


def assert_joined(rankings, ties="docid_desc", duplicates="error"):
    rows = np.arange(len(rankings))[::-1].copy()
    block = join(Rankings(rankings), rows, Policies(ties=ties, duplicates=duplicates))
    assert block.rows.tolist() == rows.tolist()
    assert block.grades.flags.c_contiguous
    assert block.ideal.flags.c_contiguous
    found = joined_grades(block, [*map(len, rankings)])
    for grades, ideal, row in zip(found, block.ideal.T, rows.tolist(), strict=True):
        np.testing.assert_array_equal(grades, expected_grades(rankings[row], ties, duplicates))
        judged = sorted((grade for _, _, grade in rankings[row] if not np.isnan(grade)), reverse=True)
        np.testing.assert_array_equal(ideal[: len(judged)], judged)
        assert np.isnan(ideal[len(judged) :]).all()


GRADE = st.sampled_from([NAN, NAN, NAN, 0.0, 1.0, 2.0, -1.0])
SCORE = st.sampled_from([0.0, -0.0, 1.0, 1.0, 2.5, -3.0]) | st.floats(-5, 5)
ROWS = st.lists(st.tuples(st.text("abc", min_size=1, max_size=2), SCORE, GRADE), max_size=12)
TIES = st.sampled_from(["docid_desc", "input"])


class TestOrder:
    @given(st.lists(ROWS.map(lambda rows: [*{row[0]: row for row in rows}.values()]), min_size=1, max_size=4), TIES)
    def test_of_small_rankings(self, rankings, ties):
        assert_joined(rankings, ties)

    @given(
        st.lists(ROWS, min_size=1, max_size=3).map(
            lambda rankings: [  # equal documents have equal grades
                [(document, score, float(len(document))) for document, score, _ in ranking] for ranking in rankings
            ]
        ),
        TIES,
        st.sampled_from(["first_keep_rank", "first_compact"]),
    )
    def test_of_repeats(self, rankings, ties, duplicates):
        block = join(Rankings(rankings), np.arange(len(rankings)), Policies(ties=ties, duplicates=duplicates))
        for grades, ranking in zip(joined_grades(block, [*map(len, rankings)]), rankings, strict=True):
            np.testing.assert_array_equal(grades, expected_grades(ranking, ties, duplicates))

    @given(
        st.lists(st.lists(st.sampled_from("abcd"), max_size=8), min_size=1, max_size=4),
        st.sampled_from(["first_keep_rank", "first_compact"]),
    )
    def test_of_repeats_in_rank_order(self, rankings, duplicates):
        rows = [
            [(document, -float(i), {"a": 1.0, "b": 0.0}.get(document, NAN)) for i, document in enumerate(ranking)]
            for ranking in rankings
        ]
        policies = Policies(order="input", duplicates=duplicates)
        block = join(Rankings(rows), np.arange(len(rows)), policies)
        assert block.ranks.dtype == np.int32
        for grades, ranking in zip(joined_grades(block, [*map(len, rows)]), rows, strict=True):
            np.testing.assert_array_equal(grades, expected_grades(ranking, "input", duplicates))

    @pytest.mark.parametrize("ties", ["docid_desc", "input"])
    @pytest.mark.parametrize("n_scores", [1, 2, 30, 10_000])
    @pytest.mark.parametrize(
        ("n", "n_marked"),
        [(1, 1), (13, 13), (100, 3), (300, 13), (300, 14), (300, 16), (300, 17), (300, 300), (2000, 40)],
    )
    @pytest.mark.parametrize("presorted", [False, True])
    def test_of_few_and_many_judged(self, n, n_marked, n_scores, ties, presorted):
        """The kernel sorts everything, or counts who is ahead of each judged document."""
        rng = np.random.default_rng(n * n_marked + n_scores)
        scores = rng.integers(0, n_scores, (2, n)) / 4
        rankings = []
        for row in -np.sort(-scores, axis=1) if presorted else scores:
            grades = np.full(n, NAN)
            grades[rng.permutation(n)[:n_marked]] = rng.integers(-1, 4, n_marked)
            documents = map(str, rng.permutation(n))
            rankings.append(list(zip(documents, row.tolist(), grades.tolist(), strict=True)))
        assert_joined([*rankings, [], rankings[0][:5]], ties)

    def test_of_the_input(self):
        ranking = [("a", 1.0, 1.0), ("b", 3.0, NAN), ("c", 2.0, 0.0)]
        block = join(Rankings([ranking]), np.array([0]), Policies(order="input"))
        assert (block.grades.T.tolist(), block.ranks.T.tolist()) == ([[1, 0]], [[1, 3]])
        assert block.tie_ends is None

    def test_ties_of_one_grade_need_no_ids(self):
        source = Rankings([[("a", 1.0, 2.0), ("b", 1.0, 2.0), ("c", 0.0, NAN), ("d", 0.0, NAN)]])
        matched = source.match(np.array([0]))
        source.match = lambda _: replace(matched, keys=no_keys)
        block = join(source, np.array([0]), Policies())
        assert (block.grades.T.tolist(), block.ranks.T.tolist()) == ([[2, 2]], [[1, 2]])

    def test_the_ideal_order_of_few_and_many(self):
        rng = np.random.default_rng(0)
        judged = [rng.integers(-2, 5, n).astype(float).tolist() for n in (0, 1, 2, 11, 12, 13, 33, 500)]
        judged.append(sorted(judged[-1], reverse=True))
        source = Rankings([[] for _ in judged], judged)
        ideal = join(source, np.arange(len(judged)), Policies()).ideal.T
        for row, grades in zip(ideal, judged, strict=True):
            np.testing.assert_array_equal(row[: len(grades)], sorted(grades, reverse=True))
            assert np.isnan(row[len(grades) :]).all()


def no_keys(places, positions):
    raise AssertionError("ids were asked for")


class TestTieEnds:
    @given(st.lists(ROWS.map(lambda rows: [*{row[0]: row for row in rows}.values()]), min_size=1, max_size=4))
    def test_where_each_rank_s_tie_ends(self, rankings):
        block = join(Rankings(rankings), np.arange(len(rankings)), Policies(ties="expected"))
        expected = []
        for ranking in rankings:
            ends: list[int] = []
            for _, group in groupby(in_order(ranking, "input"), key=lambda row: row[1]):
                size = len(list(group))
                ends += [len(ends) + size] * size
            expected.append(ends)
        if all(ends == list(range(1, len(ends) + 1)) for ends in expected):
            assert block.tie_ends is None
        else:
            assert block.tie_ends is not None
            for row, ranks, ends in zip(block.tie_ends.T, block.ranks.T, expected, strict=True):
                assert row[: len(ends)].tolist() == ends
                assert ranks.tolist() == [*range(1, len(ends) + 1), *[NO_RANK] * (ranks.size - len(ends))]

    @given(st.lists(ROWS, min_size=1, max_size=3))
    def test_error_raises_if_and_only_if_different_documents_tie(self, rankings):
        rankings = [[*{row[0]: row for row in ranking}.values()] for ranking in rankings]
        tied = [row for row, ranking in enumerate(rankings) if len({score for _, score, _ in ranking}) < len(ranking)]
        policies = Policies(ties="error")
        if not tied:
            join(Rankings(rankings), np.arange(len(rankings)), policies)
            return
        with pytest.raises(
            InputError, match=rf"^query 'q{tied[0]}' gives documents .* the same score .*; ties='error' "
        ):
            join(Rankings(rankings), np.arange(len(rankings)), policies)

    @pytest.mark.parametrize(
        ("scores", "tied"), [([2.0, 3.0, 1.0, 1.0], True), ([1.0, 3.0, 2.0, 1.0], False), ([1.0, 2.0, 0.5, 0.5], True)]
    )
    def test_repeats_that_vanish_tie_with_nothing(self, scores, tied):
        ranking = list(zip("aabc", scores, [1.0, 1.0, NAN, 0.0], strict=True))
        policies = Policies(ties="error", duplicates="first_compact")
        if tied:
            with pytest.raises(InputError, match="gives documents 'b' and 'c' the same score"):
                join(Rankings([ranking]), np.array([0]), policies)
        else:
            assert joined_grades(join(Rankings([ranking]), np.array([0]), policies), [4])[0][0] == 1


def by_dicts(judged, judged_grades, retrieved, has_null, keep):
    """Grades of the retrieved, of the judged, and repeats, by dicts."""
    grade: dict[int, float] = {}
    for document, value in zip(judged, judged_grades, strict=True):
        if has_null and document == NULL:
            continue
        if document in grade and keep == "error":
            raise DuplicateJudgementError(0, 0)
        larger = document not in grade or value > grade[document]
        grade[document] = value if larger or keep == "last" else grade[document]
    first: dict[int, int] = {}
    repeat_of = []
    for i, document in enumerate(retrieved):
        null = has_null and document == NULL
        repeat_of.append(-1 if null or document not in first else first[document])
        first.setdefault(document, i)
    grades = [NAN if has_null and document == NULL else grade.get(document, NAN) for document in retrieved]
    return grades, list(grade.values()), repeat_of


def assert_matched(queries, keep="max", *, has_null=False, dtype=np.int64):
    judged_lists, grade_lists, retrieved_lists = ([[*part] for part in zip(*queries, strict=True)][i] for i in range(3))

    def id_lists(lists):
        flat = np.array([id_ for ids in lists for id_ in ids], dtype)
        return IdLists.of_lengths(flat, np.array([len(ids) for ids in lists], np.int64))

    rows = np.arange(len(queries))[::-1].copy()
    arguments = (
        rows,
        id_lists(judged_lists),
        np.array([grade for grades in grade_lists for grade in grades], np.float64),
        id_lists(retrieved_lists),
    )
    try:
        expected = [by_dicts(*queries[row], has_null, keep) for row in rows.tolist()]
    except DuplicateJudgementError:
        with pytest.raises(DuplicateJudgementError) as raised:
            match_ids(*arguments, has_null=has_null, duplicate_judgements=keep, unjudged_repeats=True)
        judged = judged_lists[rows[raised.value.place]]
        assert judged[raised.value.position] in judged[: raised.value.position]
        return
    width = max(map(len, retrieved_lists))
    for unjudged in (False, True):
        repeat_of = np.full((len(queries), width), -1, np.int32)
        matched = match_ids(
            *arguments,
            has_null=has_null,
            duplicate_judgements=keep,
            unjudged_repeats=unjudged,
            repeat_of=repeat_of,
        )
        found = grades_at_every_rank(matched.grades, matched.ranks, width)
        n_repeats = 0
        for q, (expected_grades, expected_judged, expected_repeats) in enumerate(expected):
            repeats = [
                place if unjudged or not np.isnan(grade) else -1
                for place, grade in zip(expected_repeats, expected_grades, strict=True)
            ]
            n_repeats += sum(place >= 0 for place in repeats)
            at_ranks = [REPEAT if place >= 0 else grade for place, grade in zip(repeats, expected_grades, strict=True)]
            np.testing.assert_array_equal(found[q, : len(at_ranks)], at_ranks)
            assert np.isnan(found[q, len(at_ranks) :]).all()
            assert repeat_of[q, : len(repeats)].tolist() == repeats
            judged = matched.judged[q]
            assert sorted(judged[: len(expected_judged)].tolist()) == sorted(expected_judged)
            assert np.isnan(judged[len(expected_judged) :]).all()
        assert matched.n_repeats == n_repeats


def slots():
    """Ids in pairs whose hashes, of which the kernel takes the high bits, are the same."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
    signed = [(((slot << 50) + low) * inverse) % 2**64 for slot in range(8) for low in (1, 2, 3, 4)]
    return [id_ - 2**64 if id_ >= 2**63 else id_ for id_ in signed]


ID = st.sampled_from([NULL, 0, 1, 2, 3, -2, 2**31 - 1, -(2**31)])
ANY_ID = ID | st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1]) | st.sampled_from(slots())


def queries_of(one_id):
    judged = st.lists(st.tuples(one_id, st.sampled_from([-1.0, 0.0, 1.0, 2.0])), max_size=6)
    query = st.tuples(judged, st.lists(one_id, max_size=8))
    return st.lists(
        query.map(lambda q: ([document for document, _ in q[0]], [grade for _, grade in q[0]], q[1])),
        min_size=1,
        max_size=3,
    )


class TestMatchIds:
    @given(queries_of(ANY_ID), st.sampled_from(["error", "max", "last"]), st.booleans())
    def test_small(self, queries, keep, has_null):
        assert_matched(queries, keep, has_null=has_null)

    @given(queries_of(ID), st.sampled_from(["error", "max", "last"]), st.booleans())
    def test_narrow_ids(self, queries, keep, has_null):
        assert_matched(queries, keep, has_null=has_null, dtype=np.int32)

    @pytest.mark.parametrize("dtype", [np.int32, np.int64])
    @pytest.mark.parametrize("distinct", [True, False])
    @pytest.mark.parametrize("n_judged", [0, 1, 8, 9, 32, 33, 200])
    @pytest.mark.parametrize("n_retrieved", [0, 1, 40, 511, 512, 513, 3000])
    def test_short_and_long(self, n_retrieved, n_judged, distinct, dtype):
        rng = np.random.default_rng(n_retrieved + n_judged)
        limits = np.iinfo(dtype)
        pool = rng.integers(limits.min, limits.max, 2 * (n_retrieved + n_judged) + 1, dtype)
        queries = []
        for _ in range(3):
            judged = rng.choice(pool, n_judged, replace=not distinct).tolist()
            retrieved = rng.choice(pool, n_retrieved, replace=not distinct).tolist()
            queries.append((judged, rng.integers(0, 4, n_judged).astype(float).tolist(), retrieved))
        for keep in ("max", "last"):
            assert_matched(queries, keep, has_null=False, dtype=dtype)
        assert_matched(queries, "max", has_null=True, dtype=dtype)

    @pytest.mark.parametrize("dtype", [np.int32, np.int64])
    @pytest.mark.parametrize("n_judged", [0, 1, 12, 13])
    @pytest.mark.parametrize("n_retrieved", [0, 3, 24, 25])
    def test_several_tiles_with_repeats_in_some(self, n_retrieved, n_judged, dtype):
        rng = np.random.default_rng(n_retrieved + n_judged)
        queries = []
        for q in range(600):
            pool = rng.permutation(2 * (n_retrieved + n_judged) + 1)
            judged = pool[:n_judged].tolist()
            retrieved = rng.permutation(pool)[: rng.integers(n_retrieved + 1)].tolist()
            if q % 7 == 0:
                retrieved = [*retrieved, *retrieved, *judged[:1], *judged[:1], *judged[:1]][:n_retrieved]
            if q % 11 == 0:
                judged[-1:] = judged[:1]
            queries.append((judged, rng.integers(0, 4, n_judged).astype(float).tolist(), retrieved))
        assert_matched(queries, dtype=dtype)

    def test_a_short_query_after_a_long_one_finds_nothing_of_it(self):
        ids = list(range(600))
        assert_matched([(ids[:3], [1.0] * 3, ids), (ids[:3], [1.0] * 3, [7, 8]), ([9], [1.0], [])])
        assert_matched([([9], [1.0], []), (ids[:3], [1.0] * 3, [7, 8]), (ids[:3], [1.0] * 3, ids)])

    def test_one_repeat_at_the_end(self):
        for n in (5, 512, 513):
            ids = list(islice(range(n - 1), n - 1))
            assert_matched([([3, 0], [1.0, 2.0], [*ids, 0]), ([3], [1.0], ids)])

    @pytest.mark.parametrize("n", [64, 600])
    def test_all_ids_in_one_slot(self, n):
        inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
        pool = [(low * inverse) % 2**64 for low in range(1, n + 1)]
        pool = [id_ - 2**64 if id_ >= 2**63 else id_ for id_ in pool]
        assert_matched([(pool[:20], [1.0] * 20, pool[10:]), (pool[:3], [1.0, 2.0, 3.0], pool[::-1])])
        assert_matched([(pool[:20], [1.0] * 20, [*pool[10:], pool[15]])])
