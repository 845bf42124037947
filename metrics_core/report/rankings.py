"""Judgements and rankings as a report shows them: a few documents of a few queries, in the order that was scored."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from metrics_core.errors import InputError
from metrics_core.policies import Policies
from metrics_core.trec import Qrels, Run, read_qrels, read_run

Judgements: TypeAlias = Mapping[Any, Mapping[Any, float]]
Ranking: TypeAlias = list[tuple[Any, float | None]]  # documents in rank order, with their scores


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """What a run retrieved, and how its ties were settled.

    Attributes:
        run: {query: {document: score}}, {query: [document, ...]} or a Run.
        policies: those that scored the run; None: the default of the kind.
    """

    run: Mapping[Any, Any] | Run
    policies: Policies | None

    def top(self, query: Any, depth: int) -> Ranking:
        """The first documents of a query, best first; none where it was not retrieved."""
        if isinstance(self.run, Run):
            retrieved = self._of_file(self.run, query)
        elif query not in self.run:
            retrieved = []
        elif isinstance(self.run[query], Mapping):
            retrieved = list(self.run[query].items())
        else:
            return [(document, None) for document in self.run[query][:depth]]
        if self.policies is not None and self.policies.drop_identical_ids:
            retrieved = [(document, score) for document, score in retrieved if document != query]
        if self.policies is None or self.policies.order == "score":
            if self.policies is None or self.policies.ties == "docid_desc":
                retrieved.sort(key=lambda each: _as_bytes(each[0]), reverse=True)
            retrieved.sort(key=lambda each: -each[1])  # stable: ties stay as they are
        return [(document, float(score)) for document, score in retrieved[:depth]]

    @staticmethod
    def _of_file(run: Run, query: Any) -> list[tuple[Any, float]]:
        if query not in run.query_ids:
            return []
        row = run.query_ids.index(query)
        places = np.arange(run.offsets[row], run.offsets[row + 1])
        return [
            (run.document(place), score)
            for place, score in zip(places.tolist(), run.scores[places].tolist(), strict=True)
        ]


def judgements(qrels: Any, policies: Policies | None) -> Qrels | Judgements:
    """Judgements of ids: a path is read, under the policies that scored the runs.

    Raises:
        InputError: neither a mapping, Qrels nor a path.
    """
    if isinstance(qrels, (str, os.PathLike)):
        return read_qrels(qrels, duplicate_judgements="error" if policies is None else policies.duplicate_judgements)
    if not isinstance(qrels, (Mapping, Qrels)):
        raise InputError(f"qrels must be {{query: {{document: grade}}}}, Qrels or a path, got {qrels!r:.80}")
    return qrels


def ranking(name: str, run: Any) -> Run | Mapping[Any, Any]:
    """Rankings of ids: a path is read.

    Raises:
        InputError: neither a mapping, a Run nor a path.
    """
    if isinstance(run, (str, os.PathLike)):
        return read_run(run)
    if not isinstance(run, (Mapping, Run)):
        raise InputError(
            f"rankings[{name!r}] must be {{query: {{document: score}}}}, {{query: [document]}}, a Run or a path, got "
            f"{run!r:.80}"
        )
    return run


def _as_bytes(document: Any) -> Any:
    return document.encode("utf-8", "surrogateescape") if isinstance(document, str) else document
