"""Packages that extras install, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def required(module: str, extra: str) -> Any:
    """A package that an extra installs.

    Raises:
        ImportError: it is not installed; names the extra. What it raises itself is left as it is.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ImportError(f"this needs {module}: pip install 'metrics-core[{extra}]'", name=module) from error
