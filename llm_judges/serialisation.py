"""The dict form of evaluators' parts: list types as text, generators by class; nothing in it is run."""

from __future__ import annotations

import ast
import builtins
import sys
import typing
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from llm_judges.calls import is_generator
from metrics_core.errors import InputError


def type_to_text(kind: Any) -> str:
    """`list[str]` as "list[str]"."""
    return kind.__name__ if isinstance(kind, type) and not typing.get_args(kind) else repr(kind)


def type_from_text(text: str) -> Any:
    """The type of that text, made of builtin types and names of `typing`.

    Raises:
        InputError: anything else.
    """
    try:
        return _type_of(ast.parse(text, mode="eval").body)
    except (SyntaxError, AttributeError, TypeError) as error:
        raise InputError(f"inputs must have types such as 'list[str]', got {text!r}") from error


def _type_of(node: ast.expr) -> Any:
    match node:
        case ast.Name(id=name) if isinstance(getattr(builtins, name), type):
            return getattr(builtins, name)
        case ast.Attribute(value=ast.Name(id="typing"), attr=name):
            return getattr(typing, name)
        case ast.Constant(value=value):
            return value
        case ast.Subscript(value=outer, slice=inner):
            return _type_of(outer)[_type_of(inner)]
        case ast.Tuple(elts=several):
            return tuple(map(_type_of, several))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _type_of(left) | _type_of(right)
    raise TypeError(ast.unparse(node))


def generator_from_dict(data: Mapping[str, Any]) -> Any:
    """The generator that its `to_dict()` described.

    Modules of Haystack's and our own are imported; a class of any other must have been imported already, so that a
    file cannot bring one in.

    Raises:
        InputError: there is no such class, or it is no generator.
    """
    name = str(data.get("type"))
    module_name, _, class_name = name.rpartition(".")
    if module_name.partition(".")[0] in {"llm_judges", "haystack", "haystack_integrations"}:
        try:
            import_module(module_name)
        except ModuleNotFoundError as error:
            raise InputError(f"chat_generator is a {name!r}, which cannot be imported: {error}") from error
    found = getattr(sys.modules.get(module_name), class_name, None)
    if not isinstance(found, type):
        raise InputError(f"chat_generator is a {name!r}, which is not there; import its module before from_dict")
    if not is_generator(found):
        raise InputError(f"chat_generator is a {name!r}, which is no generator")
    return found.from_dict(dict(data)) if hasattr(found, "from_dict") else found(**data.get("init_parameters", {}))
