"""How float32 matrices are multiplied on the CPU: a switch of the whole process, held while it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Condition

_ROUNDED = 1e-4  # relative error; float32 is at 1e-6, bfloat16 at 3e-3

_changed = Condition()
_users: list[bool] = []  # the kernel that each call under way asked for; all the same


@contextmanager
def fp32_products(*, fast: bool) -> Iterator[None]:
    """Sets the kernel while the context lasts, and puts back what was set before.

    Calls that ask for the same kernel run at once; those that ask for the other wait, so that no call of ours computes
    with a kernel that it did not ask for.
    """
    import torch

    matmul = torch.backends.mkldnn.matmul
    with _changed:
        _changed.wait_for(lambda: not _users or _users[0] == fast)
        if fast and not _users:
            global _before  # noqa: PLW0603  # one switch a process
            _before = matmul.fp32_precision
            matmul.fp32_precision = "bf16"
        _users.append(fast)
    try:
        yield
    finally:
        with _changed:
            _users.pop()
            if fast and not _users:
                matmul.fp32_precision = _before
            _changed.notify_all()


_before = "none"


@cache
def fast_products_are_rounded() -> bool:
    """Whether this CPU's fast kernel rounds to bfloat16, found out by a product."""
    import torch

    generator = torch.Generator().manual_seed(0)
    left, right = torch.rand(2, 256, 256, generator=generator)
    with fp32_products(fast=True), torch.inference_mode():
        found = left @ right
    exact = left.double() @ right.double()
    return bool(((found - exact).abs() / exact).max() > _ROUNDED)
