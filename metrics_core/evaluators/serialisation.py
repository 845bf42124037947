"""What makes an evaluator a value: equality, and the dict form that Haystack's pipelines save."""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

from metrics_core.errors import InputError


class Evaluator:
    """An evaluator that is defined by the arguments of its constructor, which are its attributes too."""

    def _init_parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def to_dict(self) -> dict[str, Any]:
        """{"type": "<module>.<class>", "init_parameters": {...}}, of plain values."""
        return {"type": _type_name(type(self)), "init_parameters": self._init_parameters()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The evaluator that `to_dict` described; parameters that are missing take their defaults.

        Raises:
            InputError: another class, or parameters that the constructor does not have.
        """
        if data.get("type") != _type_name(cls):
            raise InputError(f"data describes {data.get('type')!r}, not {_type_name(cls)!r}")
        parameters = data.get("init_parameters", {})
        unknown = [name for name in parameters if name not in _parameters(cls)]
        if unknown:
            raise InputError(f"{cls.__name__} has no parameter {unknown[0]!r}")
        return cls(**parameters)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Evaluator)
            and type(self) is type(other)
            and self._init_parameters() == other._init_parameters()
        )

    def __hash__(self) -> int:
        return hash(tuple(map(str, self._init_parameters().items())))

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self._init_parameters().items())
        return f"{type(self).__name__}({parameters})"


def _parameters(cls: type) -> list[str]:
    """The names of the constructor's arguments; of Haystack's components the class itself does not tell them."""
    return list(signature(cls.__init__).parameters)[1:]  # type: ignore[misc]


def _type_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
