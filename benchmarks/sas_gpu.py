"""Semantic answer similarity on a GPU, against haystack-ai's evaluator: `python -m benchmarks.sas_gpu [--model NAME]`.

Without a GPU it says so and measures nothing. On one it takes minutes: short pairs (10k and 100k, haystack-ai on the
10k) and long ones (5k) in three dtypes, budgets of tokens, and one call that is made to run out of memory. All in one
process, warmed up, one call each: look at the ratios, and at the largest differences beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS
from benchmarks.sas import LONG_WORDS, SHORT_WORDS, answers_of, model_folder, necessary_operations
from benchmarks.workload import Size
from metrics_core.similarity.settings import Dtype

DTYPES: tuple[Dtype, ...] = ("float32", "bfloat16", "float16")
BUDGETS = tuple(1024 * thousands for thousands in (8, 16, 32, 64, 128, 256))
SIZES = {"short, 10k": (10_000, SHORT_WORDS), "short, 100k": (100_000, SHORT_WORDS), "long, 5k": (5_000, LONG_WORDS)}
WITH_HAYSTACK = ("short, 10k", "long, 5k")  # its loop over pairs takes too long for more


def timed(run: Callable[[], Mapping[str, Any]]) -> tuple[np.ndarray[Any, Any], float, float]:
    """The scores that an evaluator gives, its seconds, and the largest memory on the device, in MB."""
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    found = run()["individual_scores"]
    torch.cuda.synchronize()
    return np.array(found), time.perf_counter() - start, torch.cuda.max_memory_allocated() / 1e6


def product_rate(dtype: str) -> float:
    """Operations a second of a large product of matrices: the peak that the shares are of."""
    import torch

    n = 8192
    left, right = torch.rand(2, n, n, device="cuda").to(getattr(torch, dtype))
    seconds = []
    for _ in range(6):  # the first warms up
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch.mm(left, right)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return 2 * n**3 / min(seconds)


def report(
    name: str, seconds: float, memory: float, tokens: int, share: float | None, difference: float
) -> dict[str, Any]:
    """Prints a line, and returns it for the JSON."""
    shown = "" if share is None else f"{100 * share:6.1f}% of peak"
    print(
        f"  {name:<44}{seconds:9.3f} s{tokens / seconds / 1e3:10.0f}k tokens/s {shown:>15}{memory:9.0f} MB"
        f"   largest difference {difference:.1e}",
        flush=True,
    )
    return {
        "name": name,
        "seconds": seconds,
        "memory_mb": memory,
        "tokens_a_second": tokens / seconds,
        "share_of_peak": share,
        "largest_difference": difference,
    }


def measure(model: str) -> list[dict[str, Any]]:
    """Runs all, on the current GPU."""
    import torch
    from haystack.components.evaluators import SASEvaluator as HaystackSASEvaluator
    from haystack.utils import ComponentDevice

    from metrics_core import SASEvaluator

    rates: dict[str, float] = {dtype: product_rate(dtype) for dtype in DTYPES}
    theirs: Any = HaystackSASEvaluator(model, device=ComponentDevice.from_str("cuda"))
    ours: dict[tuple[str, int | None], Any] = {
        (dtype, None): SASEvaluator(model, device="cuda", dtype=dtype) for dtype in DTYPES
    }
    ours |= {
        ("bfloat16", budget): SASEvaluator(model, device="cuda", dtype="bfloat16", token_budget=budget)
        for budget in BUDGETS
    }
    for evaluator in (theirs, *ours.values()):
        evaluator.warm_up()
        evaluator.run(*answers_of(Size(200, 1, 1), 2, SHORT_WORDS))
    lines = []
    for case, (n_pairs, words) in SIZES.items():
        golds, predicted = answers_of(Size(n_pairs, 1, 1), 1, words)
        tokens, operations = necessary_operations(model, golds, predicted)
        print(f"\n{case}: {n_pairs:,} pairs, {tokens:,} tokens of distinct texts")
        exact: Any = None
        for (dtype, budget), evaluator in ours.items():
            if budget is not None and case == "short, 10k":
                continue
            found, seconds, memory = timed(partial(evaluator.run, golds, predicted))
            exact = found if exact is None else exact
            name = f"{case}: metrics-core, {dtype}" + (f", budget {budget // 1024}k" if budget else "")
            difference = float(np.abs(found - exact).max())
            lines.append(report(name, seconds, memory, tokens, operations / seconds / rates[dtype], difference))
        if case in WITH_HAYSTACK:
            found, seconds, memory = timed(partial(theirs.run, golds, predicted))
            difference = float(np.abs(found - exact).max())
            lines.append(report(f"{case}: haystack-ai", seconds, memory, tokens, None, difference))
    lines.append(out_of_memory(torch, model, ours["float32", None], *answers_of(Size(2_000, 1, 1), 1, LONG_WORDS)))
    return lines


def out_of_memory(torch: Any, model: str, usual: Any, golds: Sequence[str], predicted: Sequence[str]) -> dict[str, Any]:
    """One call whose first batches do not fit into the memory that it may have: same scores, no error."""
    from metrics_core import SASEvaluator

    exact = np.array(usual.run(golds, predicted)["individual_scores"])
    greedy = SASEvaluator(model, device="cuda", token_budget=10**9)
    greedy.warm_up()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 2e9) / total)
    try:
        found, seconds, memory = timed(partial(greedy.run, golds, predicted))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    print("\nout of memory: all texts as one batch, 2 GB left")
    tokens = necessary_operations(model, golds, predicted)[0]
    return report("out of memory", seconds, memory, tokens, None, float(np.abs(found - exact).max()))


def main() -> int:
    """Prints what was measured, or that nothing was; writes the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sas_gpu", description=__doc__)
    parser.add_argument("--model", help="all-MiniLM-L6-v2 unless given")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the JSON file")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed, nothing was measured")
        return 0
    if not torch.cuda.is_available():
        print("skipped: there is no GPU, nothing was measured")
        return 0
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    lines = measure(options.model or model_folder())
    options.out.mkdir(parents=True, exist_ok=True)
    written = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "measured": lines}
    (options.out / "sas_gpu.json").write_text(json.dumps(written, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
