"""Metric: the definition of an effectiveness metric, and the same with parameters and a cutoff bound to it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from inspect import CO_VARARGS
from math import isinf, nan
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from metrics_core.aggregate import AggregateName
from metrics_core.blocks import BoolArray, FloatArray, GradeBlock, Int32Array, IntArray
from metrics_core.compile import at_once, cells, run
from metrics_core.errors import MetricNameError, MetricsError, PolicyError
from metrics_core.metrics.parameters import REL, REQUIRED, Number, Parameter, Value, written
from metrics_core.metrics.ties import mean_gains

if TYPE_CHECKING:
    from metrics_core.policies import Policies

Kernel: TypeAlias = Callable[..., None]
Gain: TypeAlias = Callable[[FloatArray, float, Mapping[str, Any]], FloatArray]
Reads: TypeAlias = Literal["first", "relevance", "grades", "everything"]
After: TypeAlias = Literal["none", "optional cutoff", "cutoff", "recall"]

NO_CUTOFF = 10**18
_ARGUMENTS = ("grades", "ranks", "n_retrieved", "ideal", "rel", "cutoff", "params", "out")  # of a kernel
_LOWEST = float(np.finfo(np.float64).min)


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric; `metric(rel=2)` and `metric @ 10` return copies with parameters and a cutoff bound.

    Two metrics are equal if name, bound values and cutoff are. `str` gives the canonical name, which `parse` reads.
    Pickles if the kernel can be imported.

    Args:
        name: letters, digits and underscores, beginning with a letter.
        kernel: a plain Python function of loops over arrays, compiled at its first use (ours, once they do much),
            `kernel(grades, ranks, n_retrieved, ideal, rel, cutoff, params, out)`:
            grades and ranks (n_documents, n_queries) float64 and int32, documents of each ranking in rank order, the
            first of all queries, then the second, ...: at least all that are judged, or with reads="first" the first
            relevant one, and where they stand, from 1. A grade is NaN for an unjudged document and after the last one,
            whose rank is then NO_RANK; REPEAT (-inf) = the second place of a document, neither relevant, non-relevant
            nor unjudged; n_retrieved (n_queries,) int64, the length of each ranking, documents that are not in grades
            included; ideal (n_judged, n_queries) float64, the grades of all judged documents, descending, NaN after the
            last; rel float, the lowest relevant grade; cutoff int, huge where there is none; params (n_parameters,)
            float64, the values of the parameters other than rel in declared order, NaN for what is no number, then the
            recall level if the metric takes one; out (n_queries,) float64, zeros, to be filled with the scores. A
            kernel writes to nothing but out, and decides no policy.
        title: the full name; the name where none is given.
        definition: the formula in a sentence or two.
        source: paper and venue, or the program of reference.
        parameters: in the order in which they are written.
        after: what stands after the @: nothing, a cutoff that may be left out, a cutoff, or a recall level in [0, 1].
        aggregate: how queries are summed up: "mean", "sum" or "geometric mean".
        gain: turns grades into the gains that the kernel then gets in their place, of the same shape, by
            `gain(grades, rel, values)`, without writing to them. It may return its argument.
        gain_of_ideal: whether the kernel's ideal consists of gains as well (descending, as grades are).
        expected: ties="expected" is refused (None); changes nothing, as the order of ranks does not matter ("same");
            replaces each gain by the mean of its tie, which is exact for sums over ranks ("mean gains"); or is
            computed by this kernel, with one more argument: tie_ends (width, n_queries), the rank at which the tie
            of each rank ends; it gets all documents, judged or not, so that the i-th (from 0) stands at rank i + 1.
        reads: what the score depends on: at which rank the first relevant document stands ("first"); at which all of
            them stand and how many there are ("relevance"); the grades of judged documents as well ("grades"); also
            which documents are unjudged ("everything"). What no metric reads need not be found out.
        needs_relevant: whether the `no_relevant` policy applies to queries without a relevant document.
        exclusive: parameters of which only one may be given.
        compiled: False runs the kernels as plain Python.
        values: the parameters bound to something else than their default; use `metric(name=value)`.
        cutoff: the cutoff or recall level; use `metric @ cutoff`.

    Raises:
        MetricNameError: a name, parameter or cutoff that means nothing.
        MetricsError: a kernel that takes other arguments.
    """

    name: str
    kernel: Kernel
    title: str = ""
    definition: str = ""
    source: str = ""
    parameters: tuple[Parameter, ...] = (REL,)
    after: After = "optional cutoff"
    aggregate: AggregateName = "mean"
    gain: Gain | None = None
    gain_of_ideal: bool = False
    expected: Kernel | Literal["same", "mean gains"] | None = None
    reads: Reads = "everything"
    needs_relevant: bool = True
    exclusive: tuple[str, ...] = ()
    compiled: bool = True
    values: tuple[tuple[str, Value], ...] = ()
    cutoff: float | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", self.name):
            raise MetricNameError(
                f"name must be letters, digits and underscores beginning with a letter, got {self.name!r}"
            )
        for name, choices in (("after", After), ("aggregate", AggregateName), ("reads", Reads)):
            if getattr(self, name) not in get_args(choices):
                listed = ", ".join(map(repr, get_args(choices)))
                raise MetricNameError(f"{name} of {self.name} must be one of {listed}, got {getattr(self, name)!r}")
        for kernel, more in ((self.kernel, ()), (self.expected, ("tie_ends",))):
            arguments = (*_ARGUMENTS, *more)
            if isinstance(kernel, FunctionType) and not _takes(kernel, len(arguments)):
                raise MetricsError(
                    f"the kernel {kernel.__name__!r} of {self.name} must take {len(arguments)} arguments: "
                    f"{', '.join(arguments)}"
                )
        if not self.title:
            object.__setattr__(self, "title", self.name)

    def __call__(self, **values: Any) -> Metric:
        """This metric with parameters bound; those not named stay as they are.

        Raises:
            MetricNameError: an unknown parameter, a value that its check refuses, or two that exclude each other.
        """
        return self.bind(values)

    def __matmul__(self, cutoff: Any) -> Metric:
        """This metric at a cutoff (a positive int), or at a recall level in [0, 1] for those that take one.

        Raises:
            MetricNameError: a cutoff of another kind, or a metric that takes none.
        """
        return self.at(cutoff)

    def bind(self, values: Mapping[str, Any], *, text: str = "") -> Metric:
        """What a call does; errors quote `text`, by default the name as called."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in values.items())
        text = text or f"{self.name}({arguments})"
        declared = {parameter.name: parameter for parameter in self.parameters}
        bound = dict(self.values)
        for name, value in values.items():
            if name not in declared:
                raise MetricNameError(f"unknown parameter {name!r} in {text!r}; {self._closest_parameter(name)}")
            bound.pop(name, None)
            if value is None and declared[name].default is None:
                continue
            try:
                kept = declared[name].check(value)
            except ValueError as error:
                raise MetricNameError(f"{name} in {text!r} {error}, got {value!r}") from None
            if kept != declared[name].default:
                bound[name] = kept
        given = bound.keys() | {name for name, value in values.items() if value is not None}
        if len(clash := [name for name in self.exclusive if name in given]) > 1:
            raise MetricNameError(f"{self.name} takes {' or '.join(clash)}, not both, in {text!r}")
        return replace(self, values=tuple((name, bound[name]) for name in declared if name in bound))

    def at(self, cutoff: Any, *, text: str = "") -> Metric:
        """What `@` does; errors quote `text`, by default the name as written with this cutoff."""
        text = text or f"{replace(self, cutoff=None)}@{cutoff}"
        if self.after == "none":
            raise MetricNameError(f"{self.name} takes no cutoff, got {text!r}")
        if self.after == "recall":
            return replace(self, cutoff=_recall_level(cutoff, text))
        return replace(self, cutoff=_positive_integer(cutoff, text))

    def check_complete(self, *, text: str = "") -> None:
        """Nothing, if all that the metric needs is bound.

        Raises:
            MetricNameError: a required parameter or cutoff is missing; the message suggests one.
        """
        if self._complete:
            return
        missing = [parameter for parameter in self.parameters if self._values[parameter.name] is REQUIRED]
        lacks_cutoff = self._lacks_cutoff
        example = replace(self, values=(*self.values, *((p.name, p.example) for p in missing)))
        if lacks_cutoff:
            example = replace(example, cutoff=10 if self.after == "cutoff" else 0.1)
        needs = [f"{p.name} ({p.definition})" if p.definition else p.name for p in missing]
        needs += [{"cutoff": "a cutoff", "recall": "a recall level"}[self.after]] if lacks_cutoff else []
        raise MetricNameError(f"{text or str(self)!r} needs {' and '.join(needs)}; did you mean {str(example)!r}?")

    def check_ties(self, policies: Policies) -> None:
        """Nothing, if the metric can be computed under the policies' treatment of ties.

        Raises:
            PolicyError: ties="expected" and no exact expectation is known for this metric.
        """
        if policies.ties == "expected" and self.expected is None:
            raise PolicyError(f"{self} has no exact value for ties='expected'; choose another policy for ties")

    def reads_grades(self, policies: Policies) -> bool:
        """Whether it matters which grade a judged document has."""
        return self.reads in ("grades", "everything") or self._rel(policies) > _LOWEST

    def reads_only_first(self, policies: Policies) -> bool:
        """Whether all that matters is where the first judged document stands, as all of them are relevant."""
        return self.reads == "first" and not self.reads_grades(policies)

    def reads_unjudged_repeats(self, policies: Policies) -> bool:
        """Whether it matters that a document which is not judged comes twice in a ranking in rank order."""
        return self.reads == "everything" or policies.duplicates != "first_keep_rank"

    def score(self, block: GradeBlock, policies: Policies) -> FloatArray:
        """The score of each query of a block; a query without relevant documents scores what the kernel says, 0.

        Args:
            block: with tie_ends only where ties="expected" and documents tie.
            policies: their default_rel and ties are used here; `no_relevant` is the caller's, by `without_relevant`.

        Returns:
            (n_queries,) float64.

        Raises:
            MetricNameError: a required parameter or cutoff is not bound.
            PolicyError: ties="expected" and the metric does not allow it.
            InputError: a grade above max_rel, or too large for an exponential gain.
            MetricsError: numba cannot compile the kernel, or it returns something.
        """
        self.check_complete()
        self.check_ties(policies)
        rel = self._rel(policies)
        cutoff = NO_CUTOFF if self.cutoff is None or self.after == "recall" else int(self.cutoff)
        grades, ideal, tie_ends = block.grades, block.ideal, block.tie_ends
        if self.gain is not None:
            grades = self.gain(grades, rel, self._values)
            if self.gain_of_ideal:
                gains = self.gain(ideal, rel, self._values)
                ideal = ideal if gains is ideal else _descending(gains)
        out = np.zeros(block.n_retrieved.size)
        if tie_ends is not None and self.expected == "mean gains":
            grades = mean_gains(grades, block.n_retrieved, tie_ends)
        arguments = (grades, block.ranks, block.n_retrieved, ideal, rel, cutoff, self._params, out)
        if tie_ends is not None and callable(self.expected):
            self._run(self.expected, *arguments, tie_ends)
        else:
            self._run(self.kernel, *arguments)
        return out

    def without_relevant(self, block: GradeBlock, policies: Policies) -> BoolArray:
        """Where a query has no relevant document: none judged at or above rel or, for gains, none with any.

        Returns:
            (n_queries,) bool, all False for metrics whose definition needs none.
        """
        if not self.needs_relevant:
            return np.zeros(block.n_retrieved.size, dtype=np.bool_)
        rel = self._rel(policies)
        ideal = block.ideal
        relevant = ideal[:1] >= rel if self.gain is None else self.gain(ideal, rel, self._values) > 0
        without: BoolArray = relevant.sum(axis=0) == 0
        return without

    def __str__(self) -> str:
        values = ", ".join(f"{name}={written(value)}" for name, value in self.values)
        after = "" if self.cutoff is None else f"@{written(self.cutoff)}"
        return self.name + (f"({values})" if values else "") + after

    def __repr__(self) -> str:
        return f"<Metric {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Metric):
            return NotImplemented
        return (self.name, self.values, self.cutoff) == (other.name, other.values, other.cutoff)

    def __hash__(self) -> int:
        return hash((self.name, self.values, self.cutoff))

    def same_definition(self, other: Metric) -> bool:
        """Whether all fields agree, the kernel among them."""
        return all(getattr(self, each.name) == getattr(other, each.name) for each in fields(self))

    @cached_property
    def _values(self) -> dict[str, Any]:
        return {parameter.name: parameter.default for parameter in self.parameters} | dict(self.values)

    @cached_property
    def _lacks_cutoff(self) -> bool:
        return self.after in ("cutoff", "recall") and self.cutoff is None

    @cached_property
    def _complete(self) -> bool:
        return not self._lacks_cutoff and REQUIRED not in self._values.values()

    @cached_property
    def _params(self) -> FloatArray:
        values = [value for name, value in self._values.items() if name != "rel"]
        numbers = [float(value) if isinstance(value, (int, float)) else nan for value in values]
        if self.after == "recall" and self.cutoff is not None:
            numbers.append(self.cutoff)
        return np.array(numbers, dtype=np.float64)

    def _rel(self, policies: Policies) -> float:
        own = self._values.get("rel")
        rel = float(policies.default_rel if own is None else own)
        # the lowest finite number, not -inf, so that `grade >= rel` holds for every judged grade and not for REPEAT
        return _LOWEST if isinf(rel) and rel < 0 else rel

    def _run(self, kernel: Kernel, *arguments: FloatArray | IntArray | Int32Array | float) -> None:
        call: Callable[..., object] = kernel
        if self.compiled and isinstance(kernel, FunctionType):
            call = partial(self._run_compiled, kernel)
        returned = call(*arguments)
        if returned is not None:
            raise MetricsError(f"the kernel of {self.name} must fill out and return nothing, but returns {returned!r}")

    def _run_compiled(self, kernel: FunctionType, *arguments: Any) -> object:
        try:
            return run(kernel, arguments, _steps if _is_ours(kernel) else at_once)
        except Exception as error:
            if not any(each.__module__ == "numba.core.errors" for each in type(error).__mro__):
                raise
            raise MetricsError(
                f"numba cannot compile the kernel {kernel.__name__!r} of {self.name}; write it as plain loops over "
                f"the arrays, with functions of its own module only, or pass compiled=False: {error}"
            ) from error

    def _closest_parameter(self, name: str) -> str:
        from difflib import get_close_matches  # 2 ms, for errors only

        names = [parameter.name for parameter in self.parameters]
        if close := get_close_matches(name, names, n=1):
            return f"did you mean {close[0]!r}?"
        return f"{self.name} takes {', '.join(names)}" if names else f"{self.name} takes no parameters"


def _steps(*arguments: Any) -> int:
    """Of a kernel, which goes through its arrays or, as few do, through the ranks of all rankings."""
    return cells(*arguments) + int(arguments[_ARGUMENTS.index("n_retrieved")].sum())


def _is_ours(kernel: FunctionType) -> bool:
    """Whether this package defines a kernel; one that wraps such a kernel says so of itself in __module__."""
    return str(kernel.__globals__.get("__name__")).startswith("metrics_core.")


def _takes(function: FunctionType, n: int) -> bool:
    """Whether a function can be called with `n` arguments."""
    code, n_optional = function.__code__, len(function.__defaults__ or ())
    return bool(code.co_flags & CO_VARARGS) or code.co_argcount - n_optional <= n <= code.co_argcount


def _positive_integer(cutoff: Any, text: str) -> int:
    try:
        number = 0 if isinstance(cutoff, bool) else operator.index(cutoff)
    except TypeError:
        number = 0
    if not 0 < number < NO_CUTOFF:
        raise MetricNameError(f"cutoff in {text!r} must be a positive integer, got {cutoff!r}")
    return number


def _recall_level(level: Any, text: str) -> float:
    try:
        number = Number()(level)
    except ValueError:
        number = nan
    if not 0 <= number <= 1:
        raise MetricNameError(f"recall level in {text!r} must be a number from 0 to 1, got {level!r}")
    return number


def _descending(gains: FloatArray) -> FloatArray:
    if (gains[1:] > gains[:-1]).any():  # a table of gains need not ascend with the grades
        return -np.sort(-gains, axis=0)  # NaN stays last
    return gains
