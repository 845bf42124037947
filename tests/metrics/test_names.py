"""What parses to what, and what is refused with which words."""

import contextlib
import re

import pytest
from hypothesis import given, strategies as st

from metrics_core.errors import MetricNameError
from metrics_core.metrics import (
    AP,
    ERR,
    RBP,
    RR,
    Bpref,
    IPrec,
    P,
    R,
    SetF,
    SetP,
    SetR,
    SetRelP,
    Success,
    metric_names,
    nDCG,
    parse,
    parse_all,
    registered_metrics,
    trec_eval_name,
)

SAME = {
    "nDCG@10": ["ndcg@10", "NDCG@10", "ndcg_cut.10", "ndcg_cut_10", "nDCG()@10", "nDCG(dcg='log2')@10"],
    "nDCG(dcg='exp-log2')@10": ['nDCG(dcg="exp-log2")@10', "nDCG(dcg=exp-log2)@10"],
    "nDCG(gains={0: 0, 1: 0.5})": ["nDCG(gains={1:.5,0:0})"],
    "nDCG": ["ndcg"],
    "RR": ["mrr", "MRR", "recip_rank", "rr"],
    "RR@10": ["mrr@10"],
    "AP": ["map", "MAP", "AP(rel=None)"],
    "AP@100": ["map_cut.100", "map_cut_100", "map@100"],
    "AP(rel=2)@100": ["map@100-l2", "AP(rel=2.0)@100"],
    "AP(rel=2)": ["map-l2"],
    "AP(rel=-1)": ["map(rel=-1)"],
    "GMAP": ["gm_map"],
    "P@5": ["p@5", "P_5", "P.5", "precision@5", "Precision@5"],
    "R@1000": ["recall_1000", "recall@1000", "Recall@1000", "r@1000"],
    "SetP": ["set_P", "P", "precision", "SetP(relative=False)"],
    "SetR": ["set_recall", "R", "recall"],
    "SetR(rel=2)": ["R(rel=2)"],
    "SetF": ["set_F", "f1"],
    "SetF(x=2)": ["set_F.2", "set_F.2.0"],
    "SetAP": ["set_map"],
    "SetRelP": ["set_relative_P", "SetP(relative=True)"],
    "Success@10": ["hit_rate@10", "HitRate@10", "success_10", "success.10"],
    "Rprec": ["rprec", "r-precision", "RPrec"],
    "Bpref": ["bpref", "BPref"],
    "infAP": ["infap"],
    "IPrec@0.1": ["IPrec@0.10", "iprec_at_recall_0.10", "iprec_at_recall.0.1", "iprec_at_recall_.10"],
    "IPrec11": ["11pt_avg"],
    "RBP(p=0.95)": ["rbp.95", "RBP(p=.95)"],
    "Unj@5": ["unj_5"],
    "NumQ": ["num_q"],
    "NumRet": ["num_ret"],
    "NumRel": ["num_rel"],
    "NumRelRet": ["num_rel_ret"],
    "NumRelRet(rel=1)": ["NumRet(rel=1)"],
}


@pytest.mark.parametrize(
    ("canonical", "spelling"), [(canonical, spelling) for canonical, many in SAME.items() for spelling in many]
)
def test_spellings(canonical, spelling):
    assert str(parse(spelling)) == canonical
    assert parse(spelling) == parse(canonical)
    assert parse(f"  {spelling} ") == parse(canonical)


REFUSED = {
    "ndgc": "unknown metric 'ndgc'; did you mean 'nDCG'?",
    "precison@5": "unknown metric 'precison'; did you mean 'precision'?",
    "foo": "unknown metric 'foo'; metric_names() lists those there are",
    "": "cannot read ''; a metric is written Name(parameter=value, …)@cutoff",
    "nDCG@10, AP": "'nDCG@10, AP' holds several metrics; give a list of their names, or the option -m for each",
    "AP(rel=1),RR": "'AP(rel=1),RR' holds several metrics; give a list of their names, or the option -m for each",
    "AP(rel=1": "cannot read 'AP(rel=1'; a metric is written Name(parameter=value, …)@cutoff",
    "nDCG@0": "cutoff in 'nDCG@0' must be a positive integer, got '0'",
    "nDCG@-1": "cutoff in 'nDCG@-1' must be a positive integer, got '-1'",
    "nDCG@1.5": "cutoff in 'nDCG@1.5' must be a positive integer, got '1.5'",
    "nDCG@1_0": "cutoff in 'nDCG@1_0' must be a positive integer, got '1_0'",
    "nDCG@": "cutoff in 'nDCG@' must be a positive integer, got ''",
    "P@True": "cutoff in 'P@True' must be a positive integer, got 'True'",
    "P@1000000000000000000": "cutoff in 'P@1000000000000000000' must be a positive integer, got '1000000000000000000'",
    "P_0": "cutoff in 'P_0' must be a positive integer, got '0'",
    "P_5,": "cutoff in 'P_5,' must be a positive integer, got ''",
    "IPrec@2": "recall level in 'IPrec@2' must be a number from 0 to 1, got 2.0",
    "IPrec@x": "recall level in 'IPrec@x' must be a number from 0 to 1, got 'x'",
    "Bpref@5": "Bpref takes no cutoff, got 'Bpref@5'",
    "ndcg_cut_10@5": "'ndcg_cut_10@5' has two cutoffs; give one",
    "P_5,10": "'P_5,10' names 2 metrics; give one, or use parse_all",
    "AP(rle=2)": "unknown parameter 'rle' in 'AP(rle=2)'; did you mean 'rel'?",
    "AP(depth=2)": "unknown parameter 'depth' in 'AP(depth=2)'; AP takes rel",
    "NumQ(rel=1)": "unknown parameter 'rel' in 'NumQ(rel=1)'; NumQ takes no parameters",
    "AP(rel=1,rel=2)": "rel is given twice in 'AP(rel=1,rel=2)'",
    "map@100(rel=1)": "cannot read 'map@100(rel=1)'; a metric is written Name(parameter=value, …)@cutoff",
    "AP(rel=1 2)": "cannot read 'rel=1 2' in 'AP(rel=1 2)'; parameters are written name=value",
    "AP(rel=inf)": "rel in 'AP(rel=inf)' must be a number, got 'inf'",
    "AP(rel=True)": "rel in 'AP(rel=True)' must be a number, got True",
    "RBP(p=2)": "p in 'RBP(p=2)' must be a number between 0 and 1, got 2",
    "SetF(beta=0)": "beta in 'SetF(beta=0)' must be a number between 0 and 1e+150, got 0",
    "SetF(beta=1e200)": "beta in 'SetF(beta=1e200)' must be a number between 0 and 1e+150, got 1e+200",
    "SetF(beta=2, x=2)": "SetF takes beta or x, not both, in 'SetF(beta=2, x=2)'",
    "Compat(normalize=1)": "normalize in 'Compat(normalize=1)' must be True or False, got 1",
    "nDCG(dcg=x)": "dcg in 'nDCG(dcg=x)' must be 'log2' or 'exp-log2', got 'x'",
    "nDCG(gains={1})": "cannot read '1' in 'nDCG(gains={1})'; write {1: 0.5, 2: 1}",
    "nDCG(gains={1: 1e301})": "gains in 'nDCG(gains={1: 1e301})' must map grades to gains of at most 1e+300, whose "
    "sums do not overflow, got {1.0: 1e+301}",
    "nDCG(gains=3)": "gains in 'nDCG(gains=3)' must map grades to gains, as in {1: 0.5, 2: 1}, got 3",
    "ndcg_cut": "'ndcg_cut' needs a cutoff; did you mean 'ndcg_cut_10'?",
    "map_cut": "'map_cut' needs a cutoff; did you mean 'map_cut_10'?",
    "success": "'success' needs a cutoff; did you mean 'Success@10'?",
    "iprec_at_recall": "'iprec_at_recall' needs a recall level; did you mean 'iprec_at_recall_0.10'?",
    "ERR@20": "'ERR@20' needs max_rel (the highest grade of the scale); did you mean 'ERR(max_rel=4)@20'?",
    "RBP": "'RBP' needs p (persistence); did you mean 'RBP(p=0.8)'?",
    "hits@10": "'hits' is a count in ranx; use 'Success@10' (whether there is a hit) or 'NumRelRet' (how many)",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_refused(text, message):
    with pytest.raises(MetricNameError) as raised:
        parse(text)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: nDCG @ 0, "cutoff in 'nDCG@0' must be a positive integer, got 0"),
        (lambda: nDCG @ True, "cutoff in 'nDCG@True' must be a positive integer, got True"),
        (lambda: nDCG @ 1.0, "cutoff in 'nDCG@1.0' must be a positive integer, got 1.0"),
        (lambda: IPrec @ True, "recall level in 'IPrec@True' must be a number from 0 to 1, got True"),
        (lambda: AP(rle=2), "unknown parameter 'rle' in 'AP(rle=2)'; did you mean 'rel'?"),
        (lambda: AP(rel=float("nan")), "rel in 'AP(rel=nan)' must be a number, got nan"),
        (lambda: Bpref @ 5, "Bpref takes no cutoff, got 'Bpref@5'"),
        (lambda: RBP(rel=1)(max_rel=2), "RBP takes rel or max_rel, not both, in 'RBP(max_rel=2)'"),
        (lambda: parse(P), "'P' needs a cutoff; did you mean 'P@10'?"),
        (lambda: parse(3), "a metric must be a name or a Metric, got 3"),
    ],
)
def test_refused_as_objects(build, message):
    with pytest.raises(MetricNameError) as raised:
        build()
    assert str(raised.value) == message


def test_objects_and_names_are_equal():
    assert nDCG(dcg="exp-log2") @ 10 == parse("nDCG(dcg='exp-log2')@10")
    assert hash(ERR(max_rel=4) @ 20) == hash(parse("ERR(max_rel=4)@20"))
    assert AP(rel=2)(rel=None) == AP
    assert (AP @ 5) @ 10 == AP @ 10
    assert nDCG(gains={2: 1, 1: 0.5}) == nDCG(gains={1.0: 0.5, 2: 1})
    assert IPrec @ 1 == IPrec @ 1.0
    assert AP(rel=1) != AP
    assert AP != "AP"


def test_parse_all_expands_and_keeps_the_first_of_equals():
    assert parse_all(["P_5,10", "P@5", nDCG @ 10, "ndcg_cut.10", "map"]) == [P @ 5, P @ 10, nDCG @ 10, AP]
    assert parse_all("success.1,5") == [Success @ 1, Success @ 5]
    assert parse_all(RR) == [RR]
    assert parse_all(["iprec_at_recall.0,.1,0.10"]) == [IPrec @ 0, IPrec @ 0.1]


def test_every_name_parses_but_for_what_it_needs():
    assert len(metric_names()) == len(set(map(str.lower, metric_names()))) >= 29
    for metric in registered_metrics():
        try:
            metric.check_complete()
        except MetricNameError as error:
            suggestion = re.findall("'([^']*)'", str(error))[-1]
            assert parse(suggestion).name == metric.name
        else:
            assert parse(metric.name.upper()) == metric


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("nDCG@10", "ndcg_cut_10"),
        ("nDCG", "ndcg"),
        ("AP", "map"),
        ("AP@5", "map_cut_5"),
        ("R@1000", "recall_1000"),
        ("RR", "recip_rank"),
        ("RR@10", "RR@10"),
        ("IPrec@0.1", "iprec_at_recall_0.10"),
        ("IPrec@0.125", "IPrec@0.125"),
        ("IPrec11", "11pt_avg"),
        ("SetF", "set_F"),
        ("AP(rel=2)", "AP(rel=2)"),
        ("Judged@10", "Judged@10"),
    ],
)
def test_trec_eval_names(name, theirs):
    assert trec_eval_name(parse(name)) == theirs
    assert parse(trec_eval_name(parse(name))) == parse(name)


grades = st.floats(-1e6, 1e6) | st.integers(-5, 5)
fractions = st.floats(0, 1, exclude_min=True, exclude_max=True)
VALUES = {
    "rel": grades,
    "dcg": st.sampled_from(["log2", "exp-log2"]),
    "gains": st.dictionaries(grades, grades, max_size=3),
    "p": fractions,
    "max_rel": st.floats(0, 1000, exclude_min=True),
    "beta": st.floats(0, 1e9, exclude_min=True),
    "x": st.floats(0, 1e9, exclude_min=True),
    "normalize": st.booleans(),
}


@st.composite
def metrics(draw):
    metric = draw(st.sampled_from(registered_metrics()))
    optional = [p.name for p in metric.parameters if p.default is not None and p.example is None]
    chosen = [p.name for p in metric.parameters if p.example is not None or draw(st.booleans())]
    for name in metric.exclusive[1:]:
        if name in chosen and metric.exclusive[0] in chosen:
            chosen.remove(name)
    assert set(optional) <= set(VALUES)
    bound = metric(**{name: draw(VALUES[name]) for name in chosen})
    if metric.after == "cutoff" or (metric.after == "optional cutoff" and draw(st.booleans())):
        return bound @ draw(st.integers(1, 10**18 - 1))
    return bound @ draw(st.floats(0, 1)) if metric.after == "recall" else bound


@given(metrics())
def test_round_trip(metric):
    assert parse(str(metric)) == metric
    assert str(parse(str(metric))) == str(metric)


@given(st.text())
def test_any_text_parses_or_is_refused(text):
    with contextlib.suppress(MetricNameError):
        parse_all(text)


def test_recall_and_precision_without_a_cutoff():
    assert [parse(name) for name in ("P", "R", "precision(rel=2)")] == [SetP, SetR, SetP(rel=2)]
    assert parse("SetP(relative=True, rel=2)") == SetRelP(rel=2)
    assert parse("set_f.0.5") == SetF(x=0.5)
    assert parse("R@5") == R @ 5
