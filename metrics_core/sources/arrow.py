"""Arrow columns as judgements and rankings: read where they lie, without a Python object for any document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metrics_core.blocks import FloatArray, IntArray, KeyTable, Source
from metrics_core.columns import CONTENTS, ColumnKind, contents
from metrics_core.errors import InputError
from metrics_core.extras import required
from metrics_core.key_matching import KeyedDocuments
from metrics_core.keys import decode_keys
from metrics_core.policies import Policies
from metrics_core.repeats import settle_repeats
from metrics_core.sources.arrays import ArraySource, IdArrays
from metrics_core.sources.keyed import KeyedSource
from metrics_core.trec import Qrels, Run

if TYPE_CHECKING:
    import pyarrow as pa

ROLES: dict[str, ColumnKind] = {
    "query_id": "id",
    "ground_truth": "ids",
    "relevance": "numbers",
    "retrieved": "ids",
    "scores": "numbers",
}
"""What a row of a table may hold; each is the name of its column unless `columns` gives another."""
_NEEDED = ("ground_truth", "retrieved")

_QUERY_NAMES = ("query_id", "query", "qid", "q_id", "query-id")
_DOCUMENT_NAMES = ("doc_id", "document_id", "document", "docid", "docno", "did", "corpus-id")
_GRADE_NAMES = ("grade", "relevance", "rel", "label", "score")
_SCORE_NAMES = ("score", "sim")

BATCH_ROWS = 1 << 16


def is_frame(value: object) -> bool:
    """Whether a value is a table of columns: Arrow's C stream interface, a polars LazyFrame, a Hugging Face dataset."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "collect_schema") or hasattr(value, "with_format")


def batches_of(frame: Any, max_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of a frame in order, as record batches of at most `max_rows` rows.

    Raises:
        InputError: no frame.
        ImportError: pyarrow is not installed.
    """
    pa = required("pyarrow", "arrow")
    parts: Any
    if hasattr(frame, "with_format"):  # a Hugging Face dataset, whose table would ignore selections and shuffles
        parts = frame.with_format("arrow").iter(max_rows)
    elif hasattr(frame, "collect_batches"):  # a polars LazyFrame
        parts = frame.collect_batches(chunk_size=max_rows, maintain_order=True)
    elif hasattr(frame, "__arrow_c_stream__"):
        parts = [frame]
    else:
        raise InputError(
            f"a table needs the Arrow C stream interface (pyarrow, pandas, polars, duckdb), got {type(frame).__name__}"
        )
    for part in parts:
        for batch in pa.RecordBatchReader.from_stream(part):
            for start in range(0, batch.num_rows, max_rows):
                yield batch.slice(start, max_rows)


def roles_of(schema: pa.Schema, columns: Mapping[str, str] | None) -> dict[str, str]:
    """The column of each role that the table has, of a type that fits.

    Args:
        columns: names of columns by role, for those that are not named as their role is.

    Raises:
        InputError: an unknown role, a missing column, or one of another type.
    """
    given = dict(columns or {})
    if unknown := [role for role in given if role not in ROLES]:
        raise InputError(f"columns has no role {unknown[0]!r}; there are {', '.join(ROLES)}")
    roles = {role: given.get(role, role) for role in ROLES}
    there = ", ".join(map(repr, schema.names)) or "none"
    for role, name in roles.items():
        if schema.names.count(name) > 1:
            raise InputError(f"there are several columns {name!r}")
        if name not in schema.names and (role in given or role in _NEEDED):
            raise InputError(f"there is no column {name!r} for {role}; the table has {there} (columns= maps roles)")
    roles = {role: name for role, name in roles.items() if name in schema.names}
    kinds = {role: contents(schema.field(name).type) for role, name in roles.items()}
    for role, kind in kinds.items():
        expected = CONTENTS[ROLES[role]]
        if kind not in expected:
            found = schema.field(roles[role]).type
            raise InputError(f"column {roles[role]!r} must hold {' or '.join(expected)}, got {found}")
    if kinds["ground_truth"] != kinds["retrieved"]:
        raise InputError(
            f"column {roles['ground_truth']!r} holds {kinds['ground_truth']}, {roles['retrieved']!r} "
            f"{kinds['retrieved']}: they would never match; cast one"
        )
    return roles


def row_policies(policies: Policies | str | None, roles: Mapping[str, str]) -> Policies:
    """The policies for rows with these roles: by default "trec_eval" where there are scores, else "haystack".

    Raises:
        PolicyError: a policy that cannot apply.
    """
    resolved = Policies.resolve(policies, default="trec_eval" if "scores" in roles else "haystack")
    resolved.refuse("a table with a row a query", "missing", "unjudged_query", "drop_identical_ids")
    return resolved if "scores" in roles else resolved.for_rankings_without_scores()


def row_source(
    batch: pa.RecordBatch,
    roles: Mapping[str, str],
    policies: Policies,
    query_ids: Sequence[Any],
    *,
    unjudged_repeats: bool,
) -> Source:
    """A source of the rows of a batch.

    Args:
        roles: from `roles_of`.
        policies: from `row_policies`.
        query_ids: one a row; messages name them.
        unjudged_repeats: whether it matters that a document which is not judged is retrieved twice.

    Raises:
        InputError: null lists, unless null_list="empty"; lists that do not pair up; null, NaN or infinite numbers;
            documents judged twice, unless the policies settle it. Names the query and the column.
    """

    def flat(role: str) -> tuple[Any, IntArray]:
        return _flat(batch.column(roles[role]), roles[role], policies, query_ids)

    def numbers(role: str, of: str, offsets: IntArray) -> FloatArray:
        values, own_offsets = flat(role)
        different = np.flatnonzero(np.diff(own_offsets) != np.diff(offsets))
        if different.size:
            row = int(different[0])
            lengths = [int(each[row + 1] - each[row]) for each in (own_offsets, offsets)]
            raise InputError(
                f"query {query_ids[row]!r}: {roles[role]!r} has {lengths[0]} values for {lengths[1]} documents in "
                f"{roles[of]!r}"
            )
        return _floats(values, lambda place: f"{roles[role]!r} of query {query_ids[_row(offsets, place)]!r}")

    judged, judged_offsets = flat("ground_truth")
    retrieved, offsets = flat("retrieved")
    grades = numbers("relevance", "ground_truth", judged_offsets) if "relevance" in roles else np.ones(len(judged))
    scores = numbers("scores", "retrieved", offsets) if "scores" in roles else None
    judged_ids, ids = _integers(judged), _integers(retrieved)
    if judged_ids is not None and ids is not None:
        return ArraySource(
            query_ids,
            IdArrays(judged_ids, offsets=judged_offsets).lists,
            grades,
            IdArrays(ids, scores=scores, offsets=offsets),
            policies,
            unjudged_repeats,
        )
    ignored = policies.empty_key == "ignore"
    keys = keys_of(judged, empty_is_null=ignored)

    def refusal(repeats: IntArray, queries: IntArray) -> InputError:
        place = int(repeats[0])
        document = decode_keys(keys.take(np.array([place])))[0]
        return InputError(
            f"query {query_ids[int(queries[0])]!r} judges document {document!r} twice in {roles['ground_truth']!r}; "
            "remove one, or say which counts: duplicate_judgements='max' or duplicate_judgements='last'"
        )

    counted = keys.lengths >= 0  # a null equals nothing
    settled = settle_repeats(keys, grades, judged_offsets, policies.duplicate_judgements, refusal)
    if settled is not None:
        counted &= settled
    if not counted.all():
        keys, grades = keys.take(counted), grades[counted]
        judged_offsets = np.append(0, np.cumsum(counted))[judged_offsets]
    return KeyedSource(
        query_ids,
        KeyedDocuments(keys, grades, _ranges(judged_offsets)),
        KeyedDocuments(keys_of(retrieved, empty_is_null=ignored), scores, _ranges(offsets)),
    )


@dataclass(frozen=True, slots=True)
class LongTable:
    """A long table as a prepared object, and what its ids were: str or int."""

    data: Any  # Qrels or Run
    query_kind: str
    document_kind: str


def long_table(
    frame: Any, kind: type[Qrels | Run], duplicate_judgements: Any, name_of: Callable[[int], str] | None = None
) -> LongTable:
    """Judgements or rankings with a row a document: query, document, grade or score.

    Columns are recognised by their names or, where there are three others, by their order.

    Args:
        frame: anything with the Arrow C stream interface.
        kind: what it is to be.
        duplicate_judgements: which of two judgements counts.
        name_of: names a row in messages; None: by its number.

    Raises:
        InputError: columns that cannot be recognised or are of other types; nulls; numbers that are NaN or infinite;
            documents judged twice, unless duplicate_judgements settles it.
        ImportError: pyarrow is not installed.
    """
    pa = required("pyarrow", "arrow")
    what = "qrels" if kind is Qrels else "run"
    table = pa.Table.from_batches(list(batches_of(frame))) if not isinstance(frame, pa.Table) else frame
    names = long_columns(table.column_names, what, kind)
    queries, documents, values = (_one_array(table.column(name)) for name in names)
    if not len(table):
        raise InputError(f"the {what} table has no rows")
    for name, column in zip(names, (queries, documents, values), strict=True):
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise InputError(f"column {name!r} of the {what} is null in row {row}")
    kinds = [contents(column.type) for column in (queries, documents)]
    for name, found, column in zip(names, kinds, (queries, documents), strict=False):
        if found not in CONTENTS["id"]:
            raise InputError(f"column {name!r} of the {what} must hold strings or integers, got {column.type}")
    if contents(values.type) not in CONTENTS["number"]:
        raise InputError(f"column {names[2]!r} of the {what} must hold numbers, got {values.type}")
    encoded = queries.dictionary_encode()
    row_of = encoded.indices.to_numpy()
    order = None
    if np.count_nonzero(np.diff(row_of)) + 1 != len(encoded.dictionary):  # a query's rows are not together
        order = np.argsort(row_of, kind="stable")
    keys = keys_of(documents)
    numbers = _floats(values, lambda place: f"row {place}, column {names[2]!r} of the {what}")
    if order is not None:
        keys, numbers = keys.take(order), numbers[order]
    query_ids = tuple(encoded.dictionary.to_pylist())
    offsets = np.append(0, np.cumsum(np.bincount(row_of, minlength=len(query_ids))))
    if kind is Qrels:

        def refusal(repeats: IntArray, queries: IntArray) -> InputError:
            place = int(repeats[0])
            row = place if order is None else int(order[place])
            named = f"row {row} of the qrels" if name_of is None else name_of(row)
            document = decode_keys(keys.take(np.array([place])))[0]
            return InputError(
                f"{named}: document {document!r} is judged twice for query {query_ids[int(queries[0])]!r}; remove one, "
                "or say which counts: duplicate_judgements='max' or duplicate_judgements='last'"
            )

        kept = settle_repeats(keys, numbers, offsets, duplicate_judgements, refusal)
        if kept is not None:
            keys, numbers = keys.take(kept), numbers[kept]
            offsets = offsets - np.append(0, np.cumsum(~kept))[offsets]
    return LongTable(kind(query_ids, offsets, keys, numbers), *kinds)


def long_columns(names: Sequence[str], what: str, kind: type[Qrels | Run]) -> list[str]:
    """The columns of query, document and number of a long table.

    Raises:
        InputError: they cannot be recognised.
    """
    value_names = _GRADE_NAMES if kind is Qrels else _SCORE_NAMES
    lowered = {name.lower(): name for name in names}
    found = [
        next((lowered[name] for name in wanted if name in lowered), None)
        for wanted in (_QUERY_NAMES, _DOCUMENT_NAMES, value_names)
    ]
    if all(name is not None for name in found):
        return [name for name in found if name is not None]
    if len(names) == 3:
        return list(names)
    raise InputError(
        f"the {what} table needs a column of each: query ({', '.join(_QUERY_NAMES)}), document "
        f"({', '.join(_DOCUMENT_NAMES)}), number ({', '.join(value_names)}); got {', '.join(map(repr, names))}"
    )


def _is_integer(found: pa.DataType) -> bool:
    return contents(found) == "integers"


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    if contents(column.type) == "strings":
        column = column.cast(pa.large_string())  # whose chunks can be put together beyond 2 GB
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _flat(column: pa.Array, name: str, policies: Policies, query_ids: Sequence[Any]) -> tuple[pa.Array, IntArray]:
    """The items of all lists, and (n_rows + 1,) where each list begins."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count and policies.null_list == "error":
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(
            f"{name!r} of query {query_ids[row]!r} is null; null_list='empty' takes that for an empty list"
        )
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return column.flatten(), np.append(0, np.cumsum(lengths, dtype=np.int64))


def keys_of(texts: pa.Array | pa.ChunkedArray, *, empty_is_null: bool = False) -> KeyTable:
    """Strings where they lie, or integers as decimal text; a null has the length -1, which matches nothing."""
    import pyarrow as pa

    if isinstance(texts, pa.ChunkedArray):
        texts = _one_array(texts)
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    if _is_integer(texts.type) or pa.types.is_string_view(texts.type):
        texts = texts.cast(pa.large_string())
    width = np.dtype(np.int64 if pa.types.is_large_string(texts.type) else np.int32)
    _, offsets_buffer, data = texts.buffers()
    if offsets_buffer is None or not len(texts):
        return KeyTable(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int32))
    offsets = np.frombuffer(offsets_buffer, width, len(texts) + 1, texts.offset * width.itemsize)
    lengths = np.subtract(offsets[1:], offsets[:-1], dtype=np.int32, casting="same_kind")
    if texts.null_count:
        lengths[texts.is_null().to_numpy(zero_copy_only=False)] = -1
    if empty_is_null:
        lengths[lengths == 0] = -1
    return KeyTable(_bytes_of(data), offsets[:-1].astype(np.int64), lengths)


class _Memory:
    """An Arrow buffer as an array that NumPy takes for writable.

    numba compiles a kernel once more for arrays that are read-only; it only reads this one.
    """

    def __init__(self, buffer: pa.Buffer) -> None:
        self.buffer = buffer
        self.__array_interface__ = {
            "shape": (buffer.size,),
            "typestr": "|u1",
            "data": (buffer.address, False),
            "version": 3,
        }


def _bytes_of(buffer: pa.Buffer | None) -> Any:
    return np.empty(0, np.uint8) if buffer is None or not buffer.size else np.asarray(_Memory(buffer))


def _integers(values: pa.Array) -> Any:
    """Ids as `IdArrays` takes them; None where they are no integers, or one is null or beyond 64 bits with a sign."""
    import pyarrow as pa

    if not _is_integer(values.type):
        return None
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.null_count:
        return None
    numbers = values.to_numpy(zero_copy_only=False)
    return None if numbers.dtype == np.uint64 and numbers.max(initial=0) > np.iinfo(np.int64).max else numbers


def _floats(values: pa.Array, describe: Callable[[int], str]) -> FloatArray:
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    numbers: FloatArray = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).copy()
    if values.null_count or not np.isfinite(numbers).all():
        place = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False) | ~np.isfinite(numbers))[0])
        raise InputError(f"{describe(place)} must be a finite number, got {values[place].as_py()!r}")
    return numbers


def _row(offsets: IntArray, place: int) -> int:
    return int(np.searchsorted(offsets, place, side="right")) - 1


def _ranges(offsets: IntArray) -> IntArray:
    return np.column_stack([offsets[:-1], offsets[1:]])
