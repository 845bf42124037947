"""What the columns of Arrow tables hold, in words, and whether it is what is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

ColumnKind: TypeAlias = Literal["text", "texts", "id", "ids", "number", "numbers"]
"""What a column is needed for: "text" strings; "texts" strings, or lists of them; "id" strings or integers; "number"
integers, floats or booleans; "ids" and "numbers" lists of these."""

_NUMBERS = ("integers", "floats", "booleans")
CONTENTS: dict[ColumnKind, tuple[str, ...]] = {
    "text": ("strings",),
    "texts": ("strings", "lists of strings"),
    "id": ("strings", "integers"),
    "ids": ("lists of strings", "lists of integers"),
    "number": _NUMBERS,
    "numbers": tuple(f"lists of {numbers}" for numbers in _NUMBERS),
}
"""The contents that are fit for each kind."""


def contents(found: pa.DataType) -> str:
    """What a column of this type holds: strings, integers, floats, booleans, lists of these; else Arrow's own name."""
    import pyarrow as pa

    is_ = pa.types
    if is_.is_dictionary(found):
        return contents(found.value_type)
    if is_.is_list(found) or is_.is_large_list(found) or is_.is_fixed_size_list(found) or _is_list_view(found):
        return f"lists of {contents(found.value_type)}"
    if is_.is_string(found) or is_.is_large_string(found) or is_.is_string_view(found):
        return "strings"
    if is_.is_integer(found):
        return "integers"
    if is_.is_floating(found) or is_.is_decimal(found):
        return "floats"
    return "booleans" if is_.is_boolean(found) else str(found)


def _is_list_view(found: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list_view(found) or pa.types.is_large_list_view(found))
