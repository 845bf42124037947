"""All metrics that come with the package, in the order in which they are listed."""

from __future__ import annotations

from metrics_core.metrics.binary import AP, GMAP, RR, Bpref, IPrec, IPrec11, P, R, R_cap, Rprec, Success, infAP
from metrics_core.metrics.graded import DCG, ERR, RBP, nDCG
from metrics_core.metrics.overlap import Compat
from metrics_core.metrics.pooled import Judged, RBPResidual, Unj
from metrics_core.metrics.sets import NumQ, NumRel, NumRelRet, NumRet, SetAP, SetF, SetP, SetR, SetRelP

CATALOGUE = (
    *(nDCG, DCG, AP, GMAP, RR, Success, P, R, R_cap, Rprec, IPrec, IPrec11, ERR, RBP, Compat),
    *(Bpref, infAP, Judged, Unj, RBPResidual),
    *(SetP, SetR, SetF, SetAP, SetRelP, NumQ, NumRet, NumRel, NumRelRet),
)
