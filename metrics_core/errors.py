"""What the package raises."""

from __future__ import annotations


class MetricsError(ValueError):
    """Input, a name or a policy that cannot be used; the message says what came and what to do."""


class InputError(MetricsError):
    """Judgements, rankings or answers that are malformed or do not fit together."""


class FileFormatError(InputError):
    """A file whose content cannot be read as what it was given for; names the file and the line."""


class MetricNameError(MetricsError):
    """A metric's name, parameter or cutoff that means nothing."""


class PolicyError(MetricsError):
    """A policy that does not exist, or that cannot apply to the data at hand."""


class ModelError(MetricsError):
    """A model that cannot be had or used, or that gave what is no score."""


class WorkerError(MetricsError):
    """A worker that died, and took work with it that nobody else did; parts in `out` that others finished remain."""
