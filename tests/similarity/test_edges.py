"""Texts, models and settings that are not what they should be, or nearly not."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metrics_core import SASEvaluator, answer_similarity
from metrics_core.errors import InputError, ModelError
from metrics_core.similarity import Settings
from metrics_core.similarity.settings import EnvVars
from tests.tiny_models import MAX_TOKENS

ROOT = Path(__file__).resolve().parents[2]
LONG = "rome " * MAX_TOKENS


@pytest.fixture(scope="module")
def bi(tiny):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(tiny.bi, device="cpu")


@pytest.mark.parametrize(
    ("golds", "predicted", "message"),
    [
        ("paris", ["paris"], "ground_truth_answers must be a list of answers, one a question, got 'paris'"),
        (["paris"], "paris", "predicted_answers must be a list of answers, one a question, got 'paris'"),
        (["a", "b"], ["a"], "ground_truth_answers has 2 questions and predicted_answers has 1 question; they must"),
        ([], ["a"], "they must pair up"),
        (["a", "b"], ["a", None], "predicted_answers must be strings, got None in row 1"),
        (["a", None], ["a", "b"], "ground_truth_answers must be strings or lists of strings, got None in row 1"),
        (["a", "b"], ["a", float("nan")], "predicted_answers must be strings, got nan in row 1"),
        (["a", 7], ["a", "b"], "ground_truth_answers must be strings or lists of strings, got 7 in row 1"),
        (["a", []], ["a", "b"], "ground_truth_answers has no answer in row 1"),
        (["a", ["b", "\ud83d"]], ["a", "b"], r"ground_truth_answers has half a surrogate pair ('\ud83d') in row 1"),
        (["a", "b"], ["a", "b\udc00"], r"predicted_answers has half a surrogate pair ('\udc00') in row 1"),
    ],
)
def test_bad_answers_are_named_before_a_model_is_loaded(golds, predicted, message):
    for call in (
        lambda: answer_similarity(golds, predicted, "no/model"),
        lambda: SASEvaluator("no/model").run(golds, predicted),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert message in str(caught.value)


def test_no_question_at_all(bi):
    assert SASEvaluator("no/model").run([], []) == {"score": 0.0, "individual_scores": [0.0]}  # as Haystack has it
    assert answer_similarity([], [], bi).scores.size == 0


def test_columns_of_arrays_and_frames(bi):
    pandas, polars, pa = (pytest.importorskip(each) for each in ("pandas", "polars", "pyarrow"))
    golds, predicted = ["paris", "the city", "rome"], ["rome", "city", "rome"]
    expected = answer_similarity(golds, predicted, bi).scores.tolist()
    for column in (
        np.array,
        lambda side: np.array(side, object),
        pandas.Series,
        lambda side: pandas.Series(side, dtype="string"),
        lambda side: pandas.Series(side, dtype="category"),
        polars.Series,
        pa.array,
        lambda side: pa.chunked_array([side[:1], side[1:]]),
        lambda side: pa.array(side, pa.large_string()),
        lambda side: pa.array(side).dictionary_encode(),
        tuple,
    ):
        assert answer_similarity(column(golds), column(predicted), bi).scores.tolist() == expected
    lists = [["paris"], ["nine", "the city"], ["rome"]]
    best = answer_similarity(lists, predicted, bi).scores.tolist()
    for column in (pa.array, polars.Series, pandas.Series, lambda side: [np.array(each) for each in side]):
        assert answer_similarity(column(lists), predicted, bi).scores.tolist() == best
    missing = pandas.Series(["paris", None, "rome"], dtype="string")
    with pytest.raises(InputError, match="predicted_answers must be strings, got <NA> in row 1"):
        answer_similarity(golds, missing, bi)


@pytest.mark.parametrize("empty", ["", "  \t\n", "\0", " \0 "])
def test_empty_answers(bi, empty):
    golds, predicted = [empty, empty, "paris"], [empty, "paris", "rome"]
    encoded = answer_similarity(golds, predicted, bi)
    assert encoded.scores[0] == pytest.approx(1, abs=1e-6)  # a transformer reads its special tokens alone
    assert encoded.n_unique == 3  # no shortcut: it is the model that says so
    zero = answer_similarity(golds, predicted, bi, empty="zero")
    assert zero.scores.tolist() == [0, 0, pytest.approx(encoded.scores[2], abs=2e-6)]
    assert zero.n_unique == 2
    assert answer_similarity([["paris", empty]], ["paris"], bi, empty="zero").scores.tolist() == [1]
    with pytest.raises(InputError, match="ground_truth_answers has an empty answer in row 0"):
        answer_similarity(golds, predicted, bi, empty="raise")
    with pytest.raises(InputError, match="predicted_answers has an empty answer in row 1"):
        answer_similarity(["paris", "rome"], ["rome", empty], bi, empty="raise")


def test_texts_that_are_too_long(bi, caplog):
    golds, predicted = [LONG + "paris", "paris", LONG + "nine"], [LONG + "nine", LONG + "nine", "rome"]
    with caplog.at_level(logging.WARNING):
        found = answer_similarity(golds, predicted, bi)
    assert found.n_truncated == 2
    assert found.scores[0] == pytest.approx(1)  # they differ only where nobody reads
    (record,) = caplog.records
    assert record.getMessage() == (
        f"the model read only the first {MAX_TOKENS} tokens of 2 texts: what comes after them changes no score"
    )
    caplog.clear()
    answer_similarity([LONG], ["paris"], bi)
    assert "tokens of 1 text: " in caplog.text
    caplog.clear()
    assert answer_similarity(golds, predicted, bi, on_truncation="ignore").n_truncated == 2
    assert not caplog.records
    with pytest.raises(
        InputError, match=rf"row 0 has more than the {MAX_TOKENS} tokens that the model reads: 'rome rome"
    ):
        answer_similarity(golds, predicted, bi, on_truncation="raise")


def test_a_text_of_just_the_length_is_not_too_long(bi, tiny):
    fits, too_long = (" ".join(["rome"] * count) for count in (MAX_TOKENS - 2, MAX_TOKENS - 1))
    assert answer_similarity([fits], ["paris"], bi).n_truncated == 0
    assert answer_similarity([too_long], ["paris"], bi).n_truncated == 1
    fits, too_long = (" ".join(["rome"] * count) for count in (MAX_TOKENS - 4, MAX_TOKENS - 3))
    assert answer_similarity([fits], ["paris"], tiny.cross).n_truncated == 0
    with pytest.raises(InputError, match="row 0 has more than"):
        answer_similarity([too_long], ["paris"], tiny.cross, on_truncation="raise")


@pytest.mark.parametrize("name", ["./absent", "/absent/model", "../a/b", "~/model", "a/b/c"])
def test_a_path_that_does_not_exist(name):
    with pytest.raises(ModelError, match=rf"model '{re.escape(name)}': there is no such folder"):
        answer_similarity(["a"], ["b"], name)


def test_what_holds_no_model(tmp_path):
    with pytest.raises(ModelError, match=r"has neither modules\.json nor config\.json"):
        answer_similarity(["a"], ["b"], tmp_path)
    (tmp_path / "model.bin").touch()
    with pytest.raises(ModelError, match="is a file; name the folder"):
        answer_similarity(["a"], ["b"], tmp_path / "model.bin")
    (tmp_path / "config_sentence_transformers.json").write_text('{"model_type": "SparseEncoder"}')
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(ModelError, match="is a SparseEncoder; a SentenceTransformer or a CrossEncoder is needed"):
        answer_similarity(["a"], ["b"], tmp_path)
    (tmp_path / "modules.json").unlink()
    (tmp_path / "config.json").write_text('{"architectures": ["BertModel"], "model_type": "bert"}')
    with pytest.raises(ModelError, match="cannot be loaded"):
        answer_similarity(["a"], ["b"], tmp_path)


def test_offline_without_the_model():
    with pytest.raises(
        ModelError, match="'someone/absent-model' is neither a folder here nor to be had from the Hugging"
    ):
        answer_similarity(["a"], ["b"], "someone/absent-model", local_files_only=True)


def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    from huggingface_hub.errors import LocalEntryNotFoundError

    asked = []

    def unreachable(_name, file, *, local_files_only, **_options):
        asked.append((file, local_files_only))
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", unreachable)
    with pytest.raises(ModelError, match="neither a folder here nor to be had"):
        answer_similarity(["a"], ["b"], "someone/model")
    assert asked[0] == ("modules.json", False)
    assert {local for _, local in asked[1:]} == {True}


def test_a_gated_model_without_token_names_the_variables(monkeypatch):
    import httpx
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    refused = httpx.Response(401, request=httpx.Request("GET", "https://hub.invalid"))
    seen = []

    def refuse_with(kind):
        def refuse(*_args, token, **_options):
            seen.append(token)
            raise kind("no access", response=refused)

        monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)

    for name in ("HF_API_TOKEN", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for kind, what in ((RepositoryNotFoundError, "is not on the Hugging Face hub, or"), (GatedRepoError, "is gated")):
        refuse_with(kind)
        with pytest.raises(ModelError, match=f"{what}.*set the environment variable HF_API_TOKEN or HF_TOKEN"):
            answer_similarity(["a"], ["b"], "someone/gated")
    monkeypatch.setenv("HF_TOKEN", "secret")
    with pytest.raises(ModelError, match="the token given does not open it") as caught:
        answer_similarity(["a"], ["b"], "someone/gated")
    assert "secret" not in str(caught.value)
    assert seen == [None, None, "secret"]


def test_a_cross_encoder_that_does_not_say_so(tiny):
    with pytest.raises(ModelError, match=r"names no architectures; give kind='bi' or kind='cross'"):
        answer_similarity(["paris"], ["rome"], tiny.unnamed)
    named = answer_similarity(["paris"], ["rome"], tiny.cross)
    assert answer_similarity(["paris"], ["rome"], tiny.unnamed, kind="cross").scores.tolist() == named.scores.tolist()


def test_a_model_without_a_head_is_no_cross_encoder(tiny):
    """It would be given a head of random weights."""
    with pytest.raises(
        InputError, match=r"kind='cross', but model .* is a BertModel, which has no head to score pairs"
    ):
        answer_similarity(["paris"], ["rome"], tiny.bi, kind="cross")


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("banana", "device='banana' is none of torch's: Expected one of"),
        ("cpu:x", "device='cpu:x' is none of torch's: Invalid device string"),
        ("meta", "device='meta' is none of torch's: "),
        ("cuda:99", "device='cuda:99', but torch finds"),
        (["cpu", "cuda:99"], "device='cuda:99', but torch finds"),
    ],
)
def test_a_device_that_is_not_there(device, message, tiny, bi):
    for model in (tiny.bi, bi):
        with pytest.raises(InputError, match=re.escape(message)):
            answer_similarity(["paris"], ["rome"], model, device=device)


def test_settings_that_do_not_fit_a_loaded_model(bi, monkeypatch):
    monkeypatch.setattr("metrics_core.similarity.models._check_device", lambda _name: None)  # as if there were a GPU
    for settings, message in (
        ({"kind": "cross"}, "kind='cross', but the model given is a SentenceTransformer"),
        ({"dtype": "bfloat16"}, "dtype='bfloat16', but the model given is loaded in float32; give dtype='float32'"),
        ({"device": "cuda"}, "device='cuda', but the model given is on cpu; move it first"),
    ):
        with pytest.raises(InputError) as caught:
            answer_similarity(["a"], ["b"], bi, **settings)
        assert str(caught.value) == message
    assert answer_similarity(["a"], ["b"], bi, device="cpu:0").device == "cpu"
    with pytest.raises(InputError, match="a SentenceTransformer or a CrossEncoder, got a dict"):
        answer_similarity(["a"], ["b"], {"model": 1})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "both"}, "kind must be 'auto', 'bi' or 'cross', got 'both'"),
        ({"dtype": "int8"}, "dtype must be 'float32', 'bfloat16' or 'float16', got 'int8'"),
        ({"on_truncation": "cut"}, "on_truncation must be 'warn', 'raise' or 'ignore', got 'cut'"),
        ({"empty": None}, "empty must be 'encode', 'zero' or 'raise', got None"),
        ({"batch_size": 0}, "batch_size must be a positive integer, got 0"),
        ({"batch_size": None}, "batch_size must be a positive integer, got None"),
        ({"token_budget": 1.5}, "token_budget must be a positive integer, got 1.5"),
        ({"truncate_dim": True}, "truncate_dim must be a positive integer, got True"),
        ({"prompt": ("a", "b", "c")}, "prompt must be a string, or two for the two sides, got ('a', 'b', 'c')"),
        ({"device": []}, "device must name a device, or several, got an empty list"),
        ({"device": ["auto", "cpu"]}, "device must name each of several devices, got ['auto', 'cpu']"),
        ({"prompt": ("a", "\ud83d")}, r"prompt has half a surrogate pair, which no tokenizer takes: '\ud83d'"),
        ({"label": True}, "label must be a name or a position, got True"),
        ({"label": 1.0}, "label must be a name or a position, got 1.0"),
        ({"token": {"type": "env_var"}}, "token needs the names of variables in a list, 'env_vars', got None"),
        (
            {"token": {"type": "env_var", "env_vars": "HF_TOKEN"}},
            "token needs the names of variables in a list, 'env_vars', got 'HF_TOKEN'",
        ),
        ({"model": ""}, "model must be a folder, a name or a loaded model, got nothing"),
        ({"fast_fp32": True, "dtype": "bfloat16"}, "fast_fp32 is for dtype='float32', got dtype='bfloat16'"),
        ({"fast_fp32": True, "device": ["cpu", "cpu"]}, "fast_fp32 works in this process; give one device, not a list"),
        (
            {"token": {"type": "vault"}},
            "token must be a token or {'type': 'env_var', 'env_vars': [...]}, got type 'vault'",
        ),
    ],
)
def test_settings_are_checked_at_construction(settings, message):
    with pytest.raises(InputError) as caught:
        SASEvaluator(**settings)
    assert str(caught.value) == message


def test_secrets_are_not_shown_nor_saved(tiny):
    evaluator = SASEvaluator(tiny.bi, token="hf_secret")
    assert "hf_secret" not in f"{evaluator!r} {evaluator.settings!r} {evaluator.to_dict()}"
    saved = {"type": "env_var", "env_vars": ["NOT_SET"], "strict": True}
    assert Settings(token=saved).token == EnvVars(("NOT_SET",), strict=True)
    with pytest.raises(InputError, match="token is to be read from the environment, but NOT_SET is not set"):
        SASEvaluator(tiny.bi, token=saved).warm_up()


def test_a_loaded_model_works_and_is_not_saved(bi):
    evaluator = SASEvaluator(bi)
    assert evaluator.run(["paris"], ["paris"]) == {"score": 1.0, "individual_scores": [1.0]}
    assert evaluator == SASEvaluator(bi) != SASEvaluator(bi, batch_size=1)
    with pytest.raises(InputError, match="model must be a folder or a name here, got a loaded SentenceTransformer"):
        evaluator.to_dict()


def test_nothing_heavy_is_imported_before_warm_up(tiny):
    code = (
        "import sys; from metrics_core import SASEvaluator, answer_similarity, sas_dataset\n"
        f"evaluator = SASEvaluator({tiny.bi!r}); evaluator.to_dict(); evaluator.run([], [])\n"
        "sys.exit(', '.join({'torch', 'sentence_transformers', 'transformers', 'pyarrow'} & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_extra_is_named(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    evaluator = SASEvaluator(tiny.bi)
    with pytest.raises(ImportError, match=r"needs sentence-transformers: pip install 'metrics-core\[sas\]'"):
        evaluator.warm_up()


def test_the_model_is_loaded_once(tiny, monkeypatch):
    evaluator = SASEvaluator(tiny.bi)
    evaluator.warm_up()
    monkeypatch.setattr("metrics_core.similarity.scoring.load", None)
    evaluator.warm_up()
    assert evaluator.run(["paris", "nine"], ["paris", "nine"])["score"] == 1.0
