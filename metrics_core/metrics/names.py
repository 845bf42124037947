"""Names of metrics: what is registered, and a small grammar that reads the field's spellings.

`Name(parameter=value, …)@cutoff` is the canonical form, ir_measures'. trec_eval's (`ndcg_cut_10`, `P.5,10`) and
ranx's (`ndcg@10`, `map@100-l2`, `rbp.95`) are read too, in any case.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from metrics_core.errors import MetricNameError
from metrics_core.metrics.catalogue import CATALOGUE
from metrics_core.metrics.metric import Metric
from metrics_core.metrics.parameters import NUMBER
from metrics_core.metrics.sets import NumRelRet, NumRet, SetP, SetR, SetRelP

# trec_eval's name without a cutoff, and the family that takes cutoffs (family_10, family.5,10)
_TREC_EVAL: dict[str, tuple[str | None, str | None]] = {
    "nDCG": ("ndcg", "ndcg_cut"),
    "AP": ("map", "map_cut"),
    "GMAP": ("gm_map", None),
    "RR": ("recip_rank", None),
    "Success": (None, "success"),
    "P": (None, "P"),
    "R": (None, "recall"),
    "Rprec": ("Rprec", None),
    "IPrec": (None, "iprec_at_recall"),
    "IPrec11": ("11pt_avg", None),
    "Bpref": ("bpref", None),
    "infAP": ("infAP", None),
    "Unj": (None, "unj"),
    "SetP": ("set_P", None),
    "SetR": ("set_recall", None),
    "SetF": ("set_F", None),
    "SetAP": ("set_map", None),
    "SetRelP": ("set_relative_P", None),
    "NumQ": ("num_q", None),
    "NumRet": ("num_ret", None),
    "NumRel": ("num_rel", None),
    "NumRelRet": ("num_rel_ret", None),
}
_OTHER_ALIASES: dict[str, tuple[str, ...]] = {
    "AP": ("MAP",),
    "RR": ("MRR",),
    "Success": ("hit_rate", "HitRate"),
    "P": ("precision",),
    "R": ("recall",),
    "Rprec": ("r-precision",),
    "SetF": ("f1",),
}
_PARAMETER_FAMILIES = {"rbp": "p", "set_f": "x"}  # rbp.95 (ranx), set_F.2 (trec_eval)
_WITHOUT_CUTOFF = {"P": SetP, "R": SetR}
_BARE_FAMILIES = ("success",)  # in this spelling trec_eval's several cutoffs; Success is any hit
_NOT_ALIASES = {
    "hits": "'hits' is a count in ranx; use 'Success@10' (whether there is a hit) or 'NumRelRet' (how many)",
}

_FORM = re.compile(r"\s*(?P<name>[^\s()@{}=]+)\s*(?:\((?P<arguments>.*)\)\s*)?(?:@\s*(?P<after>[^\s()@]*)\s*)?")
_LEVEL = re.compile(r"(?P<text>.+)-l(?P<rel>[0-9]{1,9})\s*")
_SEVERAL = re.compile(r",\s*[A-Za-z]")
_FAMILY = re.compile(r"(?P<family>.+?)[._](?P<cutoffs>\.?[0-9][0-9.,]*)")
_ARGUMENT = re.compile(
    rf"""\s*(?P<name>[A-Za-z_]\w*)\s*=\s*
    (?:(?P<number>{NUMBER})|(?P<word>[A-Za-z][\w-]*)|'(?P<single>[^']*)'|"(?P<double>[^"]*)"|{{(?P<table>[^{{}}]*)}})
    \s*(?:,|$)""",
    re.VERBOSE,
)
_TABLE_ENTRY = re.compile(rf"\s*(?P<grade>{NUMBER})\s*:\s*(?P<gain>{NUMBER})\s*(?:,|$)")
_WORDS = {"true": True, "false": False, "none": None}

_lock = threading.Lock()
_registered: dict[str, Metric] = {}
_by_name: dict[str, Metric] = {}  # every name and alias in lower case
_spellings: dict[str, str] = {}  # the same, as they are to be shown
_families: dict[str, Metric] = {}


def parse(name: str | Metric) -> Metric:
    """The metric of a name; a Metric is returned as it is.

    Args:
        name: canonical, or in trec_eval's or ranx's spelling, in any case. P, R, precision and recall without a
            cutoff are SetP and SetR.

    Raises:
        MetricNameError: a name, parameter or cutoff that means nothing, a required one that is missing, or a
            name of several metrics (`P_5,10`); the message quotes it and suggests a valid one.
    """
    metrics = _parse(name)
    if len(metrics) > 1:
        raise MetricNameError(f"{name!r} names {len(metrics)} metrics; give one, or use parse_all")
    return metrics[0]


def parse_all(names: str | Metric | Iterable[str | Metric]) -> list[Metric]:
    """The metrics of all names, each once, in order of first mention; `P_5,10` is two.

    Raises:
        MetricNameError: as by `parse`; or no name.
    """
    several = [names] if isinstance(names, (str, Metric)) else names
    if not isinstance(several, Iterable):
        raise MetricNameError(f"metrics must be names or Metric objects, got {names!r}")
    parsed = list(dict.fromkeys(metric for name in several for metric in _parse(name)))
    if not parsed:
        raise MetricNameError("metrics must not be empty")
    return parsed


def metric_names() -> tuple[str, ...]:
    """The canonical names of all metrics that can be parsed: the catalogue's, then those registered."""
    with _lock:
        return tuple(_registered)


def registered_metrics() -> tuple[Metric, ...]:
    """The definitions of all metrics that can be parsed, in the order of `metric_names`."""
    with _lock:
        return tuple(_registered.values())


def register_metric(metric: Metric, *, aliases: Iterable[str] = ()) -> None:
    """Makes a metric's name, and aliases of it, parse; registering the same again does nothing.

    A metric of one's own whose kernel was defined again under its name, as by a notebook's cell that ran twice, takes
    the place of the one before.

    Raises:
        MetricNameError: a name that is taken by another metric, or a metric with parameters or a cutoff bound.
    """
    if metric.values or metric.cutoff is not None:
        raise MetricNameError(f"only a definition can be registered, got {str(metric)!r} with values bound")
    with _lock:
        spellings = (metric.name, *aliases)
        for spelling in spellings:
            key = spelling.lower()
            taken = _by_name.get(key) or _families.get(key)
            if (taken and not _replaces(metric, taken)) or key in _NOT_ALIASES:
                raise MetricNameError(f"{spelling!r} is the name of another metric; choose another")
            if not re.fullmatch(r"[^\s()@{}=,]+", spelling):
                raise MetricNameError(f"an alias has no spaces and none of ()@{{}}=, got {spelling!r}")
        if before := _registered.get(metric.name):
            for key in [key for key, known in _by_name.items() if known is before]:
                _by_name[key] = metric
        _registered[metric.name] = metric
        for spelling in spellings:
            _by_name[spelling.lower()] = metric
            _spellings.setdefault(spelling.lower(), spelling)


def _replaces(metric: Metric, known: Metric) -> bool:
    """Whether it is the same metric, or one's own with its kernel defined again."""
    if known.same_definition(metric):
        return True
    kernels = known.kernel, metric.kernel
    if known in CATALOGUE or known.name != metric.name or not all(isinstance(each, FunctionType) for each in kernels):
        return False
    return len({(each.__module__, each.__qualname__) for each in kernels}) == 1


def trec_eval_name(metric: Metric) -> str:
    """The metric's name in trec_eval's output; the canonical one where trec_eval has none."""
    alone, family = _TREC_EVAL.get(metric.name, (None, None))
    if metric.values:
        return str(metric)
    if metric.cutoff is None:
        return alone or str(metric)
    if family is None or (metric.after == "recall" and round(metric.cutoff, 2) != metric.cutoff):
        return str(metric)
    return f"{family}_{metric.cutoff:.2f}" if metric.after == "recall" else f"{family}_{metric.cutoff}"


def _parse(name: str | Metric) -> list[Metric]:
    if isinstance(name, Metric):
        name.check_complete()
        return [name]
    if not isinstance(name, str):
        raise MetricNameError(f"a metric must be a name or a Metric, got {name!r}")
    if _SEVERAL.search(re.sub(r"\([^)]*\)", "", name)):
        raise MetricNameError(f"{name!r} holds several metrics; give a list of their names, or the option -m for each")
    level = _LEVEL.fullmatch(name)
    form = _FORM.fullmatch(level["text"] if level else name)
    if form is None:
        raise MetricNameError(f"cannot read {name!r}; a metric is written Name(parameter=value, …)@cutoff")
    values = _read_arguments(form["arguments"] or "", name)
    if level:
        _add(values, "rel", float(level["rel"]), name)
    metric, family_values, cutoffs = _resolve(form["name"])
    for parameter, value in family_values.items():
        _add(values, parameter, value, name)
    if form["after"] is not None:
        cutoffs.append(form["after"])
        if len(cutoffs) > 1:
            raise MetricNameError(f"{name!r} has two cutoffs; give one")
    if not cutoffs and form["name"] in _BARE_FAMILIES:
        raise MetricNameError(f"{name!r} needs a cutoff; did you mean 'Success@10'?")
    if not cutoffs:
        metric = _WITHOUT_CUTOFF.get(metric.name, metric)
    if metric == NumRet and "rel" in values:
        metric = NumRelRet
    if metric == SetP and isinstance(values.get("relative"), bool) and values.pop("relative"):
        metric = SetRelP
    metric = metric.bind(values, text=name)
    metrics = [metric.at(_read_after(cutoff, metric), text=name) for cutoff in cutoffs] or [metric]
    for each in metrics:
        each.check_complete(text=name)
    return metrics


def _resolve(name: str) -> tuple[Metric, dict[str, float], list[str]]:
    """The metric of the part before ( or @, with the parameters and cutoffs that trec_eval's and ranx's names hold."""
    key = name.lower()
    if key in _by_name:
        return _by_name[key], {}, []
    if key in _NOT_ALIASES:
        raise MetricNameError(_NOT_ALIASES[key])
    if key in _families:
        metric = _families[key]
        needs, example = ("a recall level", "0.10") if metric.after == "recall" else ("a cutoff", "10")
        raise MetricNameError(f"{name!r} needs {needs}; did you mean '{name}_{example}'?")
    if parts := _FAMILY.fullmatch(name):
        family, written = parts["family"].lower(), parts["cutoffs"]
        if family in _families:
            return _families[family], {}, written.split(",")
        if family in _PARAMETER_FAMILIES and re.fullmatch(NUMBER, written):
            parameter = _PARAMETER_FAMILIES[family]
            is_fraction = family == "rbp" and "." not in written  # ranx: rbp.95
            return _by_name[family], {parameter: float(f"0.{written}" if is_fraction else written)}, []
    from difflib import get_close_matches  # 2 ms, for errors only

    if close := get_close_matches(key, [*_by_name, *_families], n=1):
        raise MetricNameError(f"unknown metric {name!r}; did you mean {_spellings[close[0]]!r}?")
    raise MetricNameError(f"unknown metric {name!r}; metric_names() lists those there are")


def _read_after(text: str, metric: Metric) -> Any:
    if metric.after == "recall" and re.fullmatch(NUMBER, text):
        return float(text)
    return int(text) if re.fullmatch("0*[1-9][0-9]{0,17}", text) else text  # refused later, and quoted as it stands


def _read_arguments(text: str, name: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    end = 0
    while text[end:].strip():
        argument = _ARGUMENT.match(text, end)
        if argument is None:
            raise MetricNameError(f"cannot read {text[end:].strip()!r} in {name!r}; parameters are written name=value")
        _add(values, argument["name"], _read_value(argument, name), name)
        end = argument.end()
    return values


def _read_value(argument: re.Match[str], name: str) -> Any:
    if number := argument["number"]:
        return int(number) if re.fullmatch("[-+]?[0-9]{1,15}", number) else float(number)
    if argument["table"] is not None:
        return _read_table(argument["table"], name)
    word = argument["word"]
    if word is None:
        return argument["double"] if argument["single"] is None else argument["single"]
    return _WORDS.get(word.lower(), word)


def _read_table(text: str, name: str) -> dict[float, float]:
    table: dict[float, float] = {}
    end = 0
    while text[end:].strip():
        entry = _TABLE_ENTRY.match(text, end)
        if entry is None:
            raise MetricNameError(f"cannot read {text[end:].strip()!r} in {name!r}; write {{1: 0.5, 2: 1}}")
        grade = float(entry["grade"])
        if grade in table:
            raise MetricNameError(f"the gain of {entry['grade']} is given twice in {name!r}")
        table[grade] = float(entry["gain"])
        end = entry.end()
    return table


def _add(values: dict[str, Any], parameter: str, value: Any, name: str) -> None:
    if parameter in values:
        raise MetricNameError(f"{parameter} is given twice in {name!r}")
    values[parameter] = value


for _metric in CATALOGUE:
    _alone, _family = _TREC_EVAL.get(_metric.name, (None, None))
    register_metric(_metric, aliases=((_alone,) if _alone else ()) + _OTHER_ALIASES.get(_metric.name, ()))
    if _family:
        _families[_family.lower()] = _metric
        _spellings.setdefault(_family.lower(), _family)
