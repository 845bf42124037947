"""From a reply's text to the outputs that were asked for, or to what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from sys import float_info
from typing import TYPE_CHECKING, Any, NoReturn

from llm_judges.failures import FatalError, InvalidOutputError, require
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
    if "<think>" in text and not thought:
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
        raise InvalidOutputError(f"it has a key twice, of {list(read)}")
    return read


_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
_OBJECT = re.compile(r'\{\s*["}]')  # a brace of prose is followed by something else


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a reply must hold.

    Attributes:
        keys: the names of the outputs.
        read: the outputs of a JSON object, with any extra keys, or an InvalidOutputError.
        schema: the JSON schema of the object, where more than the names is known.
    """

    keys: list[str]
    read: Read
    schema: Mapping[str, Any] | None = None


def outputs_of(given: Any) -> Outputs:
    """The outputs that a list of names, a pydantic model or a JSON schema describes.

    Raises:
        InputError: a schema that is none, or none of an object.
    """
    if isinstance(given, Mapping):
        schema = given
    elif isinstance(given, type) and hasattr(given, "model_json_schema"):
        schema = given.model_json_schema()
        if "$ref" in schema:  # a recursive model is a reference to its definition
            schema = schema["$defs"][schema["$ref"].rpartition("/")[2]] | {"$defs": schema["$defs"]}
    else:
        return Outputs(given, having(given))
    if schema.get("type") != "object" or not schema.get("properties"):
        raise InputError(f"outputs as a schema must describe an object with properties, got {schema!r:.200}")
    read = _conforming_to(schema) if schema is given else _accepted_by(given)
    return Outputs(list(schema["properties"]), read, schema)


def having(keys: Sequence[str]) -> Read:
    """Reads objects that have these keys."""

    def read(value: dict[str, Any]) -> dict[str, Any]:
        if missing := [name for name in keys if name not in value]:
            raise InvalidOutputError(f"Missing expected keys: {missing}; it has {list(value)}")
        return value

    return read


def _accepted_by(model: type[BaseModel]) -> Read:
    pydantic = require("pydantic")

    def read(value: dict[str, Any]) -> dict[str, Any]:
        try:
            accepted = model.model_validate(value)
        except pydantic.ValidationError as error:
            faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            raise InvalidOutputError("; ".join(faults)) from None
        return value | accepted.model_dump(mode="json", by_alias=True)

    return read


def _conforming_to(schema: Mapping[str, Any]) -> Read:
    jsonschema, referencing = require("jsonschema"), require("referencing")
    validator_of = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        validator_of.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InputError(f"outputs is no JSON schema: {error.json_path}: {error.message}") from None
    validator = validator_of(schema, registry=referencing.Registry())  # which fetches nothing

    def read(value: dict[str, Any]) -> dict[str, Any]:
        try:
            faults = [f"{error.json_path}: {error.message:.200}" for error in validator.iter_errors(value)]
        except referencing.exceptions.Unresolvable as error:
            raise FatalError(f"outputs: the JSON schema refers to {error.ref!r}, which it does not have") from None
        if faults:
            raise InvalidOutputError("; ".join(faults))
        return value

    return read


def number(value: Any, name: str) -> float:
    """A score, or an InvalidOutputError."""
    if not isinstance(value, (int, float)) or not abs(value) <= float_info.max:  # integers, too, may be larger
        raise InvalidOutputError(f"{name} must be a number, not {value!r:.80}")
    return float(value)


def statements(value: Any, name: str) -> list[str]:
    """A list of statements, or an InvalidOutputError."""
    if not isinstance(value, list) or not all(isinstance(text, str) and text.strip() for text in value):
        raise InvalidOutputError(f"{name} must be a list of non-empty texts, not {value!r:.200}")
    return value


def binary_scores(value: Any, name: str, count: int) -> list[int]:
    """So many scores of 0 or 1, or an InvalidOutputError; `"1"`, `true` and `1.0` are read as 1."""
    if not isinstance(value, list) or len(value) != count:
        raise InvalidOutputError(f"{name} must be a list of {count}, one for each statement, not {value!r:.200}")
    for score in value:
        if not isinstance(score, (int, float, str)) or score not in _BINARY:
            raise InvalidOutputError(f"{name} must be 0 or 1 each, not {score!r:.80}")
    return [_BINARY[score] for score in value]


_BINARY: Mapping[Any, int] = {0: 0, 1: 1, "0": 0, "1": 1}  # True and 1.0 are equal to 1, and hash like it
