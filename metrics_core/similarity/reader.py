"""What a model gives for texts or pairs, each read once: counted, batched, and kept for later if wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrics_core.similarity.batching import read_in_batches
from metrics_core.similarity.cache import RowCache
from metrics_core.similarity.models import Item, Model
from metrics_core.similarity.precision import fast_products_are_rounded, fp32_products
from metrics_core.similarity.progress import Progress
from metrics_core.similarity.settings import Settings

Key: TypeAlias = tuple[str | None, Item]
"""A prompt and what it is put before: a text has another embedding under another prompt."""

_CPU_TOKENS, _DEVICE_TOKENS = 32, 1024  # of a batch, for each of batch_size
_CHUNKS_A_WORKER = 10  # into which sentence-transformers cuts what several devices share


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be read for some distinct keys."""

    keys: list[Key]
    new: NDArray[np.bool_]  # (n_keys,), False: kept from before
    n_tokens: NDArray[np.int64]  # (n_new,), what the model will read of each new key
    truncated: list[Key] | None  # new keys of which it will not read all; None: the model does not tell

    @property
    def n_new(self) -> int:
        """How many keys have to be read."""
        return self.n_tokens.size


class Reader:
    """Reads through one model.

    Args:
        model: loaded.
        settings: with its batch size and kernel.
        n_kept: how many rows are kept from one plan to the next.
    """

    def __init__(self, model: Model, settings: Settings, *, n_kept: int = 0) -> None:
        self.model = model
        self._kept = RowCache(n_kept)
        self._pool: Any = None
        on_cpu = all(device.startswith("cpu") for device in model.devices)
        self._budget = settings.token_budget or settings.batch_size * (_CPU_TOKENS if on_cpu else _DEVICE_TOKENS)
        self._fast = settings.fast_fp32

    @property
    def dtype(self) -> str:
        """Of the weights, and whether float32 products are rounded."""
        rounded = self._fast and fast_products_are_rounded()
        return self.model.dtype + (", products in bfloat16" if rounded else "")

    @contextmanager
    def workers(self) -> Iterator[None]:
        """Keeps the processes of several devices while the context lasts, rather than for one call of `read`."""
        if self._pool is not None:
            yield
            return
        with self.model.alone(), self.model.workers() as pool:
            self._pool = pool
            try:
                yield
            finally:
                self._pool = None

    def plan(self, keys: list[Key]) -> Plan:
        """Counts the tokens of distinct keys, without reading them."""
        new = np.fromiter((key not in self._kept for key in keys), bool, len(keys))
        to_read = [keys[each] for each in np.flatnonzero(new)]
        n_tokens = np.zeros(len(to_read), np.int64)
        truncated: list[Key] | None = []
        limit = self.model.max_tokens
        for prompt, positions in _by_prompt(to_read):
            n_tokens[positions], known = self.model.n_tokens([to_read[each][1] for each in positions], prompt)
            if not known:
                truncated = None
        if limit is not None:
            if truncated is not None:
                truncated = [to_read[each] for each in np.flatnonzero(n_tokens > limit)]
            n_tokens = np.minimum(n_tokens, limit)
        return Plan(keys, new, n_tokens, truncated)

    def read(self, plan: Plan, progress: Progress) -> Any:
        """The rows of the keys, (n_keys, width), float32; on the model's device, or on the CPU if it has several."""
        import torch

        to_read = [plan.keys[each] for each in np.flatnonzero(plan.new)]
        kept = [plan.keys[each] for each in np.flatnonzero(~plan.new)]
        parts = []
        if to_read:
            with self.workers(), fp32_products(fast=self._fast):
                parts.append(self._read(to_read, plan.n_tokens, progress))
        if kept:
            parts.append(self._kept.get(kept))
        if to_read:
            self._kept.put(to_read, parts[0])
        if len(parts) == 1:
            return parts[0]
        place = np.argsort(np.argsort(~plan.new, kind="stable"), kind="stable")
        return torch.cat(parts)[torch.from_numpy(place).to(parts[0].device)]

    def _read(self, keys: list[Key], n_tokens: NDArray[np.int64], progress: Progress) -> Any:
        budget = self._budget * (1 if self._pool is None else _CHUNKS_A_WORKER * len(self.model.devices))
        rows: Any = None
        for prompt, positions in _by_prompt(keys):

            def read(batch: NDArray[np.int64], prompt: str | None = prompt, group: Any = positions) -> Any:
                return self.model.read([keys[each][1] for each in group[batch]], prompt, self._pool)

            found = read_in_batches(n_tokens[positions], budget, read, progress.read)
            if positions.size == len(keys):
                return found
            rows = found.new_empty((len(keys), found.shape[1])) if rows is None else rows
            rows[positions] = found
        return rows


def _by_prompt(keys: list[Key]) -> Iterator[tuple[str | None, NDArray[np.int64]]]:
    """The prompts, and the positions of the keys of each."""
    for prompt in dict.fromkeys(prompt for prompt, _ in keys):
        yield prompt, np.flatnonzero([each == prompt for each, _ in keys])
