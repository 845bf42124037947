"""metrics-core compare: formats, conditions that fail a job, and options that reach the comparison."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest

from metrics_core import Policies, compare, evaluate
from metrics_core.cli.gate import Condition

pytestmark = pytest.mark.usefixtures("folder")

PAIR = ("compare", "qrels.txt", "first.run", "second.run")
# RR of first.run is 1, 1/2, 0 and of second.run 1/2, 1, 1 for q1, q2, q10
BELOW = 1.5 / 3 - 2.5 / 3
LACKS = "metrics-core: first.run lacks query q10: scored as empty rankings (missing=zero)\n"


@pytest.fixture
def runs(folder):
    return {name: evaluate("qrels.txt", name, ["RR", "AP"]) for name in ("first.run", "second.run")}


def test_json_is_the_comparison(cli, runs):
    report = json.loads(cli(*PAIR, "-m", "RR", "-m", "map", "--json", "--seed", "4", "--resamples", "500").out)
    assert report.pop("qrels") == "qrels.txt"
    assert report.pop("unpaired_queries") == {
        "first.run": {"n_missing": 1, "n_unjudged": 0, "missing": ["q10"], "unjudged": []},
        "second.run": {"n_missing": 0, "n_unjudged": 0, "missing": [], "unjudged": []},
    }
    assert report == json.loads(json.dumps(compare(runs, seed=4, n_resamples=500).to_dict()))


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (("--baseline", "second.run"), {"baseline": "second.run"}),
        (("--test", "tukey"), {"test": "tukey"}),
        (
            ("--test", "permutation", "--correction", "by", "--family", "all"),
            {"test": "permutation", "correction": "by", "family": "all"},
        ),
        (("--confidence", "0.5"), {"confidence": 0.5}),
    ],
)
def test_options_are_arguments(cli, runs, options, arguments):
    report = json.loads(cli(*PAIR, "-m", "RR", "-m", "AP", "--json", *options).out)
    assert report["differences"] == json.loads(json.dumps(compare(runs, **arguments).to_dict()))["differences"]


def test_policies_are_options(cli):
    report = json.loads(cli(*PAIR, "-m", "RR", "--missing", "skip", "--json").out)
    assert report["policies"]["first.run"] == json.loads(
        json.dumps(Policies(missing="skip").to_dict() | {"default_rel": 1.0})
    )
    assert (report["differences"][0]["n"], report["differences"][0]["n_left_out"]) == (2, 1)


def test_tsv_has_all_digits(cli, runs):
    header, row = (line.split("\t") for line in cli(*PAIR, "-m", "RR").out.splitlines())
    each = compare(runs, metrics="RR").differences[0]
    found = dict(zip(header, row, strict=True))
    assert (found["run"], found["other"], found["significant"]) == ("first.run", "second.run", "false")
    assert (float(found["difference"]), float(found["p"])) == (each.difference, each.p)


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
def test_what_is_pasted(cli, folder, runs, form):
    expected = getattr(compare(runs, metrics="RR"), f"to_{form}")()
    assert cli(*PAIR, "-m", "RR", "--format", form).out == expected
    flag = ["--format", "html"] if form == "html" else [f"--{form}"]
    cli(*PAIR, "-m", "RR", *flag, "-o", "table.txt")
    assert (folder / "table.txt").read_text("utf-8") == expected


def test_table(cli):
    out = cli(*PAIR, "-m", "RR", "-m", "AP", "--format", "table", "--test", "wilcoxon").out
    lines = [line.split() for line in out.splitlines()]
    assert ["a", "first.run", "0.5000", "0.5000"] in lines
    assert any(line[:3] == ["first.run", "second.run", "-0.3333"] for line in lines)
    assert "symmetric around zero" in " ".join(out.split())
    assert "first.run lacks query q10: scored as empty rankings (missing=zero)" in out


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (120, []),
        (92, ["p"]),
        (80, ["p", "d_z", "p perm."]),
        (70, ["p", "d_z", "p perm.", "n", "w/t/l"]),
    ],
)
def test_a_table_without_room_leaves_columns_out_and_says_so(cli, monkeypatch, width, left_out):
    monkeypatch.setenv("COLUMNS", str(width))
    out = cli(*PAIR, "-m", "RR", "--format", "table").out
    header = next(line for line in out.splitlines() if "against" in line)
    every = ["run", "against", "difference", "95% interval", "d_z", "w/t/l", "p", "p adj.", "p perm.", "n"]
    assert re.split(r"\s{2,}", header.strip()) == [name for name in every if name not in left_out]
    assert any("-0.3333" in line and line.lstrip().startswith("first.") for line in out.splitlines())
    assert (f"No room for {', '.join(left_out)}:" in " ".join(out.split())) == bool(left_out)


class TestGate:
    BASELINE = ("-m", "RR", "--baseline", "second.run")

    @pytest.mark.parametrize("condition", ["RR < -0.02", "RR<=-0.3", " mrr  < 0", "RR < -1e-1"])
    def test_a_condition_that_holds_fails_and_says_why(self, cli, condition):
        result = cli(*PAIR, *self.BASELINE, "--fail-if", condition)
        assert result.code == 1
        assert result.err.startswith(
            f"{LACKS}metrics-core: failed: RR of first.run is 0.5000, second.run's 0.8333: "
            f"the difference {BELOW:+.4f} is <"
        )
        assert len(result.err.splitlines()) == 2
        assert result.out.startswith("metric\t")

    @pytest.mark.parametrize("condition", ["RR < -0.4", "RR > 0", "RR >= .1"])
    def test_one_that_does_not_passes(self, cli, condition):
        result = cli(*PAIR, *self.BASELINE, "--fail-if", condition)
        assert (result.code, result.err) == (0, LACKS)

    def test_rounding_fails_no_job(self):
        difference = SimpleNamespace(difference=0.48 - 0.5)
        assert difference.difference < -0.02
        assert not Condition("P@10", "<", -0.02).holds(difference)
        assert Condition("P@10", "<=", -0.02).holds(difference)

    def test_any_of_several(self, cli):
        result = cli(*PAIR, *self.BASELINE, "--fail-if", "RR > 0", "--fail-if", "RR < 0")
        assert (result.code, len(result.err.splitlines())) == (1, 2)

    def test_significant_differences_only(self, cli):
        failing = (*PAIR, *self.BASELINE, "--fail-if", "RR < 0", "--significant")
        result = cli(*failing)
        assert result.code == 0
        assert result.err.startswith(
            f"{LACKS}metrics-core: not significant, so it may pass: RR of first.run is 0.5000, "
        )
        assert cli(*failing, "--confidence", "0.01").code == 1

    def test_the_baseline_may_be_a_path(self, cli, folder):
        path = str(folder / "second.run")
        arguments = ("compare", "qrels.txt", "first.run", path, "-m", "RR", "--baseline", path, "--fail-if", "RR < 0")
        assert cli(*arguments).code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "qrels.txt", "first.run"), "compare takes two RUNs or more (see 'metrics-core compare --help')"),
        ((*PAIR, "--fail-if", "RR < 0"), "--fail-if needs --baseline"),
        ((*PAIR, "--significant"), "--significant is for --fail-if"),
        (
            (*PAIR, "--baseline", "first.run", "--fail-if", "worse"),
            "a condition such as 'nDCG@10 < -0.02' expected, got 'worse'",
        ),
        (
            (*PAIR, "--baseline", "first.run", "--fail-if", "P@3 < 0"),
            "--fail-if P@3: not among the metrics; add -m P@3",
        ),
        ((*PAIR, "--baseline", "first.run", "--fail-if", "ndgc < 0"), "unknown metric 'ndgc'; did you mean 'nDCG'?"),
        ((*PAIR, "--baseline", "third.run"), "no run is named 'third.run'; there are 'first.run', 'second.run'"),
        ((*PAIR, "--latex", "--markdown"), "--markdown and --latex exclude each other"),
        ((*PAIR, "--latex", "--format", "tsv"), "--latex and --format tsv exclude each other"),
        ((*PAIR, "--test", "tukey", "--correction", "holm"), "test='tukey' is its own correction"),
        ((*PAIR, "-m", "GMAP"), "GMAP is a geometric mean"),
    ],
)
def test_refusals(cli, arguments, message):
    result = cli(*arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1
