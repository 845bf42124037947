"""Effectiveness metrics: the catalogue, names, and what a metric of one's own is made of."""

from metrics_core.metrics.binary import AP, GMAP, RR, Bpref, IPrec, IPrec11, P, R, R_cap, Rprec, Success, infAP
from metrics_core.metrics.graded import DCG, ERR, RBP, nDCG
from metrics_core.metrics.metric import Metric
from metrics_core.metrics.names import (
    metric_names,
    parse,
    parse_all,
    register_metric,
    registered_metrics,
    trec_eval_name,
)
from metrics_core.metrics.overlap import Compat
from metrics_core.metrics.parameters import REL, REQUIRED, Choice, Number, Parameter
from metrics_core.metrics.pooled import Judged, RBPResidual, Unj
from metrics_core.metrics.sets import NumQ, NumRel, NumRelRet, NumRet, SetAP, SetF, SetP, SetR, SetRelP

__all__ = [
    "AP",
    "DCG",
    "ERR",
    "GMAP",
    "RBP",
    "REL",
    "REQUIRED",
    "RR",
    "Bpref",
    "Choice",
    "Compat",
    "IPrec",
    "IPrec11",
    "Judged",
    "Metric",
    "NumQ",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "Number",
    "P",
    "Parameter",
    "R",
    "RBPResidual",
    "R_cap",
    "Rprec",
    "SetAP",
    "SetF",
    "SetP",
    "SetR",
    "SetRelP",
    "Success",
    "Unj",
    "infAP",
    "metric_names",
    "nDCG",
    "parse",
    "parse_all",
    "register_metric",
    "registered_metrics",
    "trec_eval_name",
]
