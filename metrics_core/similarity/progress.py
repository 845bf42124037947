"""A progress bar in pairs a second, with the tokens a second beside it."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self


class Progress:
    """Counts pairs, as they come in chunks, and tokens as they are read.

    Args:
        n_pairs: of all chunks; None: not known.
        shown: whether there is a bar, on standard error.
    """

    def __init__(self, n_pairs: int | None, *, shown: bool) -> None:
        self._bar: Any = None
        if shown:
            from tqdm import tqdm

            self._bar = tqdm(total=n_pairs, unit="pair", dynamic_ncols=True)
        self._start = time.perf_counter()
        self._n_tokens = 0
        self._chunk = self._chunk_tokens = self._chunk_read = self._chunk_shown = 0

    def begin_chunk(self, n_pairs: int, n_tokens: int) -> None:
        """Says what comes next: pairs, for which so many tokens will be read."""
        self._chunk, self._chunk_tokens = n_pairs, n_tokens
        self._chunk_read = self._chunk_shown = 0

    def read(self, n_tokens: int) -> None:
        """So many tokens more were read."""
        self._n_tokens += n_tokens
        self._chunk_read += n_tokens
        if self._bar is not None:
            rate = self._n_tokens / (time.perf_counter() - self._start)
            self._bar.set_postfix_str(f"{rate:,.0f} tokens/s", refresh=False)
            self._show(self._chunk * self._chunk_read // max(self._chunk_tokens, 1))

    def end_chunk(self) -> None:
        """All pairs of the chunk have a score."""
        self._show(self._chunk)

    def skip(self, n_pairs: int) -> None:
        """So many pairs had their score before."""
        self.begin_chunk(n_pairs, 0)
        self.end_chunk()

    def _show(self, n_pairs: int) -> None:
        if self._bar is not None:
            self._bar.update(n_pairs - self._chunk_shown)
        self._chunk_shown = n_pairs

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
