"""The kernel of float32 products: set while it is asked for, put back, and never mixed."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from metrics_core import answer_similarity
from metrics_core.similarity import precision
from metrics_core.similarity.precision import fast_products_are_rounded, fp32_products


@pytest.fixture
def matmul():
    import torch

    return torch.backends.mkldnn.matmul


def test_it_is_put_back(matmul):
    before = matmul.fp32_precision
    with contextlib.suppress(KeyError), fp32_products(fast=True):
        assert matmul.fp32_precision == "bf16"
        with fp32_products(fast=True):
            assert matmul.fp32_precision == "bf16"
        assert matmul.fp32_precision == "bf16"
        raise KeyError
    assert matmul.fp32_precision == before
    with fp32_products(fast=False):
        assert matmul.fp32_precision == before


def test_threads_never_compute_with_the_others_kernel(matmul):
    before = matmul.fp32_precision
    seen: list[tuple[bool, str]] = []

    def work(fast):
        for _ in range(20):
            with fp32_products(fast=fast):
                seen.append((fast, matmul.fp32_precision))
                time.sleep(0.001)
                seen.append((fast, matmul.fp32_precision))

    threads = [threading.Thread(target=work, args=(number % 2 == 0,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert set(seen) == {(True, "bf16"), (False, before)}
    assert matmul.fp32_precision == before


def test_what_it_means_on_this_cpu_is_said(tiny):
    golds, predicted = ["paris", "the city of rome"], ["rome", "the capital of italy"]
    exact, fast = (answer_similarity(golds, predicted, tiny.bi, fast_fp32=fast) for fast in (False, True))
    assert exact.dtype == "float32"
    rounded = fast_products_are_rounded()
    assert fast.dtype == ("float32, products in bfloat16" if rounded else "float32")
    assert fast.scores == pytest.approx(exact.scores, abs=0.02 if rounded else 2e-6)


def test_rounded_products_are_noticed(tiny, monkeypatch):
    monkeypatch.setattr("metrics_core.similarity.reader.fast_products_are_rounded", lambda: True)
    assert answer_similarity(["paris"], ["rome"], tiny.bi, fast_fp32=True).dtype == "float32, products in bfloat16"
    assert precision._users == []
