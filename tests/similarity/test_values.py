"""Scores: by their definition, and the same whatever else is scored beside them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from metrics_core import SASEvaluator, answer_similarity
from metrics_core.errors import InputError, ModelError
from metrics_core.similarity import Settings, SimilarityScorer
from metrics_core.similarity.scoring import paired_cosines
from metrics_core.similarity.texts import answer_pairs
from tests.tiny_models import LABELS, MAX_TOKENS, WORDS

WITHIN = {"rel": 0, "abs": 2e-6}
texts = st.lists(st.sampled_from([*WORDS, "b7", "!"]), max_size=12).map(" ".join)
rows = st.lists(st.tuples(st.lists(texts, min_size=1, max_size=3), texts), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def bi(tiny):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(tiny.bi, device="cpu")


@pytest.fixture(scope="module")
def cross(tiny):
    from sentence_transformers import CrossEncoder

    return CrossEncoder(tiny.cross, device="cpu")


@pytest.fixture(scope="module")
def models(bi, cross, tiny):
    from sentence_transformers import CrossEncoder

    return {"bi": bi, "cross": cross, "cross3": CrossEncoder(tiny.cross3, device="cpu")}


def plain_score(model, golds, predicted, label=None):
    """The definition, of one question: no batch, nothing shared."""
    if type(model).__name__ == "CrossEncoder":
        import torch

        logits = [model.predict([(predicted, gold)], activation_fn=torch.nn.Identity())[0] for gold in golds]
        if label is not None:
            powers = np.exp(np.array(logits, np.float64))
            return max(powers[:, LABELS.index(label)] / powers.sum(axis=1))
        return max(1 / (1 + np.exp(-float(logit))) for logit in logits)
    (of_predicted,) = model.encode([predicted]).astype(np.float64)
    of_golds = model.encode(golds).astype(np.float64)
    norm = np.linalg.norm
    return max(float(each @ of_predicted) / (norm(each) * norm(of_predicted)) for each in of_golds)


def test_rounding_above_1_is_cut_off():
    import torch

    rows = torch.tensor([[1 + 1e-6, 0.0], [-1 - 1e-6, 0.0]])
    assert paired_cosines(rows, np.array([0, 0]), np.array([0, 1])).tolist() == [1, -1]


@pytest.mark.parametrize("kind", ["bi", "cross", "cross3"])
@settings(max_examples=25)
@given(rows=rows, budget=st.integers(1, 200), order=st.randoms())
def test_the_definition_alone_and_in_any_company(models, kind, rows, budget, order):
    model = models[kind]
    label = "neutral" if kind == "cross3" else None
    golds, predicted = zip(*rows, strict=True)
    expected = [plain_score(model, *row, label) for row in rows]
    scores = answer_similarity(golds, predicted, model, token_budget=budget, label=label).scores
    assert scores == pytest.approx(expected, **WITHIN)
    shuffled = order.sample(range(len(rows)), len(rows))
    some_golds, some_predicted = ([side[each] for each in shuffled] for side in (golds, predicted))
    again = answer_similarity(some_golds, some_predicted, model, label=label)
    assert again.scores == pytest.approx(scores[shuffled], **WITHIN)
    alone = answer_similarity(golds[:1], predicted[:1], model, label=label)
    assert alone.scores == pytest.approx(scores[:1], **WITHIN)


@pytest.mark.parametrize("kind", ["bi", "cross"])
@settings(max_examples=25)
@given(chunks=st.lists(rows, min_size=2, max_size=4), capacity=st.integers(0, 12))
def test_what_is_kept_changes_nothing(models, kind, chunks, capacity):
    scorer = SimilarityScorer(Settings(models[kind]), n_kept=capacity)
    for chunk in chunks:
        golds, predicted = zip(*chunk, strict=True)
        found = scorer.score(answer_pairs(golds, predicted, "encode")).scores
        assert found == pytest.approx(answer_similarity(golds, predicted, models[kind]).scores, **WITHIN)


def test_what_is_kept_is_not_read_again(bi):
    scorer = SimilarityScorer(Settings(bi), n_kept=3)

    def n_read(*predicted):
        return scorer.score(answer_pairs(["paris"] * len(predicted), predicted, "encode")).n_unique

    assert n_read("rome", "city", "rome") == 3
    assert n_read("rome", "city") == 0
    assert n_read("nine") == 1  # city, rome and paris were used last; one of them has to leave
    assert n_read("nine") == 0


def test_each_text_is_read_once(bi, cross):
    golds, predicted = ["paris", "rome", "paris", "the", "the"], ["rome", "paris", "rome", "the", "of"]
    assert answer_similarity(golds, predicted, bi).n_unique == 4
    assert answer_similarity(golds, predicted, cross).n_unique == 4
    assert answer_similarity(["the", "of"], ["the", "of"], bi).n_unique == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_identical_texts_are_exactly_1_for_a_bi_encoder(tiny, dtype):
    golds, predicted = ["paris", "of rome", "nine", "one"], ["paris", "of rome", "city of rome", "two"]
    found = answer_similarity(golds, predicted, tiny.bi, dtype=dtype)
    assert found.dtype == dtype
    assert found.scores[:2].tolist() == [1.0, 1.0]
    exact = answer_similarity(golds, predicted, tiny.bi).scores
    assert found.scores == pytest.approx(exact, abs=0.02)
    assert (found.scores <= 1).all()


def test_identical_texts_are_no_shortcut_for_a_cross_encoder(cross):
    found = answer_similarity(["paris"], ["paris"], cross)
    assert found.n_unique == 1
    assert found.scores == pytest.approx([plain_score(cross, ["paris"], "paris")], **WITHIN)
    assert found.scores[0] != 1


def test_the_order_of_a_pair_matters_to_a_cross_encoder(cross):
    one, other = (answer_similarity([a], [b], cross).scores[0] for a, b in (("paris", "rome"), ("rome", "paris")))
    assert abs(one - other) > 1e-3


def test_negative_cosines_are_kept(tiny):
    words = [*WORDS, "b", "c"]
    golds, predicted = zip(*((a, b) for a in words for b in words), strict=True)
    scores = answer_similarity(golds, predicted, tiny.static).scores
    assert scores.min() < -0.1
    assert scores.max() == 1


def test_a_sigmoid_is_applied_once(tiny, cross):
    """Whether the model's own activation is a sigmoid, the identity or none of them."""
    import torch
    from sentence_transformers import CrossEncoder

    golds, predicted = ["paris", "rome city", "nine", "of"], ["rome", "paris", "none of the", "paris"]
    logits = cross.predict(list(zip(predicted, golds, strict=True)), activation_fn=torch.nn.Identity())
    assert logits.max() > 1
    assert logits.min() < 0
    expected = 1 / (1 + np.exp(-logits.astype(np.float64)))
    for activation in (torch.nn.Sigmoid(), torch.nn.Identity()):
        model = CrossEncoder(tiny.cross, device="cpu", activation_fn=activation)
        assert answer_similarity(golds, predicted, model).scores == pytest.approx(expected, **WITHIN)
    own = CrossEncoder(tiny.cross, device="cpu", activation_fn=torch.nn.Tanh())
    assert answer_similarity(golds, predicted, own).scores == pytest.approx(np.tanh(logits), **WITHIN)


def test_several_labels(tiny):
    golds, predicted = ["paris", "rome", "nine"], ["rome", "the city of rome", "none"]
    by_name = [answer_similarity(golds, predicted, tiny.cross3, label=label).scores for label in LABELS]
    assert np.sum(by_name, axis=0) == pytest.approx(np.ones(3), **WITHIN)
    assert answer_similarity(golds, predicted, tiny.cross3, label=1).scores == pytest.approx(by_name[1], **WITHIN)
    assert np.ptp(by_name) > 0.1
    for label in (None, "neutrality", 3, -1):
        with pytest.raises(InputError, match="3 labels, 'contradiction', 'entailment', 'neutral'; label= must name"):
            answer_similarity(golds, predicted, tiny.cross3, label=label)
    for model in (tiny.cross, tiny.bi):
        with pytest.raises(InputError, match="label='neutral' is for cross-encoders with several labels"):
            answer_similarity(golds, predicted, model, label="neutral")


def test_truncate_dim(bi, tiny):
    from sentence_transformers.util import pairwise_cos_sim

    golds, predicted = ["paris", "rome"], ["rome", "nine"]
    left, right = (bi.encode(side, truncate_dim=4) for side in (golds, predicted))
    found = answer_similarity(golds, predicted, bi, truncate_dim=4).scores
    assert found == pytest.approx(pairwise_cos_sim(left, right).numpy(), **WITHIN)
    with pytest.raises(InputError, match="truncate_dim is for bi-encoders"):
        answer_similarity(golds, predicted, tiny.cross, truncate_dim=4)


def test_prompts(bi, tiny):
    golds, predicted = ["paris", "rome"], ["paris", "nine"]

    def cosine(left, right):
        left, right = bi.encode([left, right])
        return left @ right / np.linalg.norm(left) / np.linalg.norm(right)

    one = answer_similarity(golds, predicted, bi, prompt="the ")
    assert one.n_unique == 2  # paris is the same on both sides
    assert one.scores == pytest.approx([1, cosine("the rome", "the nine")], **WITHIN)
    two = answer_similarity(golds, predicted, bi, prompt=("the ", "of "))
    assert two.n_unique == 4  # under another prompt it is another text
    expected = [cosine("the paris", "of paris"), cosine("the rome", "of nine")]
    assert two.scores == pytest.approx(expected, **WITHIN)
    with pytest.raises(InputError, match="prompt must be one string"):
        answer_similarity(golds, predicted, tiny.cross, prompt=("the ", "of "))


def test_the_models_own_prompt_counts_as_tokens(tiny):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(tiny.prompted, device="cpu", default_prompt_name="query")
    text = " ".join(["rome"] * (MAX_TOKENS - 3))
    assert answer_similarity([text], ["paris"], model).n_truncated == 1
    assert answer_similarity([text], ["paris"], model, prompt="").n_truncated == 0


def test_nan_of_a_model_names_the_row(tiny):
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(tiny.static, device="cpu")
    (number,) = model.tokenizer.encode("rome", add_special_tokens=False).ids
    with torch.no_grad():
        model[0].embedding.weight[number] = float("nan")
    with pytest.raises(ModelError, match="NaN in row 1, for 'nine' and 'rome'"):
        answer_similarity(["paris", ["nine", "paris"], "of"], ["the", "rome", "city"], model)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_of_a_cross_encoder_names_the_row(tiny, number):
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(tiny.cross, device="cpu", activation_fn=lambda scores: torch.where(scores > 0, number, scores))
    word = next(word for word in WORDS if model.predict([(word, word)], activation_fn=torch.nn.Identity())[0] > 0)
    with pytest.raises(ModelError, match=f"{'NaN' if number != number else 'infinity'} in row 0, for '{word}' and"):
        answer_similarity([word], [word], model)


def test_rows_of_another_number_than_the_texts_are_refused(tiny, monkeypatch):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(tiny.bi, device="cpu")
    encode = type(model).encode
    for wrong, shape in (
        (lambda rows: rows[:1], r"\(1, 64\)"),  # would be spread over all
        (lambda rows: rows[0], r"\(64,\)"),
        (lambda rows: rows.unsqueeze(2), r"\(4, 64, 1\)"),
    ):
        monkeypatch.setattr(type(model), "encode", lambda *items, wrong=wrong, **how: wrong(encode(*items, **how)))
        with pytest.raises(ModelError, match=f"the model gives an array of shape {shape} for 4 texts"):
            answer_similarity(["paris", "rome"], ["nine", "none"], model)


@pytest.mark.parametrize("kind", ["bi", "cross"])
def test_threads_share_a_model(models, kind):
    """Its tokenizer does not cut the texts while they are counted, and does while they are read."""
    golds = [f"rome {number} " * (1 + number % 40) for number in range(40)]
    predicted = [f"paris {number} " * (1 + number % 37) for number in range(40)]
    evaluator = SASEvaluator(models[kind], on_truncation="ignore", token_budget=200)
    expected = evaluator.run(golds, predicted)["individual_scores"]
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: evaluator.run(golds, predicted), range(16)):
            assert found["individual_scores"] == pytest.approx(expected, **WITHIN)


def test_memory_that_runs_out_halves_the_batches_of_one_call(bi, monkeypatch):
    import torch

    sizes, refused = [], []
    encode = type(bi).encode

    def short_of_memory(self, items, **options):
        if len(items) > 3:
            refused.append(len(items))
            raise torch.OutOfMemoryError("no memory for more than 3")
        sizes.append(len(items))
        return encode(self, items, **options)

    golds = [f"paris {number}" for number in range(10)]
    predicted = [f"rome {number}" for number in range(10)]
    expected = answer_similarity(golds, predicted, bi).scores
    monkeypatch.setattr(type(bi), "encode", short_of_memory)
    scorer = SimilarityScorer(Settings(bi, token_budget=10_000))
    pairs = answer_pairs(golds, predicted, "encode")
    assert scorer.score(pairs).scores == pytest.approx(expected, **WITHIN)
    assert sum(sizes) == 20
    assert refused == [20, 10, 5]
    refused.clear()
    assert scorer.score(pairs).scores == pytest.approx(expected, **WITHIN)
    assert refused == [20, 10, 5]  # it began with its own budget again
    monkeypatch.setattr(type(bi), "encode", lambda *_, **__: short_of_memory(bi, [0] * 4))
    with pytest.raises(torch.OutOfMemoryError):
        scorer.score(pairs)


def test_several_devices_give_the_same(tiny):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(tiny.bi, device="cpu")
    golds = [["paris", f"rome {number}"] for number in range(9)]
    predicted = [f"city of {number}" for number in range(9)]
    found = answer_similarity(golds, predicted, model, device=["cpu", "cpu"], token_budget=16)
    assert found.device == "cpu, cpu"
    assert found.scores == pytest.approx(answer_similarity(golds, predicted, model).scores, **WITHIN)


def test_static_models_have_no_limit(tiny):
    found = answer_similarity(["paris " * 500, ""], ["rome", ""], tiny.static)
    assert (found.kind, found.n_truncated) == ("bi", 0)
    assert found.scores[1] == 0  # no token, no embedding: not the same, as the model sees it


def test_tokens_of_many_texts_and_of_tokenizers_that_cannot_be_asked(bi, cross, tiny, monkeypatch):
    from sentence_transformers import SentenceTransformer

    from metrics_core.similarity import models

    texts = ["paris", "the city of rome", "", "nine none nine"]
    static = SentenceTransformer(tiny.static, device="cpu")
    for model in (bi, static):
        loaded = models.load(Settings(model))
        counts, known = loaded.n_tokens(texts, None)
        monkeypatch.setattr(models, "_COUNTED_AT_ONCE", 3)
        again, _ = loaded.n_tokens(texts, None)
        special = 0 if model is static else 2
        assert counts.tolist() == again.tolist() == [n + special for n in (1, 4, 0, 3)]
        assert known
    pairs = list(zip(texts, reversed(texts), strict=True))
    assert models.load(Settings(cross)).n_tokens(pairs, None)[0].tolist() == [3 + 1 + 3, 3 + 4, 3 + 4, 3 + 3 + 1]
    expected = answer_similarity(texts, texts[::-1], bi)
    monkeypatch.setattr(
        models.Model, "n_tokens", lambda _, items, __: (np.array([*models._guessed(None, items)]), False)
    )
    guessed = answer_similarity(texts, texts[::-1], bi)
    assert guessed.scores == pytest.approx(expected.scores, **WITHIN)
    assert guessed.n_truncated is None
