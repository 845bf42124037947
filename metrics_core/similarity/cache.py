"""Rows of items that were read before: a bounded number of them, the least recently used leave first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any


class RowCache:
    """Rows of a width that the first of them sets, in one tensor on their device.

    Args:
        capacity: how many rows are kept.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._slots: OrderedDict[Hashable, int] = OrderedDict()
        self._rows: Any = None

    def __contains__(self, key: Hashable) -> bool:
        return key in self._slots

    def get(self, keys: Sequence[Hashable]) -> Any:
        """A tensor (n_keys, width) of keys that are there."""
        import torch

        for key in keys:
            self._slots.move_to_end(key)
        slots = [self._slots[key] for key in keys]
        return self._rows[torch.tensor(slots, device=self._rows.device)]

    def put(self, keys: Sequence[Hashable], rows: Any) -> None:
        """Keeps rows (n_keys, width) of keys that are not there; of too many, the last."""
        import torch

        if self.capacity == 0:
            return
        keys, rows = keys[-self.capacity :], rows[-self.capacity :]
        if self._rows is None:
            self._rows = rows.new_empty((self.capacity, rows.shape[1]))
        slots = []
        for key in keys:
            n_kept = len(self._slots)
            slot = n_kept if n_kept < self.capacity else self._slots.popitem(last=False)[1]
            self._slots[key] = slot
            slots.append(slot)
        self._rows[torch.tensor(slots, device=rows.device)] = rows
