"""Ids as bytes that come twice: documents judged twice for a query are refused or settled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metrics_core.blocks import BoolArray, FloatArray, Int32Array, IntArray, KeyTable
from metrics_core.key_matching import KeyedDocuments, match_keys
from metrics_core.policies import DuplicateJudgements


def settle_repeats(
    keys: KeyTable,
    grades: FloatArray,
    offsets: IntArray,
    duplicate_judgements: DuplicateJudgements,
    refusal: Callable[[IntArray, IntArray], Exception],
) -> BoolArray | None:
    """Gives the first of several judgements of a document the grade that counts, in place.

    Args:
        keys, grades: (n_documents,) the judged documents, query after query.
        offsets: (n_queries + 1,) where each query's documents begin.
        duplicate_judgements: which judgement counts.
        refusal: the error to raise under "error", given the places of the repeats and their queries.

    Returns:
        (n_documents,) False for the judgements that are to be left out; None: no document is judged twice.
    """
    repeat_of = repeats_of(keys, offsets)
    if repeat_of is None:
        return None
    repeats = np.flatnonzero(repeat_of >= 0)
    queries = np.searchsorted(offsets, repeats, side="right") - 1
    if duplicate_judgements == "error":
        raise refusal(repeats, queries)
    firsts = offsets[queries] + repeat_of[repeats]
    if duplicate_judgements == "max":
        np.maximum.at(grades, firsts, grades[repeats])
    else:
        grades[firsts] = grades[repeats]  # of several values for one place NumPy keeps the last
    return repeat_of < 0


def repeats_of(keys: KeyTable, offsets: IntArray) -> Int32Array | None:
    """(n_keys,) where an equal key came first in its list, -1 where none did; None: none repeats.

    Args:
        offsets: (n_lists + 1,) where each list of keys begins.
    """
    ranges = np.column_stack([offsets[:-1], offsets[1:]])
    no_cells = np.empty((len(ranges), 0))
    judged = KeyedDocuments(keys, None, np.zeros_like(ranges))  # nothing
    return match_keys(judged, KeyedDocuments(keys, None, ranges), no_cells, no_cells, no_cells)
