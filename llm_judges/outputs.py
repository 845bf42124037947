"""From a reply's text to the outputs that were asked for, or to what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, Union

from llm_judges.failures import InvalidOutputError, require
from metrics_core.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel

Read = Callable[[dict[str, Any]], dict[str, Any]]


def json_object(text: str) -> dict[str, Any]:
    """The one JSON object of a reply, which may be fenced, follow `<think>…</think>`, or stand among prose.

    Raises:
        InvalidOutputError: there is none, it is broken off or no strict JSON, or there are several that differ.
    """
    text = text.strip()
    if not text:
        raise InvalidOutputError("it is empty")
    try:
        value = _DECODER.decode(text)
    except InvalidOutputError:
        raise
    except (ValueError, RecursionError):
        return _only_object(text)
    if not isinstance(value, dict):
        raise InvalidOutputError(f"it is a JSON {type(value).__name__}, not an object")
    return value


def _only_object(text: str) -> dict[str, Any]:
    _, thought, answer = text.partition("</think>")  # some servers swallow the opening tag
    if text.startswith("<think>") and not thought:
        raise InvalidOutputError("it ends within <think>")
    text = answer if thought else text
    found: list[dict[str, Any]] = []
    start = 0
    while match := _OBJECT.search(text, start):
        try:
            value, start = _DECODER.raw_decode(text, match.start())
        except InvalidOutputError:
            raise
        except (ValueError, RecursionError) as error:
            # Not to go on inside: an object within one that is broken off is not the answer
            raise InvalidOutputError(f"its JSON is broken: {error}") from None
        if value not in found:
            found.append(value)
    if not found:
        raise InvalidOutputError("it has no JSON object")
    if len(found) > 1:
        raise InvalidOutputError(f"it has {len(found)} different JSON objects")
    return found[0]


def _no_constant(name: str) -> NoReturn:
    raise InvalidOutputError(f"{name} is no JSON")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidOutputError(f"it has the key {twice!r} twice in one object")
    return read


_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
_OBJECT = re.compile(r'\{\s*["}]')  # a brace of prose is followed by something else


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a reply must hold.

    Attributes:
        keys: the names of the outputs.
        read: the outputs of a JSON object, or an InvalidOutputError.
        schema: the JSON schema of the object, where more than the names is known.
    """

    keys: list[str]
    read: Read
    schema: Mapping[str, Any] | None = None


def outputs_of(given: Any) -> Outputs:
    """The outputs that a list of names, a pydantic model or a JSON schema describes.

    Raises:
        InputError: a schema that is none of an object, or has a keyword that would not be checked.
    """
    if isinstance(given, Mapping):
        model = model_of(given)
        return Outputs(list(given["properties"]), conforms(model), given)
    if isinstance(given, type) and hasattr(given, "model_json_schema"):
        schema = given.model_json_schema()
        return Outputs(list(schema["properties"]), conforms(given), schema)
    return Outputs(given, has_keys(given))


def has_keys(outputs: Sequence[str]) -> Read:
    """Reads objects that have these keys; others are kept."""

    def read(value: dict[str, Any]) -> dict[str, Any]:
        if missing := [name for name in outputs if name not in value]:
            raise InvalidOutputError(f"it lacks the keys {missing}; it has {list(value)}")
        return value

    return read


def conforms(model: type[BaseModel]) -> Read:
    """Reads objects that the pydantic model accepts, as the model reads them; extra keys are kept."""
    pydantic = require("pydantic")

    def read(value: dict[str, Any]) -> dict[str, Any]:
        try:
            read_value = model.model_validate(value)
        except pydantic.ValidationError as error:
            faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            raise InvalidOutputError("; ".join(faults)) from None
        return value | read_value.model_dump(mode="json", by_alias=True)

    return read


def number(value: Any, name: str) -> float:
    """A score.

    Raises:
        InvalidOutputError: no finite number.
    """
    if not isinstance(value, (int, float)) or not isfinite(value):
        raise InvalidOutputError(f"{name} must be a number, not {value!r}")
    return float(value)


def statements(value: Any, name: str) -> list[str]:
    """A list of statements.

    Raises:
        InvalidOutputError: no list, or one of something else than non-empty texts.
    """
    if not isinstance(value, list) or not all(isinstance(text, str) and text.strip() for text in value):
        raise InvalidOutputError(f"{name} must be a list of non-empty texts, not {value!r:.200}")
    return value


def binary_scores(value: Any, name: str, count: int) -> list[int]:
    """So many scores of 0 or 1; `"1"`, `true` and `1.0` are read as 1.

    Raises:
        InvalidOutputError: another number of them, or another value among them.
    """
    if not isinstance(value, list) or len(value) != count:
        raise InvalidOutputError(f"{name} must be a list of {count}, one for each statement, not {value!r:.200}")
    scores = [_BINARY.get(score) if isinstance(score, (int, float, str)) else None for score in value]
    for score, given in zip(scores, value, strict=True):
        if score is None:
            raise InvalidOutputError(f"{name} must be 0 or 1 each, not {given!r}")
    return [score for score in scores if score is not None]


_BINARY: Mapping[Any, int] = {0: 0, 1: 1, "0": 0, "1": 1}  # True and 1.0 are equal to 1, and hash like it


_ANNOTATIONS = {"$defs", "$schema", "$id", "title", "description", "default", "examples"}
_BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "pattern": "pattern",
}
_PLAIN: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}


def model_of(schema: Mapping[str, Any]) -> type[BaseModel]:
    """The pydantic model of a JSON schema, which validates strictly: a text is no number.

    Raises:
        InputError: no schema of an object with properties, or a keyword that would not be checked.
    """
    if schema.get("type") != "object" or not schema.get("properties"):
        raise InputError(f"outputs as a JSON schema must describe an object with properties, got {schema!r:.200}")
    model: type[BaseModel] = _object_type(schema, schema.get("$defs", {}), str(schema.get("title", "Outputs")))
    return model


def _object_type(schema: Mapping[str, Any], definitions: Mapping[str, Any], name: str) -> Any:
    _refuse_unknown(schema, {"type", "properties", "required", "additionalProperties"})
    pydantic = require("pydantic")
    required = schema.get("required", [])
    fields: dict[str, Any] = {}
    for index, (key, inner) in enumerate(schema["properties"].items()):
        default = ... if key in required else inner.get("default")
        # Any text may be a key: the field's own name is ours
        fields[f"field_{index}"] = (_type(inner, definitions, key), pydantic.Field(default, alias=key))
    extra = "forbid" if schema.get("additionalProperties") is False else "ignore"
    config = pydantic.ConfigDict(strict=True, allow_inf_nan=False, extra=extra)
    return pydantic.create_model(name, __config__=config, **fields)


def _type(schema: Mapping[str, Any], definitions: Mapping[str, Any], name: str) -> Any:
    """The Python type of a JSON schema; `name` is for messages."""
    if "$ref" in schema:
        target = str(schema["$ref"]).removeprefix("#/$defs/")
        if target not in definitions:
            raise InputError(f"outputs: {schema['$ref']!r} refers to nothing, or to what refers to itself")
        rest = {other: inner for other, inner in definitions.items() if other != target}
        return _type(definitions[target], rest, target)
    if "anyOf" in schema:
        _refuse_unknown(schema, {"anyOf"})
        return Union[tuple(_type(inner, definitions, name) for inner in schema["anyOf"])]  # noqa: UP007  # of a tuple
    if "enum" in schema or "const" in schema:
        _refuse_unknown(schema, {"type", "enum", "const"})
        return Literal[tuple(schema["enum"]) if "enum" in schema else schema["const"]]
    kind = schema.get("type")
    if isinstance(kind, list):
        return Union[tuple(_type({**schema, "type": one}, definitions, name) for one in kind)]  # noqa: UP007
    if kind == "object" and "properties" in schema:
        return _object_type(schema, definitions, name)
    if kind == "array":
        _refuse_unknown(schema, {"type", "items", *_BOUNDS})
        inner_type = _type(schema["items"], definitions, name) if "items" in schema else Any
        return _bounded(list[inner_type], schema)  # type: ignore[valid-type]
    if kind == "object":
        _refuse_unknown(schema, {"type", "additionalProperties"})
        values = schema.get("additionalProperties")
        value_type = _type(values, definitions, name) if isinstance(values, Mapping) else Any
        return dict[str, value_type]  # type: ignore[valid-type]
    if kind is None and not set(schema) - _ANNOTATIONS:
        return Any
    if not isinstance(kind, str) or kind not in _PLAIN:
        raise InputError(f"outputs: {name!r} has the unknown type {kind!r}")
    _refuse_unknown(schema, {"type", *_BOUNDS})
    plain = _PLAIN[kind]
    if kind == "integer":  # JSON has one kind of number: 4.0 is an integer
        whole = require("pydantic").BeforeValidator(lambda given: int(given) if _is_whole(given) else given)
        plain = Annotated[int, whole]
    return _bounded(plain, schema)


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _bounded(plain: Any, schema: Mapping[str, Any]) -> Any:
    bounds = {_BOUNDS[keyword]: value for keyword, value in schema.items() if keyword in _BOUNDS}
    return Annotated[plain, require("pydantic").Field(**bounds)] if bounds else plain


def _refuse_unknown(schema: Mapping[str, Any], known: set[str]) -> None:
    if unknown := set(schema) - known - _ANNOTATIONS:
        raise InputError(
            f"outputs: the JSON schema keyword {min(unknown)!r} is not checked here; a pydantic model can do more"
        )
