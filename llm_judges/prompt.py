"""The prompt: one skeleton, values as JSON, no template engine that could run what a value contains."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from llm_judges.generator import Request
from metrics_core.errors import InputError

CHARACTERS_PER_TOKEN = 3  # low for English, so that a reservation is rather too large
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


def render(value: Any) -> str:
    """A value as JSON that parses back to it, non-ASCII characters as they are.

    Raises:
        InputError: a value that JSON does not have (NaN among them).
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"inputs and examples must be JSON values: {error}, in {value!r:.80}") from error
    # UTF-8 has no lone surrogates, JSON's escapes do
    return _LONE_SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def preamble(
    instructions: str,
    outputs: Sequence[str],
    examples: Sequence[Mapping[str, Any]] | None,
    schema: Mapping[str, Any] | None = None,
) -> str:
    """All that comes before a row's inputs, and is the same for each row."""
    parts = [
        f"Instructions:\n{instructions}\n",
        f"Generate the response in JSON format with the following keys:\n{render(list(outputs))}",
    ]
    if schema is not None:
        parts.append(f"The response must conform to this JSON schema:\n{render(schema)}")
    if examples is None:
        parts.append("Consider the instructions above to determine those values.\n")
    else:
        shown = (f"Inputs:\n{render(row['inputs'])}\nOutputs:\n{render(row['outputs'])}" for row in examples)
        parts.append("Consider the instructions and the examples below to determine those values.\n")
        parts.append("Examples:\n" + "\n".join(shown) + "\n")
    return "\n".join(parts) + "\nInputs:\n"


def fill(before: str, inputs: Mapping[str, str]) -> str:
    """The preamble with a row's inputs, each rendered (or its placeholder), by name."""
    row = ", ".join(f"{render(name)}: {value}" for name, value in inputs.items())
    return f"{before}{{{row}}}\nOutputs:\n"


def correction(fault: str) -> str:
    """What is said, once, after a reply that could not be read."""
    return (
        f"That reply cannot be used: {fault}. Answer again, with one JSON object as described above and nothing else."
    )


def estimated_tokens(request: Request) -> int:
    """How many tokens a prompt may have."""
    return sum(len(message.text) for message in request.messages) // CHARACTERS_PER_TOKEN
