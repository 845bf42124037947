"""Batches of equal cost: items sorted by their tokens, cut by a budget of tokens, and by less where memory is short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_in_batches(
    n_tokens: NDArray[np.int64],
    budget: int,
    read: Callable[[NDArray[np.int64]], Any],
    on_batch: Callable[[int], None],
) -> Any:
    """What `read` gives for all items, in their order: a tensor (n_items, width).

    The longest items come first, so that memory runs out at once if it does. Then the batch is halved, and the budget
    with it until this call is done; the next one starts with its own.

    Args:
        n_tokens: (n_items,) of each item; there is at least one.
        budget: tokens of a batch, padding included; a single item may have more.
        read: takes positions of items, gives their rows.
        on_batch: is told how many tokens were read.

    Raises:
        torch.OutOfMemoryError: a single item does not fit into the device's memory.
    """
    import torch

    order = np.argsort(-n_tokens, kind="stable")
    rows: Any = None
    start = 0
    while start < order.size:
        longest = max(int(n_tokens[order[start]]), 1)
        positions = order[start : start + max(budget // longest, 1)]
        try:
            found = read(positions)
        except torch.OutOfMemoryError:
            if positions.size == 1:
                raise
            budget = longest * (positions.size // 2)
            continue
        if rows is None:
            rows = found.new_empty((order.size, found.shape[1]))
        rows[torch.from_numpy(positions).to(rows.device)] = found
        on_batch(int(n_tokens[positions].sum()))
        start += positions.size
    return rows
