"""Every kind of input gives the same scores for the same data, and they are those of the slow twins."""

from __future__ import annotations

import inspect
import itertools
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from metrics_core import (
    Document,
    IdArrays,
    InputError,
    Policies,
    Qrels,
    Run,
    evaluate,
    metric_names,
    parse,
    read_qrels,
    read_run,
)
from metrics_core.metrics import registered_metrics
from metrics_core.sources.mappings import MappingSource
from metrics_core.sources.trec import TrecSource
from tests import reference, strategies

CATALOGUE = [
    parse(name)
    for name in (
        *("P@1", "P@3", "P(rel=2)@20", "SetP", "SetR", "SetF", "SetF(beta=2)", "SetF(x=2)", "SetAP", "SetRelP"),
        *("R@2", "R(rel=2)@5", "R_cap@2", "Success", "Success@1", "Success(rel=3)@4", "RR", "RR@2", "RR(rel=-1)"),
        *("AP", "AP@3", "AP(rel=2)", "AP(rel=-1)", "AP(rel=0.4)", "GMAP", "Rprec", "Rprec(rel=2)", "DCG", "DCG@2"),
        *("nDCG", "nDCG@3", "nDCG(dcg='exp-log2')@4", "nDCG(gains={1: 0.5, 2: 3})", "nDCG(rel=2)", "DCG(rel=1.5)"),
        *("IPrec@0", "IPrec@0.1", "IPrec@0.4", "IPrec(rel=2)@1", "IPrec11", "Bpref", "Bpref(rel=2)", "infAP"),
        *("ERR(max_rel=4)", "ERR(max_rel=4)@2", "RBP(p=0.8)", "RBP(p=0.5, rel=2)@3", "RBP(p=0.5, max_rel=4)"),
        *("RBPResidual(p=0.9)", "Judged", "Judged@2", "Unj@1", "Unj@3"),
        *("Compat", "Compat(p=0.5)", "Compat(p=0.8, normalize=False)"),
        *("NumRet", "NumRel", "NumRel(rel=2)", "NumRelRet", "NumRelRet(rel=2)", "NumQ"),
    )
]
WITH_EXPECTATION = [metric for metric in CATALOGUE if metric.expected is not None]


def twin(metric, ranking, judgements, default_rel=1.0):
    """The metric of one ranking by its definition."""
    definition = reference.REFERENCE[metric.name]
    arguments = {name: dict(value) if isinstance(value, tuple) else value for name, value in metric.values}
    if (
        "max_rel" not in arguments
        and inspect.signature(definition).parameters.get("rel", SimpleNamespace(default=None)).default is not None
    ):
        arguments.setdefault("rel", default_rel)
    if metric.cutoff is not None:
        arguments["recall" if metric.after == "recall" else "cutoff"] = metric.cutoff
    return definition(ranking, judgements, **arguments)


def twins(metrics, rankings, qrels, default_rel=1.0):
    """(n_queries, n_metrics), in the order of qrels; what has no ranking was not retrieved."""
    return np.array(
        [
            [twin(metric, rankings.get(query, []), judged, default_rel) for metric in metrics]
            for query, judged in qrels.items()
        ]
    ).reshape(len(qrels), len(metrics))


def assert_scores(scores, expected):
    assert scores.values.shape == expected.shape
    wrong = np.argwhere(~np.isclose(scores.values, expected, rtol=1e-12, atol=1e-12))
    assert [(scores.query_ids[q], scores.metrics[m], scores.values[q, m], expected[q, m]) for q, m in wrong] == []


def assert_same(scores, other):
    assert list(scores.query_ids) == list(other.query_ids)
    np.testing.assert_array_equal(scores.values, other.values)


def ranked(run, **policies):
    return {query: reference.rank(scored, **policies) for query, scored in run.items()}


def write(folder, name, lines):
    path = Path(folder) / name
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    return path


def write_pair(folder, qrels, run):
    return (
        write(folder, "qrels", [f"{q} 0 {d} {g!r}" for q, judged in qrels.items() for d, g in judged.items()]),
        write(folder, "run", [f"{q} Q0 {d} 0 {s!r} tag" for q, scored in run.items() for d, s in scored.items()]),
    )


def padded(rows, fill, dtype):
    width = max(map(len, rows), default=0)
    return np.array([[*row, *[fill] * (width - len(row))] for row in rows], dtype).reshape(len(rows), width)


def arrays(rows, *, flat=False, dtype=np.int64, **values):
    """IdArrays of lists of ids, with the padding full of what could be mistaken for an id."""
    lengths = [len(row) for row in rows]
    if flat:
        joined = {name: np.array([*itertools.chain(*lists)], np.float64) for name, lists in values.items()}
        ids = np.array([*itertools.chain(*rows)], dtype)
        return IdArrays(ids, offsets=np.cumsum([0, *lengths]), **joined)
    joined = {name: padded(lists, np.nan, np.float64) for name, lists in values.items()}
    return IdArrays(padded(rows, 1, dtype), lengths=lengths, **joined)


def test_the_list_above_has_all_metrics():
    assert {metric.name for metric in CATALOGUE} == set(metric_names()) == set(reference.REFERENCE)
    how = {metric.name: metric.aggregate for metric in registered_metrics()}
    assert how == {name: reference.AGGREGATE.get(name, "mean") for name in how}


ALL = strategies.qrels_and_run()
IN_FILES = strategies.qrels_and_run(empty_judgements=False, ranking=strategies.scored_documents(min_size=1))


class TestEverySource:
    """One pair of qrels and run, through all the doors."""

    @given(IN_FILES, st.sampled_from(["trec_eval", "beir"]), st.sampled_from(["docid_desc", "input"]))
    def test_dicts_files_and_prepared_objects(self, pair, profile, ties):
        qrels, run = pair
        policies = Policies(profile, ties=ties)
        expected = evaluate(qrels, run, CATALOGUE, policies=policies)
        with tempfile.TemporaryDirectory() as folder:
            qrels_path, run_path = write_pair(folder, qrels, run)
            for judged, retrieved in (
                (qrels_path, str(run_path)),
                (read_qrels(qrels_path), read_run(run_path)),
                (Qrels.from_dict(qrels), Run.from_dict(run)),
                (qrels, run_path),
                (str(qrels_path), run),
                (qrels, read_run(run_path)),
                (read_qrels(qrels_path), run),
            ):
                scores = evaluate(judged, retrieved, CATALOGUE, policies=policies)
                assert_same(scores, expected)
                assert scores.policies == expected.policies

    @given(ALL)
    def test_ranked_lists(self, pair):
        qrels, run = pair
        lists = evaluate(qrels, ranked(run), CATALOGUE)
        assert_same(lists, evaluate(qrels, run, CATALOGUE))
        assert lists.policies == Policies(order="input")
        tuples = {query: tuple(ranking) for query, ranking in ranked(run).items()}
        assert_same(evaluate(qrels, tuples, CATALOGUE), lists)

    @given(ALL, st.booleans(), st.booleans(), st.sampled_from([np.int32, np.int64]), st.booleans())
    def test_integer_arrays(self, pair, judged_flat, retrieved_flat, dtype, scored):
        qrels, run = pair
        texts = sorted({document for side in (qrels, run) for documents in side.values() for document in documents})
        texts.sort(key=reference.id_bytes)
        number = {text: 1000 + place for place, text in enumerate(texts)}  # of one length: in the order of the texts
        rankings = run if scored else ranked(run)
        judged_ids = [[number[document] for document in judged] for judged in qrels.values()]
        retrieved_ids = [[number[document] for document in rankings.get(query, ())] for query in qrels]
        grades = [[*judged.values()] for judged in qrels.values()]
        values = {"scores": [[*run.get(query, {}).values()] for query in qrels]} if scored else {}
        scores = evaluate(
            arrays(judged_ids, flat=judged_flat, dtype=dtype, grades=grades),
            arrays(retrieved_ids, flat=retrieved_flat, dtype=dtype, **values),
            CATALOGUE,
            query_ids=list(qrels),
        )
        assert_same(scores, evaluate(qrels, run, CATALOGUE))

    @given(ALL, st.sampled_from(["id", "content", "meta.a.b"]), st.booleans())
    def test_document_lists(self, pair, field, as_haystack_profile):
        qrels, run = pair
        make = {
            "id": lambda key, score: Document(id=key, score=score),
            "content": lambda key, score: Document(content=key, score=score),
            "meta.a.b": lambda key, score: SimpleNamespace(meta={"a": {"b": key}}, score=score),
        }[field]
        policies = Policies("haystack") if as_haystack_profile else Policies("trec_eval")
        rankings = ranked(run)
        scores = evaluate(
            [[make(document, grade) for document, grade in judged.items()] for judged in qrels.values()],
            [[make(document, None) for document in rankings.get(query, ())] for query in qrels],
            CATALOGUE,
            policies=policies,
            document_comparison_field=field,
            query_ids=list(qrels),
        )
        equal_policies = Policies("trec_eval", default_rel=policies.default_rel)
        assert_same(scores, evaluate(qrels, run, CATALOGUE, policies=equal_policies))

    def test_arrays_of_numpy_stand_for_ids_alone(self):
        scores = evaluate(np.array([[1, 2], [3, 4]]), np.array([[2, 9], [9, 9 + 1]]), ["RR", "R@2"])
        assert scores.values.tolist() == [[1, 1 / 2], [0, 0]]
        assert scores.query_ids == range(2)


class TestTwins:
    @given(ALL, st.sampled_from(["docid_desc", "input"]), st.sampled_from(["float64", "float32"]))
    def test_whole_catalogue(self, pair, ties, score_dtype):
        qrels, run = pair
        scores = evaluate(qrels, run, CATALOGUE, policies=Policies(ties=ties, score_dtype=score_dtype))
        assert_scores(scores, twins(CATALOGUE, ranked(run, ties=ties, score_dtype=score_dtype), qrels))

    @given(ALL)
    def test_gains_that_do_not_ascend_with_the_grades(self, pair):
        qrels, run = pair
        metrics = [
            parse(name) for name in ("nDCG(gains={1: 3, 2: 0.5})", "DCG(gains={1: 3, 2: 0.5})", "nDCG(gains={0: 2})@2")
        ]
        assert_scores(evaluate(qrels, run, metrics), twins(metrics, ranked(run), qrels))

    @given(ALL, st.sampled_from([-np.inf, -1, 0, 0.4, 2]))
    def test_default_rel(self, pair, default_rel):
        qrels, run = pair
        scores = evaluate(qrels, run, CATALOGUE, policies=Policies(default_rel=default_rel))
        assert_scores(scores, twins(CATALOGUE, ranked(run), qrels, default_rel))

    @pytest.mark.parametrize(
        "documents",
        [strategies.INTEGERS, strategies.BYTES, st.sampled_from(strategies.ODD_IDS)],
        ids=["int", "bytes", "odd"],
    )
    @given(data=st.data())
    def test_ids_of_every_kind(self, documents, data):
        qrels, run = data.draw(strategies.qrels_and_run(documents=documents))
        assert_scores(evaluate(qrels, run, CATALOGUE), twins(CATALOGUE, ranked(run), qrels))
        assert_scores(evaluate(qrels, ranked(run), CATALOGUE), twins(CATALOGUE, ranked(run), qrels))

    @given(strategies.qrels_and_run(query_ids=("a\0b", "a", "\ud800", "#", "x/ y", "")))
    def test_query_ids_of_every_kind(self, pair):
        qrels, run = pair
        assert_scores(evaluate(qrels, run, CATALOGUE), twins(CATALOGUE, ranked(run), qrels))

    @given(strategies.qrels_and_run(query_ids=(-1, -2, 2**53, 2**53 + 1, -(2**70))))
    def test_integer_query_ids(self, pair):
        qrels, run = pair
        assert_scores(evaluate(qrels, run, CATALOGUE), twins(CATALOGUE, ranked(run), qrels))

    @given(
        strategies.id_arrays(pool=strategies.INTEGER_IDS, padding=(-2, -1, 0, 9)),
        st.sampled_from(["docid_desc", "input"]),
    )
    def test_integer_arrays(self, drawn, ties):
        scores = evaluate(
            IdArrays(drawn.judged_ids, grades=drawn.grades, lengths=drawn.n_judged),
            IdArrays(drawn.retrieved_ids, scores=drawn.scores, lengths=drawn.n_retrieved),
            CATALOGUE,
            policies=Policies(ties=ties),
        )
        queries = range(len(drawn.n_judged))
        rankings = {query: reference.rank(drawn.ranking(query), ties=ties) for query in queries}
        assert_scores(scores, twins(CATALOGUE, rankings, {query: drawn.judgements(query) for query in queries}))

    @given(strategies.id_arrays(repeats=True), st.sampled_from(["first_keep_rank", "first_compact"]), st.booleans())
    def test_repeats(self, drawn, duplicates, scored):
        values = {"scores": drawn.scores} if scored else {}
        scores = evaluate(
            IdArrays(drawn.judged_ids, grades=drawn.grades, lengths=drawn.n_judged),
            IdArrays(drawn.retrieved_ids, lengths=drawn.n_retrieved, **values),
            CATALOGUE,
            policies=Policies(duplicates=duplicates),
        )
        queries = range(len(drawn.n_judged))
        order = "score" if scored else "input"
        rankings = {query: reference.rank(drawn.ranking(query), order=order) for query in queries}
        if duplicates == "first_compact":
            rankings = {query: reference.without_repeats(ranking) for query, ranking in rankings.items()}
        assert_scores(scores, twins(CATALOGUE, rankings, {query: drawn.judgements(query) for query in queries}))

    @given(
        strategies.qrels_and_run(ranking=strategies.rankings(none=False), missing=False),
        st.sampled_from(["first_keep_rank", "first_compact"]),
    )
    def test_repeats_in_ranked_lists_and_documents(self, pair, duplicates):
        qrels, run = pair
        rankings = {q: reference.without_repeats(r) for q, r in run.items()} if duplicates == "first_compact" else run
        expected = twins(CATALOGUE, rankings, qrels)
        policies = Policies(duplicates=duplicates)
        assert_scores(evaluate(qrels, run, CATALOGUE, policies=policies), expected)
        ground_truth = [[Document(content=d, score=g) for d, g in judged.items()] for judged in qrels.values()]
        retrieved = [[Document(content=d) for d in run[query]] for query in qrels]
        assert_scores(evaluate(ground_truth, retrieved, CATALOGUE, policies=policies), expected)

    @given(
        st.lists(strategies.scored_pairs(), min_size=1, max_size=3),
        strategies.judgements(min_size=1),
        st.sampled_from(["first_keep_rank", "first_compact"]),
    )
    def test_repeats_in_files(self, rankings, judged, duplicates):
        qrels = {str(place): judged for place in range(len(rankings))}
        with tempfile.TemporaryDirectory() as folder:
            qrels_path, _ = write_pair(folder, qrels, {})
            lines = [f"{q} Q0 {d} 0 {s!r} tag" for q, pairs in enumerate(rankings) for d, s in pairs]
            run_path = write(folder, "run", [*lines, "other Q0 a 0 1 tag"])
            scores = evaluate(qrels_path, run_path, CATALOGUE, policies=Policies(duplicates=duplicates))
        orders = {str(place): reference.rank(pairs) for place, pairs in enumerate(rankings)}
        if duplicates == "first_compact":
            orders = {query: reference.without_repeats(order) for query, order in orders.items()}
        assert_scores(scores, twins(CATALOGUE, orders, qrels))

    @given(strategies.qrels_and_run(ranking=strategies.scored_documents(max_size=6), query_ids=("q1", "q2")))
    def test_expected_ties(self, pair):
        qrels, run = pair
        scores = evaluate(qrels, run, WITH_EXPECTATION, policies=Policies(ties="expected"))
        expected = [
            [
                reference.expected_over_ties(partial(twin, metric), run.get(query, {}), judged)
                for metric in WITH_EXPECTATION
            ]
            for query, judged in qrels.items()
        ]
        assert_scores(scores, np.array(expected))

    @pytest.mark.parametrize("duplicates", ["first_keep_rank", "first_compact"])
    @given(drawn=strategies.id_arrays(repeats=True, max_size=4, max_queries=2))
    def test_expected_ties_with_repeats(self, drawn, duplicates):
        for query in range(len(drawn.n_judged)):
            scored = drawn.ranking(query)
            assume(len(set(scored)) == len(scored))  # a repeat within a tie is refused
        policies = Policies(ties="expected", duplicates=duplicates)
        scores = evaluate(
            IdArrays(drawn.judged_ids, grades=drawn.grades, lengths=drawn.n_judged),
            IdArrays(drawn.retrieved_ids, scores=drawn.scores, lengths=drawn.n_retrieved),
            WITH_EXPECTATION,
            policies=policies,
        )

        def value(metric, ranking, judged):
            return twin(
                metric, reference.without_repeats(ranking) if duplicates == "first_compact" else ranking, judged
            )

        expected = [
            [
                reference.expected_over_ties(partial(value, metric), drawn.ranking(query), drawn.judgements(query))
                for metric in WITH_EXPECTATION
            ]
            for query in range(len(drawn.n_judged))
        ]
        assert_scores(scores, np.array(expected))


class TestDocuments:
    @given(
        strategies.document_lists(Document), st.sampled_from(strategies.FIELDS), st.sampled_from(["match", "ignore"])
    )
    def test_equal_the_twins_of_the_haystack_evaluators(self, lists, field, empty_key):
        ground_truth, retrieved = lists
        ignored = ("",) if empty_key == "ignore" else ()
        metrics = ["Success", "SetR", "RR", "AP", "nDCG"]
        scores = evaluate(
            ground_truth,
            retrieved,
            metrics,
            policies=Policies("haystack", empty_key=empty_key),
            document_comparison_field=field,
        )
        expected = []
        for truths, found in zip(ground_truth, retrieved, strict=True):
            keys, found_keys = (
                [None if key in ignored else key for key in reference.haystack_keys(documents, field)]
                for documents in (truths, found)
            )
            gains = [document.score for document in truths]
            hits = [key for key in reference.distinct(keys) if key in found_keys]
            expected.append(
                [
                    float(bool(hits)),
                    reference.ratio(len(hits), len(reference.distinct(keys))),
                    reference.document_reciprocal_rank(keys, found_keys),
                    reference.document_average_precision(keys, found_keys),
                    reference.document_ndcg(keys, gains, found_keys),
                ]
            )
        assert_scores(scores, np.array(expected))

    @given(strategies.document_lists(Document), st.sampled_from(strategies.FIELDS))
    def test_each_metric_alone_equals_all_together(self, lists, field):
        """What a metric does not need is not found out, by other ways of matching."""
        together = evaluate(*lists, CATALOGUE, policies="haystack", document_comparison_field=field)
        for metric in CATALOGUE:
            alone = evaluate(*lists, metric, policies="haystack", document_comparison_field=field)
            np.testing.assert_array_equal(alone[metric], together[metric])


class TestInvariants:
    @given(ALL)
    def test_a_batch_equals_its_queries_one_by_one(self, pair):
        qrels, run = pair
        scores = evaluate(qrels, run, CATALOGUE)
        for row, query in zip(scores.values, qrels, strict=True):
            alone = evaluate({query: qrels[query]}, run, CATALOGUE)
            np.testing.assert_array_equal(alone.values[0], row)

    @given(ALL, st.randoms(use_true_random=False))
    def test_order_of_queries_and_documents(self, pair, random):
        def shuffled(mapping):
            items = list(mapping.items())
            random.shuffle(items)
            return dict(items)

        qrels, run = pair
        scores = evaluate(qrels, run, CATALOGUE)
        other = evaluate(
            {query: shuffled(judged) for query, judged in shuffled(qrels).items()},
            {query: shuffled(scored) for query, scored in shuffled(run).items()},
            CATALOGUE,
        )
        assert scores.to_dict() == other.to_dict()
        assert scores.mean() == other.mean()
        assert_same(evaluate(qrels, run, CATALOGUE, query_ids=list(other.query_ids)), other)

    @given(ALL)
    def test_relabelling_that_keeps_the_order(self, pair):
        def relabelled(side):
            return {f"query {query}": {f"doc-{d}": value for d, value in part.items()} for query, part in side.items()}

        qrels, run = pair
        other = evaluate(relabelled(qrels), relabelled(run), CATALOGUE)
        np.testing.assert_array_equal(other.values, evaluate(qrels, run, CATALOGUE).values)

    @given(
        strategies.qrels_and_run(ranking=strategies.scored_documents(tied=False)), st.permutations(strategies.TEXT_IDS)
    )
    def test_any_relabelling_without_ties(self, pair, labels):
        new = dict(zip(strategies.TEXT_IDS, labels, strict=True))
        qrels, run = pair
        other = evaluate(
            *({query: {new[d]: v for d, v in part.items()} for query, part in side.items()} for side in pair), CATALOGUE
        )
        np.testing.assert_array_equal(other.values, evaluate(qrels, run, CATALOGUE).values)

    @given(ALL, st.floats(1e-3, 1e3), st.floats(-10, 10))
    def test_only_the_order_of_scores_counts(self, pair, factor, shift):
        qrels, run = pair
        place = {
            score: rank for rank, score in enumerate(sorted({s for scored in run.values() for s in scored.values()}))
        }
        other = {q: {d: factor * place[score] + shift for d, score in scored.items()} for q, scored in run.items()}
        assert_same(evaluate(qrels, other, CATALOGUE), evaluate(qrels, run, CATALOGUE))

    @given(strategies.judgements(min_size=1, grade=st.sampled_from([0, 1, 2, 3, 4])))
    def test_the_ideal_ranking_scores_one(self, judged):
        ideal = sorted(judged, key=judged.get, reverse=True)
        n_relevant = sum(grade >= 1 for grade in judged.values())
        at_relevant = [f"P@{n_relevant}", f"R@{n_relevant}"] if n_relevant else []
        names = ["nDCG", "nDCG@2", "AP", "RR", "Success", "Rprec", "R_cap@2", "SetR", "Bpref", "IPrec11", "Compat"]
        scores = evaluate({"q": judged}, {"q": ideal}, [*names, *at_relevant])
        assert scores.values[0] == pytest.approx(np.full(len(scores.metrics), float(n_relevant > 0)), abs=1e-12)

    @given(ALL)
    def test_bounds(self, pair):
        scores = evaluate(*pair, CATALOGUE)
        for metric in CATALOGUE:
            assert (scores[metric] >= 0).all(), metric
            if metric.aggregate != "sum" and metric.name not in ("DCG", "infAP"):
                assert (scores[metric] <= 1 + 1e-12).all(), metric
            assert np.isfinite(scores[metric]).all()

    @given(IN_FILES, st.integers(1, 12), st.integers(1, 4))
    def test_blocks_and_threads_change_nothing(self, pair, block_cells, n_threads):
        expected = evaluate(*pair, CATALOGUE, n_threads=1)
        prepared = Qrels.from_dict(pair[0]), Run.from_dict(pair[1])
        with pytest.MonkeyPatch.context() as patch:
            for source in (MappingSource, TrecSource):
                patch.setattr(source, "block_cells", block_cells)
            assert_same(evaluate(*pair, CATALOGUE, n_threads=n_threads), expected)
            assert_same(evaluate(*prepared, CATALOGUE, n_threads=n_threads), expected)


def large(n_queries, n_judged, n_retrieved, *, tied, seed=0, pool=None, presorted=False):
    """Qrels and a run of integer ids from all of 64 bits."""
    rng = np.random.default_rng(seed)
    pool = rng.integers(-(2**63), 2**63 - 1, max(n_judged, n_retrieved) * 2) if pool is None else np.array(pool)
    qrels, run = {}, {}
    for query in range(n_queries):
        judged = rng.choice(pool, n_judged, replace=False).tolist()
        retrieved = rng.choice(pool, n_retrieved, replace=False).tolist()
        qrels[query] = dict(zip(judged, rng.integers(-1, 4, n_judged).tolist(), strict=True))
        scores = rng.integers(0, 9, n_retrieved).astype(float) if tied else rng.permutation(n_retrieved) / 8
        scores = -np.sort(-scores) if presorted else scores
        run[query] = dict(zip(retrieved, scores.tolist(), strict=True))
    return qrels, run


SIZES = [
    *((0, 3), (3, 0), (1, 1), (5, 511), (32, 512), (33, 512), (5, 513), (600, 20), (20, 3), (17, 300), (200, 700)),
    *((5, 3000), (1500, 2000)),
]
SOME = [
    parse(name) for name in ("AP", "RR", "DCG", "nDCG@10", "Bpref", "Judged@20", "NumRelRet", "RBP(p=0.9)", "Unj@9")
]


class TestSizes:
    """The ways that the kernels take for few and many, short and long, sorted and not."""

    @pytest.mark.parametrize("tied", [False, True], ids=["distinct", "tied"])
    @pytest.mark.parametrize("presorted", [False, True], ids=["shuffled", "sorted"])
    @pytest.mark.parametrize(("n_judged", "n_retrieved"), SIZES)
    def test_all_sources(self, n_judged, n_retrieved, tied, presorted):
        qrels, run = large(3, n_judged, n_retrieved, tied=tied, presorted=presorted)
        texts = [{str(q): {str(d): v for d, v in part.items()} for q, part in side.items()} for side in (qrels, run)]
        judged = arrays([[*part] for part in qrels.values()], grades=[[*part.values()] for part in qrels.values()])
        found = arrays([[*part] for part in run.values()], scores=[[*part.values()] for part in run.values()])
        order = ranked(run)
        expected = twins(SOME, order, qrels)
        documents = [[Document(id=str(d), score=g) for d, g in part.items()] for part in qrels.values()]
        retrieved = [[Document(id=str(d)) for d in ranking] for ranking in order.values()]
        policies = Policies("haystack", default_rel=1)
        for scores in (
            evaluate(qrels, run, SOME),
            evaluate(qrels, order, SOME),
            evaluate(*texts, SOME),
            evaluate(Qrels.from_dict(texts[0]), Run.from_dict(texts[1]), SOME),
            evaluate(judged, arrays([*order.values()]), SOME),
            evaluate(documents, retrieved, SOME, policies=policies, document_comparison_field="id"),
            evaluate(documents, retrieved, ["AP", "RR"], policies=policies, document_comparison_field="id"),
            evaluate(judged, found, SOME),
        ):
            assert_scores(scores, expected[:, : len(scores.metrics)])

    @pytest.mark.parametrize("tied", [False, True])
    @pytest.mark.parametrize(("n_judged", "n_retrieved"), [(5, 400), (33, 400), (5, 600), (700, 600)])
    def test_repeats(self, n_judged, n_retrieved, tied):
        rng = np.random.default_rng(1)
        ids = rng.integers(0, n_retrieved // 2, (2, n_retrieved))
        values = rng.integers(0, 9, ids.shape) / 8 if tied else rng.permuted(np.arange(ids.size)).reshape(ids.shape) / 8
        qrels = {q: {d: d % 4 - 1 for d in rng.permutation(n_judged).tolist()} for q in range(2)}
        for duplicates in ("first_keep_rank", "first_compact"):
            scores = evaluate(
                arrays([[*part] for part in qrels.values()], grades=[[*part.values()] for part in qrels.values()]),
                IdArrays(ids, scores=values),
                SOME,
                policies=Policies(duplicates=duplicates),
            )
            order = {q: reference.rank(list(zip(ids[q].tolist(), values[q].tolist(), strict=True))) for q in range(2)}
            if duplicates == "first_compact":
                order = {q: reference.without_repeats(ranking) for q, ranking in order.items()}
            assert_scores(scores, twins(SOME, order, qrels))

    @pytest.mark.parametrize("n_retrieved", [50, 600])
    def test_ids_that_share_a_slot_of_the_hash_tables(self, n_retrieved):
        """Multiples of the inverse of the hash's factor: the high bits that choose the slot are 0 for all of them."""
        inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
        colliding = [(i * inverse) % 2**64 for i in range(1, 2 * n_retrieved + 1)]
        pool = [id_ - 2**64 if id_ >= 2**63 else id_ for id_ in colliding]
        qrels, run = large(2, 20, n_retrieved, tied=False, pool=pool)
        judged = arrays([[*part] for part in qrels.values()], grades=[[*part.values()] for part in qrels.values()])
        assert_scores(evaluate(judged, arrays([*ranked(run).values()]), SOME), twins(SOME, ranked(run), qrels))

    @given(st.lists(st.sampled_from([5, -1, -2, 2**31, 2**53 + 1]), unique=True), st.booleans())
    def test_minus_one_is_an_id_like_others_in_arrays(self, ids, flat):
        scores = evaluate(arrays([[-1]], flat=flat), arrays([ids], flat=flat), "RR")
        assert scores["RR"][0] == (1 / (ids.index(-1) + 1) if -1 in ids else 0)


class TestIds:
    def test_equal_hashes_are_not_equal_ids(self):
        assert hash(-1) == hash(-2)
        qrels = {-1: {-1: 1}, -2: {-2: 1}}
        scores = evaluate(qrels, {-1: {-2: 1.0}, -2: {-2: 1.0}}, "RR")
        assert scores.to_dict() == {-1: {"RR": 0.0}, -2: {"RR": 1.0}}

    def test_integers_beyond_the_floats(self):
        wide, other = 2**53, 2**53 + 1
        assert float(wide) == float(other)
        for ids in (lambda q, r: ({0: {q: 1}}, {0: [r]}), lambda q, r: (np.array([[q]]), np.array([[r]]))):
            assert evaluate(*ids(wide, other), "RR")["RR"][0] == 0
            assert evaluate(*ids(other, other), "RR")["RR"][0] == 1
        assert evaluate({0: {2**70: 1}}, {0: {2**70: 1.0}}, "RR")["RR"][0] == 1

    def test_odd_texts_stay_whole_and_distinct(self):
        for judged, retrieved in itertools.permutations(["a", "a\0", "a\0b", "\ud800", " a", "#a", "/a", "a\n"], 2):
            assert evaluate({"q": {judged: 1}}, {"q": {retrieved: 1.0}}, "RR")["RR"][0] == 0
            assert evaluate({"q": {judged: 1}}, {"q": [retrieved, judged]}, "RR")["RR"][0] == 1 / 2

    @pytest.mark.parametrize(
        ("lower", "higher"),
        [
            ("a", "b"),
            ("B", "a"),
            ("10", "9"),
            ("a", "aa"),
            ("a", "a\0"),
            ("\ufb01", "\U0001f600"),
            ("\ud7ff", "\ud800"),
            (b"a", b"\xff"),
            (b"a", b"a\0"),
            (10, 9),
            (-1, 1),
            (-1, -2),
            (1, 10),
            (2**63 - 1, 93),
            (-(2**63), 0),
        ],
    )
    def test_ties_are_ordered_by_the_bytes_of_the_ids(self, lower, higher):
        assert reference.id_bytes(lower) < reference.id_bytes(higher)
        for relevant, expected in ((higher, 1), (lower, 1 / 2)):
            for order in ((lower, higher), (higher, lower)):
                assert evaluate({"q": {relevant: 1}}, {"q": dict.fromkeys(order, 0.5)}, "RR")["RR"][0] == expected

    @given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=8, unique=True))
    def test_integers_in_arrays_dicts_and_files_order_alike(self, ids):
        texts = [str(one) for one in ids]
        order = sorted(ids, key=reference.id_bytes, reverse=True)
        for place, relevant in enumerate(order, start=1):
            tied = [[1.0] * len(ids)]
            from_arrays = evaluate(arrays([[relevant]]), arrays([ids], scores=tied), "RR")
            from_ints = evaluate({0: {relevant: 1}}, {0: dict.fromkeys(ids, 1.0)}, "RR")
            from_texts = evaluate({"0": {str(relevant): 1}}, {"0": dict.fromkeys(texts, 1.0)}, "RR")
            assert [scores["RR"][0] for scores in (from_arrays, from_ints, from_texts)] == [1 / place] * 3

    def test_numpy_scalars_are_numbers_and_ids(self):
        qrels = {"q": {np.int64(1): np.int64(2), 2: np.bool_(True), 3: False, 4: np.float32(0.5)}}
        run = {"q": {1: np.float32(0.5), np.int64(2): np.float64(0.25), 4: 3}}
        scores = evaluate(qrels, run, ["RR", "DCG"])
        expected = twins([parse("RR"), parse("DCG")], {"q": [4, 1, 2]}, {"q": {1: 2, 2: 1, 3: 0, 4: 0.5}})
        assert_scores(scores, expected)

    def test_padding_may_hold_anything(self):
        judged = IdArrays([[7, 9], [7, 7]], grades=[[1, np.nan], [1, np.inf]], lengths=[1, 1])
        run = IdArrays([[9, 7, 7], [9, 9, 7]], scores=[[1, 2, np.nan], [2, np.nan, np.inf]], lengths=[2, 1])
        assert evaluate(judged, run, ["RR", "NumRet", "NumRel"]).values.tolist() == [[1, 2, 1], [0, 1, 1]]
        run = IdArrays(np.array([[9, 7, 2**64 - 1], [9, 2**63, 2**63]], np.uint64), lengths=[2, 1])
        assert evaluate(judged, run, ["RR", "NumRet", "NumRel"]).values.tolist() == [[1 / 2, 2, 1], [0, 1, 1]]

    def test_unsigned_and_narrow_integers(self):
        for dtype in (np.uint8, np.int16, np.uint32, np.uint64):
            assert evaluate(np.array([[3]], dtype), np.array([[4, 3]], dtype), "RR")["RR"][0] == 1 / 2
        with pytest.raises(InputError, match=r"^ids must fit in 64-bit signed integers, got 9223372036854775808$"):
            IdArrays(np.array([[2**63]], np.uint64))

    def test_numbers_beyond_float64_are_not_finite(self):
        if np.finfo(np.longdouble).max <= np.finfo(np.float64).max:
            pytest.skip("long double is float64 here")
        with pytest.raises(InputError, match=r"^grades of row 1 must be finite, got inf$"):
            IdArrays([[1], [2]], grades=np.array([["1"], ["1e400"]], np.longdouble))

    def test_metrics_that_share_a_batch_do_not_disturb_each_other(self):
        qrels, run = large(4, 12, 40, tied=True)
        together = evaluate(qrels, run, CATALOGUE)
        for metric in CATALOGUE:
            np.testing.assert_array_equal(evaluate(qrels, run, metric)[metric], together[metric])
            plain = replace(metric, compiled=False)
            np.testing.assert_array_equal(evaluate(qrels, run, plain)[plain], together[metric])
