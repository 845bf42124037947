"""What can go wrong in a run, and how a call's failure is understood: retried, given up for its row, or fatal."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from math import isfinite
from typing import Any

from metrics_core.errors import MetricsError

_FATAL_STATUSES = {401, 402, 403, 404}
_FATAL_CODES = {"insufficient_quota", "invalid_api_key", "model_not_found", "billing_hard_limit_reached"}
_TRANSIENT_STATUSES = {408, 409, 425, 429}
# The exceptions of openai, httpx and their kin, by name: none of them need be installed to recognise them.
_TIMEOUTS = {"APITimeoutError", "TimeoutException", "TimeoutError"}
_CONNECTION_ERRORS = {"APIConnectionError", "RequestError", "OSError"}


class StoppedError(MetricsError):
    """A run that ended early; `result` is the evaluator's, with the reason "skipped" for rows that were not judged."""

    result: dict[str, Any] | None = None


class FatalError(StoppedError):
    """No other row would fare better: a wrong key, no quota, no such model, a store that cannot be written."""


class RowError(StoppedError):
    """A row could not be judged, and `raise_on_failure` is set; `row` is its index."""

    def __init__(self, row: int, reason: str, detail: str) -> None:
        super().__init__(
            f"row {row} could not be judged ({reason}: {detail}); raise_on_failure=False goes on without such rows"
        )
        self.row = row


class InterruptedRun(KeyboardInterrupt):
    """Ctrl-C in a run; `result` is the evaluator's, with the reason "skipped" for rows that were not judged."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__("the run was interrupted; what was finished is in this exception's result, and in the store")
        self.result = result


class InvalidOutputError(MetricsError):
    """A reply that cannot be read as the outputs that were asked for; the message states the fault."""


class CallError(Exception):
    """A call that brought no reply; `reason` is that of the row if it stays so, `retry_after` are seconds."""

    def __init__(
        self,
        message: str,
        reason: str = "transport",
        *,
        retry: bool = False,
        retry_after: float | None = None,
        fatal: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry = retry
        self.retry_after = retry_after
        self.fatal = fatal


def call_error(error: Exception) -> CallError:
    """Understands any exception of a generator, by its status code where it has one, else by its class."""
    status = getattr(error, "status_code", None)
    message = str(error) or type(error).__name__
    if isinstance(status, int):
        codes = {str(getattr(error, name, None)) for name in ("code", "type")}
        headers = getattr(getattr(error, "response", None), "headers", {})
        return status_error(status, codes, message, headers)
    names = {cls.__name__ for cls in type(error).__mro__}
    if names & _TIMEOUTS:
        return CallError(message, "timeout", retry=True)
    return CallError(f"{type(error).__name__}: {message}", retry=bool(names & _CONNECTION_ERRORS))


def status_error(status: int, codes: set[str], message: str, headers: Mapping[str, str]) -> CallError:
    """Understands an HTTP status with the error codes and the message that came with it."""
    text = message.lower()
    if "content_filter" in codes or (status == 403 and ("moderation" in text or "flagged" in text)):
        return CallError(message, "content_filter")
    # vLLM, llama.cpp and others have no code for it
    if status in {400, 413, 422} and ("context_length_exceeded" in codes or "context length" in text):
        return CallError(message, "context_length")
    if status in _FATAL_STATUSES or codes & _FATAL_CODES:
        return CallError(message, fatal=True)
    retry = status in _TRANSIENT_STATUSES or status >= 500
    retry_after = _retry_after(headers.get("retry-after", "")) if retry else None
    if retry_after is not None:
        message = f"{message} (the server asked to wait {retry_after:g} s)"
    reason = "rate_limited" if status == 429 else "transport"
    return CallError(message, reason, retry=retry, retry_after=retry_after)


def _retry_after(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:  # absent, or a date: the back-off decides
        return None
    return max(seconds, 0.0) if isfinite(seconds) else None


def require(module: str) -> Any:
    """A package of the `judges` extra.

    Raises:
        ImportError: it is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        message = f"llm_judges needs {module}: pip install 'metrics-core[judges]'"
        raise ImportError(message, name=module) from error
