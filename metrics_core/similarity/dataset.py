"""Large sets of answers: files in, scores in parts out, resumed where they were interrupted."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from math import fsum
from typing import TYPE_CHECKING, Any

from metrics_core.columns import ColumnKind
from metrics_core.errors import InputError
from metrics_core.parts import Fragment, Parts, merge, output_of
from metrics_core.remote import AnyPath
from metrics_core.similarity.progress import Progress
from metrics_core.similarity.scoring import SimilarityScorer
from metrics_core.similarity.settings import Settings
from metrics_core.similarity.texts import SIDES, answer_pairs
from metrics_core.tables import Paths, Rows, n_rows, place_columns, read_rows, table_files

if TYPE_CHECKING:
    import pyarrow as pa

_PART_ROWS = 16_384
_KEPT = 65_536
_SUMMARY = b"metrics_core"  # the key of a part's metadata


@dataclass(frozen=True, slots=True)
class DatasetSimilarity:
    """What became of a set of answers."""

    score: float  # the mean over all rows
    n_rows: int
    kind: str  # "bi" or "cross"
    dtype: str
    device: str
    n_unique: int  # texts or pairs that the model read; one that comes again much later may be read again
    n_truncated: int | None  # of these, how many it read only the beginning of; None: the model does not tell
    paths: tuple[AnyPath, ...]  # parquet files of the scores, in the order of the rows


@dataclass(frozen=True, slots=True)
class _Part:
    """The summary of a part, which is kept with it."""

    n_rows: int
    total: float  # sum of the scores
    kind: str
    dtype: str
    device: str
    n_unique: int
    n_truncated: int | None


def sas_dataset(
    paths: Paths,
    model: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    ground_truth_column: str = SIDES[0],
    predicted_column: str = SIDES[1],
    part_rows: int = _PART_ROWS,
    n_kept: int = _KEPT,
    **settings: Any,
) -> DatasetSimilarity:
    """Semantic answer similarity of answers in files, a part of the rows in memory at a time.

    Each part is written once it is scored. After an interruption, the same call goes on after the last whole part; a
    call with another model, other settings or other files is refused.

    Args:
        paths: parquet, JSONL or CSV files, folders of them, or glob patterns.
        model: a folder or a name on the Hugging Face hub.
        out: a folder, where parts of columns `file`, `row` (from 0, in the file) and `score` are left beside
            `_summary.json`, which is written last; or a file, .parquet, made of them in the end. None: only the summary
            is wanted.
        ground_truth_column: strings or, where a question has several gold answers, lists of strings.
        predicted_column: strings.
        part_rows: rows of a part.
        n_kept: how many embeddings or scores are kept, for texts that come again in later parts.
        settings: the other arguments of Settings.

    Raises:
        FileFormatError: a file that cannot be read as what it is, or whose columns are missing or of another type.
        InputError: other than strings in a row, which is named with its file; parts of another computation in `out`;
            settings that do not fit; files without rows.
        ModelError: as `answer_similarity`.
        ImportError: sentence-transformers or pyarrow is not installed.
        OSError: a file that cannot be read or written; parts that were written remain.
    """
    chosen = Settings(model, **settings)
    if isinstance(part_rows, bool) or not isinstance(part_rows, int) or part_rows < 1:
        raise InputError(f"part_rows must be a positive integer, got {part_rows!r}")
    if isinstance(n_kept, bool) or not isinstance(n_kept, int) or n_kept < 0:
        raise InputError(f"n_kept must be an integer from 0, got {n_kept!r}")
    if ground_truth_column == predicted_column:
        raise InputError(f"ground_truth_column and predicted_column must differ, got {predicted_column!r} for both")
    columns: dict[str, ColumnKind] = {ground_truth_column: "texts", predicted_column: "text"}
    files = table_files(paths)
    target, parts = _open(out, chosen, list(columns), part_rows, files)
    scorer: SimilarityScorer | None = None
    summaries: list[_Part] = []
    counts = list(map(n_rows, files))
    with ExitStack() as stack:
        progress = stack.enter_context(
            Progress(None if None in counts else sum(filter(None, counts)), shown=chosen.progress_bar)
        )
        for fragment, file in enumerate(files):
            for number, rows in enumerate(read_rows(file, columns, part_rows)):
                if parts is not None and parts.done(fragment, number):
                    summaries.append(_summary_of(parts.path(fragment, number)))
                    progress.skip(rows.batch.num_rows)
                    continue
                if scorer is None:
                    scorer = SimilarityScorer(chosen, n_kept=n_kept)
                    stack.enter_context(scorer.workers())
                summary, table = _scored(scorer, rows, progress)
                summaries.append(summary)
                if parts is not None:
                    parts.write(fragment, number, table)
    if not summaries:
        raise InputError(f"there is not a row in {', '.join(map(str, files))}")
    cut = [each.n_truncated for each in summaries]
    n_truncated = None if None in cut else sum(filter(None, cut))
    if scorer is not None:
        scorer.warn_of_truncation(n_truncated)
    return _finished(summaries, n_truncated, target, parts)


def _open(
    out: str | os.PathLike[str] | None, settings: Settings, columns: list[str], part_rows: int, files: list[AnyPath]
) -> tuple[AnyPath | None, Parts | None]:
    """The file that is wanted in the end, if one is, and the folder of parts."""
    if out is None:
        return None, None
    computed = {"metric": "SAS", "columns": columns, "part_rows": part_rows} | settings.what_counts()
    target, folder = output_of(out, files)
    return target, Parts(folder, computed, map(Fragment.of, files))


def _scored(scorer: SimilarityScorer, rows: Rows, progress: Progress) -> tuple[_Part, pa.Table]:
    import pyarrow as pa

    truths, predictions = (column.to_pylist() for column in rows.batch.columns)
    found = scorer.score(answer_pairs(truths, predictions, scorer.settings.empty, rows.where), progress)
    summary = _Part(
        n_rows=found.scores.size,
        total=fsum(found.scores),
        kind=found.kind,
        dtype=found.dtype,
        device=found.device,
        n_unique=found.n_unique,
        n_truncated=found.n_truncated,
    )
    table = pa.table(place_columns(rows.path, rows.first, summary.n_rows) | {"score": found.scores})
    return summary, table.replace_schema_metadata({_SUMMARY: json.dumps(asdict(summary))})


def _summary_of(part: AnyPath) -> _Part:
    from pyarrow import parquet

    with part.open("rb") as file:
        return _Part(**json.loads(parquet.read_schema(file).metadata[_SUMMARY]))


def _finished(
    summaries: list[_Part], n_truncated: int | None, target: AnyPath | None, parts: Parts | None
) -> DatasetSimilarity:
    paths: tuple[AnyPath, ...] = ()
    if parts is not None:
        paths = (target,) if target is not None else tuple(parts.paths())
    count = sum(each.n_rows for each in summaries)
    result = DatasetSimilarity(
        score=fsum(each.total for each in summaries) / count,
        n_rows=count,
        kind=summaries[0].kind,
        dtype=", ".join(dict.fromkeys(each.dtype for each in summaries)),
        device=", ".join(dict.fromkeys(each.device for each in summaries)),
        n_unique=sum(each.n_unique for each in summaries),
        n_truncated=n_truncated,
        paths=paths,
    )
    if parts is not None and target is not None:
        merge(parts.paths(), target)
        parts.remove()
    elif parts is not None:
        parts.finish({name: value for name, value in asdict(result).items() if name != "paths"})
    return result
