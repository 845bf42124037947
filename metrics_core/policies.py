"""Policies: every choice that changes a score without changing a metric's definition."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from math import inf, isnan
from typing import Any, Literal, get_args

from metrics_core.errors import PolicyError

Profile = Literal["trec_eval", "haystack", "beir", "ranx"]
Order = Literal["score", "input"]
Ties = Literal["docid_desc", "input", "expected", "error"]
ScoreDtype = Literal["float64", "float32"]
Undefined = Literal["zero", "skip", "error"]
UnjudgedQuery = Literal["ignore", "error"]
EmptyKey = Literal["match", "ignore"]
NullList = Literal["error", "empty"]
Duplicates = Literal["error", "first_keep_rank", "first_compact"]
DuplicateJudgements = Literal["error", "max", "last"]
NanScore = Literal["error"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "order": get_args(Order),
    "ties": get_args(Ties),
    "score_dtype": get_args(ScoreDtype),
    "missing": get_args(Undefined),
    "unjudged_query": get_args(UnjudgedQuery),
    "no_relevant": get_args(Undefined),
    "empty_key": get_args(EmptyKey),
    "null_list": get_args(NullList),
    "duplicates": get_args(Duplicates),
    "duplicate_judgements": get_args(DuplicateJudgements),
    "nan": get_args(NanScore),
}

_TREC_EVAL: dict[str, Any] = {name: choices[0] for name, choices in _CHOICES.items()} | {
    "default_rel": 1.0,
    "drop_identical_ids": False,
}

PROFILES: dict[str, dict[str, Any]] = {
    "trec_eval": _TREC_EVAL,
    "haystack": _TREC_EVAL
    | {
        "order": "input",
        "ties": "input",
        "duplicates": "first_keep_rank",
        "duplicate_judgements": "max",
        "default_rel": -inf,
    },
    "beir": _TREC_EVAL | {"score_dtype": "float32", "missing": "skip", "drop_identical_ids": True},
    "ranx": _TREC_EVAL | {"ties": "input", "missing": "error"},
}

_PROFILE: Any = None  # the value of a field that was not given


@dataclass(frozen=True, slots=True, repr=False)
class Policies:
    """How an evaluation treats what the metrics' definitions leave open; what is not given comes from the profile.

    Args:
        profile: "trec_eval" (qrels and runs), "haystack" (document lists), "beir" or "ranx".
        order: "score" ranks by descending score; "input" takes the order of the ranking as given.
        ties: documents with equal scores are ordered by id, descending, as bytes ("docid_desc"), stay in input order
            ("input"), are averaged over all their orders ("expected"), or are refused ("error").
        score_dtype: scores are compared in "float64", or rounded to "float32" first (which creates ties).
        missing: a judged query that the run lacks is scored as an empty ranking ("zero"), is NaN, left out of the
            means and counted ("skip"), or is refused ("error").
        unjudged_query: a query of the run without judgements is left out ("ignore") or refused ("error").
        no_relevant: a query without any relevant document scores 0 ("zero"), is NaN, left out of that metric's mean
            and counted ("skip"), or is refused ("error"); decided by each metric's own threshold.
        empty_key: the comparison value `""` matches `""` ("match") or, like None, nothing ("ignore").
        null_list: a null in place of a list in a table's column is refused ("error") or an empty list ("empty"); a null
            in a list is a document that matches nothing.
        duplicates: a document twice in one ranking is refused ("error"); or its best rank counts and the repeat takes
            a place, neither relevant, non-relevant nor unjudged ("first_keep_rank"), or vanishes ("first_compact").
        duplicate_judgements: two judgements of one document are refused ("error"), or the larger ("max") or the later
            ("last") counts.
        nan: a NaN or infinite score or grade is refused ("error", the only value).
        default_rel: the lowest grade that is relevant, for metrics that name none; minus infinity: every judged one.
        drop_identical_ids: leave out retrieved documents whose id is the query's own.

    Raises:
        PolicyError: a profile or a value that does not exist; the message lists those that do.

    Source: the profiles reproduce trec_eval with -c, Haystack's document evaluators, BEIR's EvaluateRetrieval and
    ranx's evaluate.
    """

    profile: Profile = "trec_eval"
    _: KW_ONLY
    order: Order = _PROFILE
    ties: Ties = _PROFILE
    score_dtype: ScoreDtype = _PROFILE
    missing: Undefined = _PROFILE
    unjudged_query: UnjudgedQuery = _PROFILE
    no_relevant: Undefined = _PROFILE
    empty_key: EmptyKey = _PROFILE
    null_list: NullList = _PROFILE
    duplicates: Duplicates = _PROFILE
    duplicate_judgements: DuplicateJudgements = _PROFILE
    nan: NanScore = _PROFILE
    default_rel: float = _PROFILE
    drop_identical_ids: bool = _PROFILE
    _given: frozenset[str] | None = field(default=None, compare=False)  # explicit choices, which replace() hands on

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise PolicyError(f"profile must be one of {_listed(tuple(PROFILES))}, got {self.profile!r}")
        given = frozenset(name for name in PROFILES[self.profile] if getattr(self, name) is not _PROFILE)
        for name, default in PROFILES[self.profile].items():
            if getattr(self, name) is _PROFILE:
                object.__setattr__(self, name, default)
            if name in _CHOICES and getattr(self, name) not in _CHOICES[name]:
                raise PolicyError(f"{name} must be one of {_listed(_CHOICES[name])}, got {getattr(self, name)!r}")
        if self._given is not None:
            given = self._given | self.own().keys()
        object.__setattr__(self, "_given", given)
        if isinstance(self.default_rel, bool) or not isinstance(self.default_rel, (int, float)):
            raise PolicyError(f"default_rel must be a number, got {self.default_rel!r}")
        if isnan(self.default_rel):
            raise PolicyError("default_rel must be a number, got nan")
        if not isinstance(self.drop_identical_ids, bool):
            raise PolicyError(f"drop_identical_ids must be True or False, got {self.drop_identical_ids!r}")

    @classmethod
    def resolve(cls, policies: Policies | str | None, *, default: Profile) -> Policies:
        """The policies that `policies=` names: a value as it is, a profile by its name, None the default profile."""
        if policies is None:
            return cls(default)
        if isinstance(policies, str):
            return cls(policies)  # type: ignore[arg-type]  # an unknown name is refused above
        if isinstance(policies, Policies):
            return policies
        raise PolicyError(f"policies must be Policies or the name of a profile, got {policies!r}")

    def for_rankings_without_scores(self) -> Policies:
        """These policies for lists in rank order: `order` is "input".

        Raises:
            PolicyError: a policy about scores was given explicitly, which could only be ignored.
        """
        self.refuse("rankings without scores", "ties", "score_dtype")
        if self.order == "input":
            return self
        self.refuse("rankings without scores", "order")
        return replace(self, order="input")

    def refuse(self, what: str, *names: str) -> None:
        """Refuses policies that cannot apply to what is at hand, if they were given; a profile's own are ignored.

        Raises:
            PolicyError: one of them was given.
        """
        assert self._given is not None
        for name in names:
            if name in self._given:
                raise PolicyError(f"{name}={getattr(self, name)!r} cannot apply to {what}; leave it out")

    def to_dict(self) -> dict[str, Any]:
        """Profile and every policy by name, as plain values."""
        return {name: value for name, value in asdict(self).items() if name != "_given"}

    def __str__(self) -> str:
        return self.profile + "".join(f", {name}={value}" for name, value in self.own().items())

    def __repr__(self) -> str:
        own = "".join(f", {name}={value!r}" for name, value in self.own().items())
        return f"Policies({self.profile!r}{own})"

    def own(self) -> dict[str, Any]:
        """The policies that differ from the profile's, by name."""
        return {
            name: value for name, default in PROFILES[self.profile].items() if (value := getattr(self, name)) != default
        }


def _listed(choices: tuple[str, ...]) -> str:
    return ", ".join(repr(choice) for choice in choices)
