"""agreement() against scikit-learn, the krippendorff package and scipy; what is undefined, and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import FrozenInstanceError
from itertools import pairwise, product
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from llm_judges import FaithfulnessEvaluator, ScriptedChatGenerator, agreement
from metrics_core.errors import InputError

SCALES = ("nominal", "ordinal")
N_RESAMPLES = 200


def columns(levels: int, *, min_size: int = 1):
    """Two columns of labels 0 .. levels - 1, None or NaN where unscored."""
    labels = st.sampled_from([*range(levels), None, nan])
    return st.lists(st.tuples(labels, labels), min_size=min_size, max_size=40).map(
        lambda rows: tuple(list(column) for column in zip(*rows, strict=True))
    )


def compared(judged, human):
    pairs = [(j, h) for j, h in zip(judged, human, strict=True) if not any(x is None or x != x for x in (j, h))]
    return [j for j, _ in pairs], [h for _, h in pairs]


@given(columns(4), st.sampled_from(SCALES))
def test_scikit_learn_gives_the_same_kappa_accuracy_and_table(both, scale):
    metrics = pytest.importorskip("sklearn.metrics")
    judged, human = compared(*both)
    assume(len({*judged, *human}) > 1)
    result = agreement(*both, scale, labels=range(4), n_resamples=2)
    weights = "quadratic" if scale == "ordinal" else None
    assert result.kappa == pytest.approx(metrics.cohen_kappa_score(human, judged, labels=range(4), weights=weights))
    assert result.accuracy == pytest.approx(metrics.accuracy_score(human, judged))
    assert result.confusion.tolist() == metrics.confusion_matrix(human, judged, labels=range(4)).tolist()


@given(columns(4), st.sampled_from(SCALES))
def test_the_krippendorff_package_gives_the_same_alpha(both, scale):
    krippendorff = pytest.importorskip("krippendorff")
    judged, human = both
    assume(len({label for column in compared(judged, human) for label in column}) > 1)
    matrix = [[nan if label is None else label for label in column] for column in both]
    expected = krippendorff.alpha(matrix, level_of_measurement=scale, value_domain=range(4))
    assert agreement(judged, human, scale, labels=range(4), n_resamples=2).alpha == pytest.approx(expected)


def test_alpha_of_krippendorffs_own_two_observers():
    """Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section A: binary, two observers, no gaps."""
    meg = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    owen = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    # 4 of 20 values pair up differently, each way; 14 zeros and 6 ones
    assert agreement(meg, owen).alpha == pytest.approx(1 - (20 - 1) * 4 / (14 * 6))


def test_cohens_kappa_by_hand():
    judged = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    human = [1] * 25 + [0] * 25
    result = agreement(judged, human)
    by_chance = (30 * 25 + 20 * 25) / 50**2
    assert result.accuracy == pytest.approx(35 / 50)
    assert result.kappa == pytest.approx((35 / 50 - by_chance) / (1 - by_chance))
    assert result.confusion.tolist() == [[15, 10], [5, 20]]


@given(columns(3), st.sampled_from(SCALES))
def test_unscored_rows_are_left_out_and_counted(both, scale):
    judged, human = both
    with_gaps = agreement(judged, human, scale, labels=range(3), n_resamples=20)
    without = agreement(*compared(judged, human), scale, labels=range(3), n_resamples=20)
    for name in ("accuracy", "kappa", "alpha", "confusion"):
        assert np.array_equal(getattr(with_gaps, name), getattr(without, name), equal_nan=True)
    assert np.array_equal([*with_gaps.intervals.values()], [*without.intervals.values()], equal_nan=True)
    scored = [[label is not None and label == label for label in column] for column in both]
    assert (with_gaps.n_judged, with_gaps.n_human) == tuple(map(sum, scored))
    assert (with_gaps.n_rows, with_gaps.n_compared) == (len(judged), without.n_rows)


@given(columns(4), st.sampled_from(SCALES), st.randoms())
def test_the_order_of_rows_and_who_is_who_change_no_figure(both, scale, random):
    rows = list(zip(*both, strict=True))
    random.shuffle(rows)
    first = agreement(*both, scale, labels=range(4), n_resamples=2)
    shuffled = agreement(*zip(*rows, strict=True), scale, labels=range(4), n_resamples=2)
    swapped = agreement(*reversed(both), scale, labels=range(4), n_resamples=2)
    for name in ("accuracy", "kappa", "alpha"):
        for other in (shuffled, swapped):
            assert getattr(other, name) == pytest.approx(getattr(first, name), nan_ok=True)


@given(columns(3))
def test_names_of_nominal_labels_do_not_matter(both):
    names = {0: "yes", 1: "no", 2: "partly"}
    named = [[names.get(label, label) for label in column] for column in both]
    plain = agreement(*both, "nominal", n_resamples=2)
    renamed = agreement(*named, "nominal", n_resamples=2)
    for name in ("accuracy", "kappa", "alpha"):
        assert getattr(renamed, name) == pytest.approx(getattr(plain, name), nan_ok=True)


@given(columns(5))
def test_disagreements_are_the_rows_that_differ_the_furthest_first(both):
    judged, human = both
    rows = agreement(judged, human, "ordinal", labels=range(5), n_resamples=2).disagreements
    distances = [abs(judged[row] - human[row]) for row in rows]
    assert distances == sorted(distances, reverse=True)
    assert all(first < second for first, second in pairwise(rows) if _tied(first, second, both))
    in_order = agreement(judged, human, "nominal", labels=range(5), n_resamples=2).disagreements
    assert sorted(rows) == list(in_order) == [row for row in range(len(judged)) if _differ(judged[row], human[row])]


def _differ(j, h):
    return not any(x is None or x != x for x in (j, h)) and j != h


def _tied(first, second, both):
    judged, human = both
    return abs(judged[first] - human[first]) == abs(judged[second] - human[second])


def test_quadratic_weights_forgive_near_misses():
    human = [1, 2, 3, 4, 5] * 4
    near = [min(label + 1, 5) for label in human]
    # distances squared: 1 in 16 of 20 rows; by chance, 2, 3, 4, 5, 5 against 1, 2, 3, 4, 5: 100 in 25 pairs
    assert agreement(near, human, "ordinal").kappa == pytest.approx(1 - (16 / 20) / (100 / 25))
    assert agreement(near, human, "nominal").kappa == pytest.approx(0)


def test_a_level_that_nobody_used_counts_if_it_is_given():
    judged, human = [1, 2, 4, 4, 1], [1, 4, 4, 2, 1]
    used = agreement(judged, human, "ordinal")
    all_levels = agreement(judged, human, "ordinal", labels=range(1, 5))
    assert used.labels == (1, 2, 4)
    assert all_levels.kappa < used.kappa
    assert all_levels.alpha == pytest.approx(used.alpha)  # its distances come from how often each level is used


# What is undefined is NaN


@pytest.mark.parametrize("scale", ["binary", *SCALES])
def test_one_label_only_leaves_nothing_to_tell_from_chance(scale):
    result = agreement([1, 1, 1], [1, 1, 1], scale, n_resamples=N_RESAMPLES)
    assert result.accuracy == 1
    assert isnan(result.kappa)
    assert isnan(result.alpha)
    assert result.intervals["accuracy"] == (1, 1)
    assert all(map(isnan, (*result.intervals["kappa"], *result.intervals["alpha"])))


def test_a_judge_that_always_says_the_same_is_at_chance():
    assert agreement([1, 1, 1, 1], [0, 1, 0, 1]).kappa == 0


@pytest.mark.parametrize(("judged", "human"), [([], []), ([1, None], [None, 0]), ([nan], [nan])])
@pytest.mark.parametrize("scale", ["binary", *SCALES])
def test_no_row_that_both_scored(judged, human, scale):
    result = agreement(judged, human, scale)
    assert result.n_compared == 0
    assert all(map(isnan, (result.accuracy, result.kappa, result.alpha)))
    assert all(isnan(end) for interval in result.intervals.values() for end in interval)
    assert result.disagreements == ()


def test_one_row_has_figures_and_no_interval():
    result = agreement([1], [0])
    assert result.accuracy == 0
    assert all(map(isnan, result.intervals["accuracy"]))


# What is refused


@pytest.mark.parametrize(
    ("judged", "human", "options", "message"),
    [
        ([1], [1, 0], {}, "judged has 1 rows and human 2; they must pair up"),
        ([1, 0.5], [1, 0], {}, "judged[1] is 0.5, which is none of the labels [0, 1]; cut other scores into two"),
        (["yes"], ["no"], {}, "judged[0] is 'yes', which is none of the labels [0, 1]"),
        ([1], ["1"], {"scale": "nominal"}, "labels mix words and numbers: [1, '1']"),
        (["a"], ["b"], {"scale": "ordinal"}, "words such as 'a' have no order; give labels="),
        ([1, 6], [1, 2], {"scale": "ordinal", "labels": range(1, 6)}, "judged[1] is 6, which is none of the labels"),
        ([1, 0], [1, [0]], {}, "human[1] is [0]; a label is a str, a bool or a number"),
        ([1], [1], {"labels": (0, 1, 2)}, "on the binary scale two, got (0, 1, 2)"),
        (
            [1],
            [1],
            {"scale": "nominal", "labels": (1, 1)},
            "labels must be two or more different ones, on the binary scale two, got (1, 1)",
        ),
        ([1], [1], {"scale": "interval"}, "scale must be one of 'binary', 'nominal', 'ordinal', got 'interval'"),
        ([1], [1], {"n_resamples": 1}, "n_resamples must be at least 2, got 1"),
    ],
)
def test_refused_with_what_came(judged, human, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        agreement(judged, human, **options)


def test_words_in_two_classes_and_an_order_of_words():
    assert agreement(["yes", "no"], ["yes", "yes"], labels=("no", "yes")).confusion.tolist() == [[0, 0], [1, 1]]
    result = agreement(["low", "high"], ["high", "high"], "ordinal", labels=("low", "middle", "high"))
    assert result.labels == ("low", "middle", "high")


def test_bools_numbers_and_arrays_are_the_same_labels():
    plain = agreement([1, 0, None], [0, 0, 1])
    others = agreement(np.array([1.0, 0.0, nan]), np.array([False, False, True]))
    assert (others.kappa, others.labels, others.n_compared) == (plain.kappa, plain.labels, plain.n_compared)


# The intervals


def test_intervals_are_scipys_over_pairs_of_rows():
    from scipy.stats import bootstrap

    random = np.random.default_rng(5)
    human = random.integers(0, 2, 60)
    judged = np.where(random.random(60) < 0.8, human, 1 - human)

    def accuracy(human, judged, axis):
        return np.mean(human == judged, axis=axis)

    expected = bootstrap((human, judged), accuracy, paired=True, method="percentile", rng=11).confidence_interval
    # of other random numbers: an end may be another of the 60ths that accuracies are
    assert agreement(judged, human).intervals["accuracy"] == pytest.approx((expected.low, expected.high), abs=1.01 / 60)


def test_intervals_are_those_of_all_resamples_that_there_are():
    metrics = pytest.importorskip("sklearn.metrics")
    judged, human = np.array([1, 1, 0, 0]), np.array([1, 1, 1, 0])
    resamples = [list(rows) for rows in product(range(4), repeat=4)]
    mixed = [rows for rows in resamples if len({*judged[rows], *human[rows]}) > 1]
    kappas = [metrics.cohen_kappa_score(human[rows], judged[rows]) for rows in mixed]
    accuracies = [np.mean(human[rows] == judged[rows]) for rows in resamples]
    intervals = agreement(judged, human, n_resamples=100_000).intervals
    for name, exact in (("accuracy", accuracies), ("kappa", kappas)):
        assert intervals[name] == pytest.approx(np.quantile(exact, (0.025, 0.975)))


def test_a_seed_repeats_the_intervals_and_leaves_the_process_alone():
    judged, human = [1, 0, 1, 1, 0, 0, 1, 0], [1, 0, 0, 1, 0, 1, 1, 0]
    before = np.random.get_state()[1].tolist()  # noqa: NPY002  # the global state is what must not move
    first, again = (agreement(judged, human, rng=3, n_resamples=N_RESAMPLES) for _ in range(2))
    other = agreement(judged, human, rng=4, n_resamples=N_RESAMPLES)
    assert first.intervals == again.intervals != other.intervals
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_resamples_of_one_label_are_left_out_of_the_interval_of_kappa():
    low, high = agreement([1, 1, 1, 1, 0], [1, 1, 1, 0, 0], n_resamples=N_RESAMPLES).intervals["kappa"]
    assert -1 <= low < high <= 1


# The result


def test_it_is_frozen():
    with pytest.raises(FrozenInstanceError):
        agreement([1], [1]).kappa = 1.0


# On real votes


def trigrams(text):
    words = re.findall(r"\w+", text.lower())
    return set(zip(words, words[1:], words[2:], strict=False))


def judge_by_words(prompt):
    """Calls a sentence faithful if three in four of its word trigrams are in the article; refuses one article."""
    row = json.loads(prompt.rpartition("Inputs:\n")[2].removesuffix("\nOutputs:\n"))
    sentence, (article,) = row["predicted_answers"], row["contexts"]
    if "vitamin and mineral supplements" in article.lower():
        return "I cannot say."
    found = trigrams(sentence)
    faithful = len(found & trigrams(article)) >= 0.75 * len(found)
    return json.dumps({"statements": [sentence], "statement_scores": [int(faithful)]})


def test_a_scripted_judge_against_the_votes_of_qags(shared):
    lines = (shared / "data/qa/qags/mturk_cnndm.jsonl").read_text("utf-8").splitlines()
    rows = [(row["article"], each) for row in map(json.loads, lines) for each in row["summary_sentences"]]
    votes = [[vote["response"] == "yes" for vote in each["responses"]] for _, each in rows]
    human = [sum(three) >= 2 for three in votes]
    judge = FaithfulnessEvaluator(
        chat_generator=ScriptedChatGenerator(judge_by_words), progress_bar=False, raise_on_failure=False
    )
    judged = judge.run(
        questions=["What does the article say?"] * len(rows),
        contexts=[[article] for article, _ in rows],
        predicted_answers=[each["sentence"] for _, each in rows],
    )["individual_scores"]
    unread = [row for row, (article, _) in enumerate(rows) if "vitamin and mineral" in article.lower()]
    result = agreement(judged, human)
    assert (result.n_rows, result.n_human, result.n_compared) == (714, 714, 714 - len(unread))
    assert all(isnan(judged[row]) for row in unread)

    metrics, krippendorff = pytest.importorskip("sklearn.metrics"), pytest.importorskip("krippendorff")
    judged_too, human_too = compared(judged, human)
    assert result.kappa == pytest.approx(metrics.cohen_kappa_score(human_too, judged_too))
    assert result.alpha == pytest.approx(krippendorff.alpha([judged_too, human_too], level_of_measurement="nominal"))
    assert [(judged[row], human[row]) for row in result.disagreements[:1]] in ([(1, False)], [(0, True)])

    # This judge agrees with people about as much as two of them do with each other.
    two_people = agreement([three[0] for three in votes], [three[1] for three in votes])
    low, high = result.intervals["kappa"]
    assert 0.3 < low < two_people.kappa < high < 0.7
