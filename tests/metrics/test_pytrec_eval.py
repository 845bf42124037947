"""Per-query values against pytrec_eval-terrier, which is trec_eval 9."""

import numpy as np
import pytest

from metrics_core.metrics import parse
from metrics_core.policies import Policies

pytrec_eval = pytest.importorskip("pytrec_eval")

NAMES = {
    **{
        f"{ours}@{k}": f"{theirs}_{k}"
        for k in (1, 3, 10, 30)
        for ours, theirs in {"P": "P", "R": "recall", "Success": "success", "nDCG": "ndcg_cut", "AP": "map_cut"}.items()
    },
    "RR": "recip_rank",
    "AP": "map",
    "nDCG": "ndcg",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "infAP": "infAP",
    "SetP": "set_P",
    "SetR": "set_recall",
    "SetF": "set_F",
    "SetAP": "set_map",
    "SetRelP": "set_relative_P",
    "NumRet": "num_ret",
    "NumRel": "num_rel",
    "NumRelRet": "num_rel_ret",
    "NumQ": "num_q",
}


@pytest.fixture(scope="module", params=[1, 2])
def compared(request, block_of):
    rng = np.random.default_rng(request.param)
    documents = [f"d{i:03}" for i in range(60)]
    qrels, run = {}, {}
    for q in range(200):
        judged = rng.choice(documents, rng.integers(1, 40), replace=False)
        qrels[f"q{q:03}"] = {d: int(g) for d, g in zip(judged, [0, *rng.integers(-1, 4, judged.size - 1)], strict=True)}
        retrieved = rng.choice(documents, rng.integers(1, 50), replace=False)
        run[f"q{q:03}"] = {d: float(s) for d, s in zip(retrieved, rng.permutation(retrieved.size), strict=True)}
    measures = {
        f"{theirs.rsplit('_', 1)[0]}.1,3,10,30" if theirs.rsplit("_", 1)[-1].isdigit() else theirs
        for theirs in NAMES.values()
    }
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=request.param).evaluate(run)
    rankings = {q: sorted(scores, key=scores.get, reverse=True) for q, scores in run.items()}
    return block_of(qrels, rankings), [theirs[q] for q in qrels], Policies(default_rel=request.param)


@pytest.mark.parametrize(("ours", "theirs"), NAMES.items())
def test_equals_trec_eval(compared, ours, theirs):
    block, values, policies = compared
    scores = parse(ours).score(block, policies)
    np.testing.assert_allclose(scores, [value[theirs] for value in values], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["Compat", "Compat(p=0.8, normalize=False)"])
def test_compat_equals_ir_measures_without_ties(block_of, name):
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(3)
    documents = [f"d{i:03}" for i in range(40)]
    qrels = {f"q{q}": {d: int(rng.integers(0, 4)) for d in rng.choice(documents, 12, replace=False)} for q in range(50)}
    run = {
        q: {
            d: float(s)
            for d, s in zip(rng.choice(documents, 20, replace=False), rng.permutation(20) + 1.0, strict=True)
        }
        for q in qrels
    }
    measure = ir_measures.parse_measure(name)
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([measure], qrels, run)}
    rankings = {q: sorted(scores, key=scores.get, reverse=True) for q, scores in run.items()}
    scores = parse(name).score(block_of(qrels, rankings), Policies())
    np.testing.assert_allclose(scores, [theirs[q] for q in qrels], rtol=0, atol=1e-12)
