"""Named columns as tables of other libraries: Arrow, pandas, polars."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, time
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from metrics_core.errors import InputError
from metrics_core.extras import required

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Columns = Mapping[str, Any]  # of sequences, NumPy's arrays among them

JSON_TEXT = {b"encoding": b"json"}  # metadata of a column of Arrow whose values are JSON text
_DOCUMENT = ("id", "content", "meta", "score")


def plain(value: Any, where: str) -> Any:
    """A value as JSON has it: dicts, lists, texts, numbers and None.

    NaN is None; documents are dicts of id, content, meta and score; dates are ISO 8601 texts; arrays, tuples and data
    frames' columns are lists; NumPy's scalars are Python's.

    Args:
        value: any value.
        where: what it belongs to, for the message.

    Raises:
        InputError: there is no such form of it.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            raise InputError(f"{where} has {value!r}, which JSON does not have")
        return None if isnan(value) else float(value)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return plain(value.item(), where)
    if isinstance(value, (list, tuple)):
        return [plain(item, where) for item in value]
    if isinstance(value, Mapping):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise InputError(f"{where} has a dict with the key {odd[0]!r}; keys must be strings")
        return {key: plain(item, where) for key, item in value.items()}
    if isinstance(value, (date, time)):
        return value.isoformat()
    if hasattr(value, "to_list") or isinstance(value, np.ndarray):
        return plain(value.tolist() if isinstance(value, np.ndarray) else value.to_list(), where)
    if all(hasattr(value, name) for name in _DOCUMENT):
        return {name: plain(getattr(value, name), where) for name in _DOCUMENT}
    raise InputError(f"{where} has a {type(value).__name__}, which cannot be stored; make it text, a list or a dict")


def to_arrow(columns: Columns) -> pa.Table:
    """An Arrow table; a column for whose values Arrow has no one type, or would change them, is JSON text.

    NaN is null. The metadata of a column of JSON text is {"encoding": "json"}.

    Raises:
        ImportError: pyarrow is not installed.
        InputError: a value that `plain` refuses.
    """
    pa = required("pyarrow", "arrow")
    arrays, fields = [], []
    for name, values in columns.items():
        if hasattr(values, "__arrow_array__") or _are_numbers(values):
            arrays.append(pa.array(values, from_pandas=True))  # NaN is null
            fields.append(pa.field(name, arrays[-1].type))
            continue
        listed = [plain(value, f"column {name!r}") for value in values]
        # of NaN alone Arrow would not know that they were numbers
        no_number = any(isinstance(value, float) for value in values) and not any(value is not None for value in listed)
        array, metadata = _arrow_array(pa, listed, pa.float64() if no_number else None)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=metadata))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _are_numbers(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iuf"


def _arrow_array(pa: Any, values: list[Any], kind: Any) -> tuple[Any, dict[bytes, bytes] | None]:
    try:
        array = pa.array(values, kind)
    except (pa.ArrowException, OverflowError, UnicodeError):
        pass
    else:
        # Structs would gain keys that other rows have; without any keys they cannot go into parquet
        if array.to_pylist() == values and "struct<>" not in str(array.type):
            return array, None
    return pa.array([None if value is None else json.dumps(value) for value in values], pa.string()), JSON_TEXT


def to_pandas(columns: Columns) -> pd.DataFrame:
    """A data frame of pandas; values are as they are, lists and documents are objects.

    Raises:
        ImportError: pandas is not installed.
    """
    pd = required("pandas", "frames")
    return pd.DataFrame({name: values if _are_numbers(values) else list(values) for name, values in columns.items()})


def to_polars(columns: Columns) -> pl.DataFrame:
    """A data frame of polars; as `to_arrow`, null for NaN included.

    Raises:
        ImportError: polars or pyarrow is not installed.
        InputError: a value that `plain` refuses.
    """
    frame: pl.DataFrame = required("polars", "frames").from_arrow(to_arrow(columns))
    return frame
