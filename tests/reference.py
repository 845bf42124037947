"""Slow twins: every metric from its textbook definition, with sets and slices, importing nothing of ours.

A ranking is a sequence of document ids, best first. The second place of a document takes a rank and is neither
relevant, non-relevant nor unjudged. None never matches: it takes a rank and is unjudged. Judgements map documents to
grades; a document is relevant if its grade is at least `rel`. What has no value (no relevant document, an empty
ranking) is 0.

The twins of Haystack's document evaluators take comparison values instead: equal by ==, NaN by identity, hashable or
not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from ctypes import c_double, c_float
from fractions import Fraction
from itertools import chain, groupby, permutations, product
from math import exp, fsum, isfinite, isnan, log, log2, prod
from typing import Any, TypeAlias

Ranking: TypeAlias = Sequence[Hashable]
Judgements: TypeAlias = Mapping[Any, float]
Scored: TypeAlias = Mapping[Any, float] | Sequence[tuple[Any, float]]

INFAP_EPSILON = 1e-5  # trec_eval.h
GMAP_FLOOR = 1e-5  # trec_eval.h, MIN_GEO_MEAN


def ranks(ranking: Ranking, cutoff: int | None = None) -> dict[Any, int]:
    """The documents of the first `cutoff` places and the rank of each, from 1; every None is one of its own."""
    places: dict[Any, int] = {}
    for place, document in enumerate(ranking[:cutoff], start=1):
        places.setdefault(object() if document is None else document, place)
    return places


def relevant(judgements: Judgements, rel: float) -> set[Any]:
    """The documents whose grade is at least `rel`."""
    return {document for document, grade in judgements.items() if document is not None and grade >= rel}


def judged(judgements: Judgements) -> set[Any]:
    """The documents whose grade is not negative: a negative grade says "in the pool, not judged"."""
    return relevant(judgements, 0)


def hit_ranks(ranking: Ranking, judgements: Judgements, rel: float, cutoff: int | None = None) -> list[int]:
    """The ranks of the relevant documents of the first `cutoff` places, ascending."""
    places = ranks(ranking, cutoff)
    return sorted(places[document] for document in relevant(judgements, rel) & places.keys())


def ratio(numerator: float, denominator: float) -> float:
    """The quotient, 0 where nothing is to be divided by."""
    return numerator / denominator if denominator else 0.0


def add_in_order(terms: Iterable[float]) -> float:
    """The sum as plain additions from the first term on: from Python 3.12 `sum` compensates for rounding."""
    total = 0.0
    for term in terms:
        total += term
    return total


def num_ret(ranking: Ranking, _judgements: Judgements) -> float:
    """Length of the ranking, n (trec_eval num_ret)."""
    return float(len(ranking))


def num_rel(_ranking: Ranking, judgements: Judgements, *, rel: float = 1) -> float:
    """How many documents are relevant, R (trec_eval num_rel)."""
    return float(len(relevant(judgements, rel)))


def num_rel_ret(ranking: Ranking, judgements: Judgements, *, rel: float = 1) -> float:
    """The relevant documents that were retrieved (trec_eval num_rel_ret)."""
    return float(len(relevant(judgements, rel) & set(ranking)))


def num_q(_ranking: Ranking, _judgements: Judgements) -> float:
    """1 for every query, so that the sum counts them (trec_eval num_q)."""
    return 1.0


def precision(ranking: Ranking, judgements: Judgements, *, rel: float = 1, cutoff: int | None = None) -> float:
    """P@k: hits in the first k places over k, also when fewer were retrieved; without a cutoff SetP, hits over n."""
    return ratio(len(relevant(judgements, rel) & set(ranking[:cutoff])), cutoff or len(ranking))


def recall(ranking: Ranking, judgements: Judgements, *, rel: float = 1, cutoff: int | None = None) -> float:
    """R@k: the share of the relevant documents in the first k places; without a cutoff SetR."""
    targets = relevant(judgements, rel)
    return ratio(len(targets & set(ranking[:cutoff])), len(targets))


def capped_recall(ranking: Ranking, judgements: Judgements, *, rel: float = 1, cutoff: int) -> float:
    """R_cap@k: hits in the first k places over min(R, k) (MTEB)."""
    targets = relevant(judgements, rel)
    return ratio(len(targets & set(ranking[:cutoff])), min(len(targets), cutoff))


def success(ranking: Ranking, judgements: Judgements, *, rel: float = 1, cutoff: int | None = None) -> float:
    """Success@k: 1 if a relevant document is in the first k places."""
    return float(not relevant(judgements, rel).isdisjoint(ranking[:cutoff]))


def set_f(
    ranking: Ranking, judgements: Judgements, *, rel: float = 1, beta: float = 1, x: float | None = None
) -> float:
    """SetF: (1 + b^2) P R / (b^2 P + R) of van Rijsbergen; with x trec_eval's set_F, (1 + x) P R / (x P + R)."""
    weight = beta**2 if x is None else x
    p, r = precision(ranking, judgements, rel=rel), recall(ranking, judgements, rel=rel)
    return ratio((1 + weight) * p * r, weight * p + r)


def set_ap(ranking: Ranking, judgements: Judgements, *, rel: float = 1) -> float:
    """SetAP: set precision times set recall (trec_eval set_map)."""
    return precision(ranking, judgements, rel=rel) * recall(ranking, judgements, rel=rel)


def set_relative_precision(ranking: Ranking, judgements: Judgements, *, rel: float = 1) -> float:
    """SetRelP: hits over the most there could be, min(n, R) (trec_eval set_relative_P)."""
    targets = relevant(judgements, rel)
    return ratio(len(targets & set(ranking)), min(len(ranking), len(targets)))


def reciprocal_rank(ranking: Ranking, judgements: Judgements, *, rel: float = 1, cutoff: int | None = None) -> float:
    """RR@k: 1 / rank of the first relevant document of the first k places (Kantor and Voorhees, TREC-5)."""
    hits = hit_ranks(ranking, judgements, rel, cutoff)
    return 1 / hits[0] if hits else 0.0


def average_precision(ranking: Ranking, judgements: Judgements, *, rel: float = 1, cutoff: int | None = None) -> float:
    """AP@k: the precisions at the ranks of the hits, in rank order, over all R relevant documents (trec_eval map)."""
    hits = hit_ranks(ranking, judgements, rel, cutoff)
    return ratio(add_in_order(n / place for n, place in enumerate(hits, start=1)), len(relevant(judgements, rel)))


def r_precision(ranking: Ranking, judgements: Judgements, *, rel: float = 1) -> float:
    """Rprec: the hits in the first R places over R (trec_eval Rprec)."""
    targets = relevant(judgements, rel)
    return ratio(len(targets & set(ranking[: len(targets)])), len(targets))


def _highest_precision(ranking: Ranking, targets: set[Any], level: Fraction) -> float:
    cuts = range(1, len(ranking) + 1)
    hits = {k: len(targets & set(ranking[:k])) for k in cuts}
    return max((hits[k] / k for k in cuts if targets and Fraction(hits[k], len(targets)) >= level), default=0.0)


def interpolated_precision(ranking: Ranking, judgements: Judgements, *, rel: float = 1, recall: float) -> float:
    """IPrec@r: the highest precision of any cut whose recall is at least r (Manning et al. 2008, section 8.4).

    r is the decimal number it prints as: 0.1 is 1/10, not the slightly larger binary fraction.
    """
    return _highest_precision(ranking, relevant(judgements, rel), Fraction(str(recall)))


def interpolated_precision_11(ranking: Ranking, judgements: Judgements, *, rel: float = 1) -> float:
    """IPrec11: the mean of IPrec at 0, 0.1, …, 1 (trec_eval 11pt_avg, without its rounding)."""
    targets = relevant(judgements, rel)
    return fsum(_highest_precision(ranking, targets, Fraction(tenths, 10)) for tenths in range(11)) / 11


def bpref(ranking: Ranking, judgements: Judgements, *, rel: float = 1) -> float:
    """Bpref: how often judged non-relevant documents stand below the relevant ones (Buckley and Voorhees 2004)."""
    targets = relevant(judgements, rel)
    others = judged(judgements) - targets
    places = ranks(ranking)

    def preference(place: int) -> float:
        above = sum(places[document] < place for document in others & places.keys())
        return 1 - min(above, len(targets)) / min(len(others), len(targets)) if above else 1.0

    return ratio(add_in_order(map(preference, hit_ranks(ranking, judgements, rel))), len(targets))


def inferred_ap(ranking: Ranking, judgements: Judgements, *, rel: float = 1) -> float:
    """infAP: expected precision at the hits, estimated from the judged part of the pool (Yilmaz and Aslam 2006)."""
    places = ranks(ranking)
    targets = relevant(judgements, rel)
    others = judged(judgements) - targets
    pool = {document for document in judgements if document is not None}

    def expected_precision(place: int) -> float:
        above = {document for document, other in places.items() if other < place}
        n_relevant, n_others = len(above & targets), len(above & others)
        share = (n_relevant + INFAP_EPSILON) / (n_relevant + n_others + 2 * INFAP_EPSILON)
        return 1 / place + len(above & pool) / place * share

    return ratio(add_in_order(map(expected_precision, hit_ranks(ranking, judgements, rel))), len(targets))


def judged_share(ranking: Ranking, judgements: Judgements, *, cutoff: int | None = None) -> float:
    """Judged@k: judged documents in the first k places over min(k, n)."""
    return ratio(len(judged(judgements) & set(ranking[:cutoff])), len(ranking[:cutoff]))


def _unjudged_ranks(ranking: Ranking, judgements: Judgements, cutoff: int | None) -> list[int]:
    known = judged(judgements)
    return [place for document, place in ranks(ranking, cutoff).items() if document not in known]


def unjudged_share(ranking: Ranking, judgements: Judgements, *, cutoff: int | None = None) -> float:
    """Unj@k: unjudged documents in the first k places over k; without a cutoff over n."""
    return ratio(len(_unjudged_ranks(ranking, judgements, cutoff)), cutoff or len(ranking))


def _gains(
    judgements: Judgements, rel: float | None, dcg: str, gains: Mapping[float, float] | None
) -> dict[Any, float]:
    def gain(grade: float) -> float:
        gain_ = max((gains or {}).get(grade, grade), 0)
        return {"log2": gain_, "exp-log2": 2**gain_ - 1}[dcg]

    return {
        document: gain(grade)
        for document, grade in judgements.items()
        if document is not None and (rel is None or grade >= rel)
    }


def discounted_cumulative_gain(
    ranking: Ranking,
    judgements: Judgements,
    *,
    rel: float | None = None,
    cutoff: int | None = None,
    dcg: str = "log2",
    gains: Mapping[float, float] | None = None,
) -> float:
    """DCG@k: gain / log2(rank + 1) of the first k places, added in rank order (Järvelin and Kekäläinen 2002).

    The gain is the grade, or what `gains` gives for it, never below 0; with dcg="exp-log2" 2^gain - 1 (Burges 2005).
    """
    gain = _gains(judgements, rel, dcg, gains)
    return add_in_order(gain.get(document, 0) / log2(place + 1) for document, place in ranks(ranking, cutoff).items())


def normalized_discounted_cumulative_gain(
    ranking: Ranking,
    judgements: Judgements,
    *,
    rel: float | None = None,
    cutoff: int | None = None,
    dcg: str = "log2",
    gains: Mapping[float, float] | None = None,
) -> float:
    """nDCG@k: DCG over that of all judged documents in descending order of gain, both cut at k, not at n."""
    gain = _gains(judgements, rel, dcg, gains)
    best = sorted(gain, key=lambda document: gain[document], reverse=True)
    achieved, ideal = (
        discounted_cumulative_gain(documents, judgements, rel=rel, cutoff=cutoff, dcg=dcg, gains=gains)
        for documents in (ranking, best)
    )
    return ratio(achieved, ideal)


def expected_reciprocal_rank(
    ranking: Ranking, judgements: Judgements, *, max_rel: float, cutoff: int | None = None
) -> float:
    """ERR@k: 1 / rank at which a user stops who is content with grade g with probability (2^g - 1) / 2^max_rel.

    Source: Chapelle et al. 2009; gdeval.
    """
    places = ranks(ranking, cutoff)
    stops = {
        places[document]: (2 ** judgements[document] - 1) / 2**max_rel for document in judged(judgements) & {*places}
    }
    return add_in_order(
        stop / place * prod(1 - earlier for other, earlier in stops.items() if other < place)
        for place, stop in sorted(stops.items())
    )


def rank_biased_precision(
    ranking: Ranking,
    judgements: Judgements,
    *,
    p: float,
    rel: float = 1,
    max_rel: float | None = None,
    cutoff: int | None = None,
) -> float:
    """RBP@k: (1 - p) sum of gain p^(rank - 1); the gain is 1 from grade `rel` on, or grade / max_rel.

    Source: Moffat and Zobel 2008.
    """
    targets = relevant(judgements, rel)
    gain = {
        d: float(d in targets) if max_rel is None else judgements[d] / max_rel for d in judged(judgements) | targets
    }
    places = ranks(ranking, cutoff)
    return (1 - p) * add_in_order(gain.get(document, 0) * p ** (place - 1) for document, place in places.items())


def rbp_residual(ranking: Ranking, judgements: Judgements, *, p: float, cutoff: int | None = None) -> float:
    """RBPResidual: what RBP would gain if unjudged documents, and all after the last, were relevant.

    Source: Moffat and Zobel 2008.
    """
    unjudged = add_in_order(p ** (place - 1) for place in _unjudged_ranks(ranking, judgements, cutoff))
    return float(p ** len(ranking[:cutoff])) + (1 - p) * unjudged


def compatibility(ranking: Ranking, judgements: Judgements, *, p: float = 0.95, normalize: bool = True) -> float:
    """Compat: rank-biased overlap with the ideal ranking nearest to this one (Clarke et al. 2021).

    The ideal holds the documents of positive grade, descending; equal grades in the order of the ranking, those not
    retrieved last.
    """
    places = ranks(ranking)
    positive = [document for document, grade in judgements.items() if document is not None and grade > 0]
    ideal = sorted(positive, key=lambda document: (-judgements[document], places.get(document, len(ranking) + 1)))
    depths = range(1, max(len(ranking), len(ideal)) + 1)

    def overlap(documents: Ranking) -> float:
        shared = {depth: len(set(documents[:depth]) & set(ideal[:depth])) for depth in depths}
        return ratio(fsum(p ** (d - 1) * shared[d] / d for d in depths), fsum(p ** (d - 1) for d in depths))

    return ratio(overlap(ranking), overlap(ideal)) if normalize else overlap(ranking)


REFERENCE: dict[str, Callable[..., float]] = {
    "P": precision,
    "SetP": precision,
    "SetR": recall,
    "SetF": set_f,
    "SetAP": set_ap,
    "SetRelP": set_relative_precision,
    "R": recall,
    "R_cap": capped_recall,
    "Success": success,
    "RR": reciprocal_rank,
    "AP": average_precision,
    "GMAP": average_precision,
    "nDCG": normalized_discounted_cumulative_gain,
    "DCG": discounted_cumulative_gain,
    "Rprec": r_precision,
    "IPrec": interpolated_precision,
    "IPrec11": interpolated_precision_11,
    "Bpref": bpref,
    "infAP": inferred_ap,
    "ERR": expected_reciprocal_rank,
    "RBP": rank_biased_precision,
    "RBPResidual": rbp_residual,
    "Judged": judged_share,
    "Unj": unjudged_share,
    "Compat": compatibility,
    "NumRet": num_ret,
    "NumRel": num_rel,
    "NumRelRet": num_rel_ret,
    "NumQ": num_q,
}

AGGREGATE = {"GMAP": "geometric mean"} | dict.fromkeys(("NumRet", "NumRel", "NumRelRet", "NumQ"), "sum")
"""How the values of the queries become one; a mean for all others."""


def aggregate(values: Iterable[float], how: str = "mean") -> float:
    """One number from the values of the queries, NaN left out: "mean", "sum" or "geometric mean" (trec_eval gm_map).

    The means of no value are NaN, their sum is 0.
    """
    scored = [value for value in values if not isnan(value)]
    if how == "sum":
        return fsum(scored)
    if not scored:
        return float("nan")
    if how == "geometric mean":
        return exp(fsum(log(max(value, GMAP_FLOOR)) for value in scored) / len(scored))
    return {"mean": fsum(scored) / len(scored)}[how]


def id_bytes(document: Any) -> bytes:
    """An id as the bytes that order ties: text as UTF-8, a number as it stands in a file."""
    return document if isinstance(document, bytes) else str(document).encode("utf-8", "surrogatepass")


def tie_groups(scored: Scored, score_dtype: str = "float64") -> list[list[Any]]:
    """The documents of each score, in input order; the highest score first."""
    number = {"float64": c_double, "float32": c_float}[score_dtype]
    pairs = scored.items() if isinstance(scored, Mapping) else scored
    keyed = sorted(((number(score).value, document) for document, score in pairs), key=lambda pair: -pair[0])
    return [[document for _, document in group] for _, group in groupby(keyed, key=lambda pair: pair[0])]


def rank(scored: Scored, *, order: str = "score", ties: str = "docid_desc", score_dtype: str = "float64") -> list[Any]:
    """The ranking of scored documents under the policies `order`, `ties` and `score_dtype`.

    Args:
        scored: document -> score, or (document, score) pairs where a document may come twice.
        order: "score", descending; or "input".
        ties: "docid_desc" (ids descending as bytes), "input", or "error".
        score_dtype: "float64", or "float32": scores are rounded before they are compared.

    Raises:
        ValueError: equal scores under ties="error".
    """
    if order == "input":
        return list(scored) if isinstance(scored, Mapping) else [document for document, _ in scored]
    groups = tie_groups(scored, score_dtype)
    if ties == "error" and any(len(group) > 1 for group in groups):
        raise ValueError("equal scores")
    if ties == "docid_desc":
        groups = [sorted(group, key=id_bytes, reverse=True) for group in groups]
    return [document for group in groups for document in group]


def without_repeats(ranking: Ranking) -> list[Any]:
    """The ranking under duplicates="first_compact": later places of a document vanish, None is no document."""
    return [ranking[place - 1] for place in ranks(ranking).values()]


def expected_over_ties(
    metric: Callable[..., float],
    scored: Scored,
    judgements: Judgements,
    *,
    score_dtype: str = "float64",
    **params: Any,
) -> float:
    """The mean of a metric over all orders of documents with equal scores, by trying them all."""
    orders = product(*(permutations(group) for group in tie_groups(scored, score_dtype)))
    values = [metric(list(chain.from_iterable(order)), judgements, **params) for order in orders]
    return fsum(values) / len(values)


def haystack_keys(documents: Iterable[Any], field: str = "content") -> list[Any]:
    """The comparison values of documents: of "content", "id", or a path "meta.a.b" into nested dicts, else None.

    Raises:
        ValueError: any other field.
    """
    if field in ("content", "id"):
        return [getattr(document, field) for document in documents]
    first, *path = field.split(".")
    if first != "meta" or not path:
        raise ValueError(field)

    def descend(value: Any, keys: Sequence[str]) -> Any:
        if not keys:
            return value
        return descend(value[keys[0]], keys[1:]) if isinstance(value, dict) and keys[0] in value else None

    return [descend(document.meta, path) for document in documents]


def distinct(values: Iterable[Any], *ignored: Any) -> list[Any]:
    """The first of each value, in order; without those that are None or `ignored`."""
    kept: list[Any] = []
    for value in values:
        if value is not None and value not in ignored and value not in kept:
            kept.append(value)
    return kept


def document_recall(ground_truth: Sequence[Any], retrieved: Sequence[Any], mode: str = "single_hit") -> float:
    """DocumentRecallEvaluator of one question: "single_hit" or "multi_hit"; None and "" are ignored."""
    truths = distinct(ground_truth, "")
    found = [value for value in distinct(retrieved, "") if value in truths]
    return {"single_hit": float(bool(found)), "multi_hit": ratio(len(found), len(truths))}[mode]


def document_reciprocal_rank(ground_truth: Sequence[Any], retrieved: Sequence[Any]) -> float:
    """DocumentMRREvaluator of one question."""
    truths = distinct(ground_truth)
    return next((1 / place for place, value in enumerate(retrieved, start=1) if value in truths), 0.0)


def _first_rank(value: Any, retrieved: Sequence[Any]) -> int | None:
    return next((place for place, other in enumerate(retrieved, start=1) if value is other or value == other), None)


def document_average_precision(ground_truth: Sequence[Any], retrieved: Sequence[Any]) -> float:
    """DocumentMAPEvaluator of one question."""
    truths = distinct(ground_truth)
    credited = sorted(place for truth in truths if (place := _first_rank(truth, retrieved)))
    return ratio(add_in_order(n / place for n, place in enumerate(credited, start=1)), len(truths))


def document_ndcg(ground_truth: Sequence[Any], scores: Sequence[float | None], retrieved: Sequence[Any]) -> float:
    """DocumentNDCGEvaluator of one question: `scores` are those of the ground truth, all or none of them None.

    Raises:
        ValueError: some documents with a score and some without; a score that is NaN or infinite.
    """
    if None in scores and set(scores) != {None}:
        raise ValueError("some documents have a score and some have none")
    gains = [1.0 if score is None else score for score in scores]
    if not all(map(isfinite, gains)):
        raise ValueError("a score is NaN or infinite")
    # A negative gain counts as 0, as in trec_eval. Of the scores of one value the largest counts.
    best: dict[int, float] = {}
    truths = distinct(ground_truth)
    for value, gain in zip(ground_truth, gains, strict=True):
        if value is not None:
            which = truths.index(value)
            best[which] = max(best.get(which, 0), gain)
    credited = sorted((place, best[i]) for i, truth in enumerate(truths) if (place := _first_rank(truth, retrieved)))
    ideal = enumerate(sorted(best.values(), reverse=True), start=1)
    achieved, achievable = (
        add_in_order(gain / log2(place + 1) for place, gain in pairs) for pairs in (credited, ideal)
    )
    return ratio(achieved, achievable)
