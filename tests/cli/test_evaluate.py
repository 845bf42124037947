"""metrics-core evaluate: what each format writes, the options, and that they reach the engine."""

from __future__ import annotations

import io
import json
from math import log2
from typing import get_type_hints

import pytest

from metrics_core import Policies, __version__, evaluate
from metrics_core.cli import main
from metrics_core.cli.evaluate import DEFAULT_METRICS, evaluate_command
from metrics_core.cli.runs import run_names

pytestmark = pytest.mark.usefixtures("folder")

NDCG_Q1 = (1 / log2(2) + 2 / log2(3)) / (2 / log2(2) + 1 / log2(3))


LACKING = "metrics-core: first.run lacks query q10: scored as empty rankings (missing=zero)\n"


def test_tsv_has_a_row_a_metric_and_a_column_a_run_with_all_digits(cli):
    result = cli("evaluate", "qrels.txt", "first.run", "second.run", "-m", "RR", "-m", "P_1,2", "-m", "num_ret")
    assert (result.code, result.err) == (0, LACKING)
    assert result.out == (
        "metric\tfirst.run\tsecond.run\n"
        f"RR\t{(1 + 1 / 2 + 0) / 3!r}\t{(1 / 2 + 1 + 1) / 3!r}\n"
        f"P@1\t{1 / 3!r}\t{2 / 3!r}\n"
        f"P@2\t{(1 + 1 / 2 + 0) / 3!r}\t{(1 / 2 + 1 / 2 + 1 / 2) / 3!r}\n"
        "NumRet\t5.0\t4.0\n"
    )


def test_tsv_by_query_is_long(cli):
    result = cli("evaluate", "qrels.txt", "first.run", "-m", "RR", "--per-query", "--missing", "skip")
    assert result.out == (
        "query\tmetric\trun\tvalue\nq1\tRR\tfirst.run\t1.0\nq2\tRR\tfirst.run\t0.5\nq10\tRR\tfirst.run\tnan\n"
    )


def test_json_is_valid_and_complete(cli):
    result = cli("evaluate", "qrels.txt", "first.run", "-m", "nDCG", "-m", "NumQ", "-q", "--json", "--missing", "skip")
    report = json.loads(result.out, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert report["version"] == __version__
    assert report["qrels"] == "qrels.txt"
    assert report["policies"] == Policies(missing="skip").to_dict()
    (run,) = report["runs"]
    assert (run["name"], run["path"]) == ("first.run", "first.run")
    assert run["metrics"]["nDCG"] == {
        "value": pytest.approx((NDCG_Q1 + 1 / log2(3)) / 2, abs=1e-15),
        "aggregate": "mean",
        "n_scored": 2,
        "n_total": 3,
    }
    assert run["metrics"]["NumQ"]["aggregate"] == "sum"
    assert run["queries"]["q10"] == {"nDCG": None, "NumQ": None}
    assert (run["n_missing"], run["missing"], run["n_unjudged"], run["unjudged"]) == (1, ["q10"], 0, [])
    assert run["queries"]["q2"] == {"nDCG": pytest.approx(1 / log2(3), abs=1e-15), "NumQ": 1}


def test_json_has_the_queries_only_if_asked_for(cli):
    report = json.loads(cli("evaluate", "qrels.txt", "first.run", "--format", "json").out)
    assert {*report["runs"][0]} == {"name", "path", "metrics", "n_missing", "n_unjudged", "missing", "unjudged"}
    assert list(report["runs"][0]["metrics"]) == list(DEFAULT_METRICS)


def test_json_of_an_infinite_policy_and_of_no_scored_query(cli, folder):
    (folder / "zeros.txt").write_text("q1 0 a 0\n")
    arguments = ("evaluate", "zeros.txt", "first.run", "-m", "RR(rel=1)", "--json", "--no-relevant", "skip")
    report = json.loads(cli(*arguments, "--default-rel", "-inf").out)
    assert report["policies"]["default_rel"] == "-inf"
    assert report["runs"][0]["metrics"]["RR(rel=1)"] == {
        "value": None,
        "aggregate": "mean",
        "n_scored": 0,
        "n_total": 1,
    }


def test_table_says_what_is_best_how_many_are_scored_and_under_which_policies(cli, monkeypatch):
    arguments = ("evaluate", "qrels.txt", "first.run", "second.run", "-m", "RR", "-m", "NumRet", "--format", "table")
    lines = [line.strip() for line in cli(*arguments, "--missing", "skip").out.splitlines()]
    assert [line.split() for line in lines if line.startswith(("metric", "RR", "NumRet"))] == [
        ["metric", "first.run", "second.run"],
        ["RR", "0.7500", "(2/3)", "0.8333"],
        ["NumRet", "(sum)", "5", "(2/3)", "4"],
    ]
    assert "3 judged queries; policies trec_eval, missing=skip" in lines
    assert "first.run lacks query q10: left out (missing=skip)" in lines
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    coloured = cli(*arguments).out
    best = "\x1b[1;32m"
    (row,) = (line for line in coloured.splitlines() if "RR" in line)
    assert best in row
    assert row.index(best) > row.index("0.5000")
    assert best not in next(line for line in coloured.splitlines() if "NumRet" in line)
    assert "first.run lacks query q10: scored as empty rankings (missing=zero)" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in cli(*arguments).out


def test_table_by_query_is_a_block_a_run(cli):
    out = cli("evaluate", "qrels.txt", "first.run", "second.run", "-m", "RR", "--format", "table", "-q").out
    rows = [line.split() for line in out.splitlines() if line.split()]
    assert rows.index(["first.run"]) < rows.index(["q10", "0.0000"]) < rows.index(["second.run"])
    assert ["all", "0.5000"] in rows
    assert ["all", "0.8333"] in rows


def test_table_names_a_few_of_many_missing_queries(cli, folder):
    (folder / "many.txt").write_text("".join(f"n{i} 0 a 1\n" for i in range(5)) + "q1 0 a 1\n")
    out = cli("evaluate", "many.txt", "first.run", "--format", "table").out
    assert "first.run lacks queries n0, n1, n2 and 2 more" in out


def test_unjudged_queries_are_named(cli, folder):
    with (folder / "first.run").open("a") as run:
        run.write("q99 Q0 a 1 1 first\n")
    out = cli("evaluate", "qrels.txt", "first.run", "--format", "table").out
    assert "first.run has query q99 without judgements: left out (unjudged_query=ignore)" in out


def test_trec_format_is_trec_evals_with_topics_in_the_order_of_their_bytes(cli):
    metrics = ("-m", "recip_rank", "-m", "num_rel_ret", "-m", "num_q", "-m", "gm_map", "-m", "AP(rel=2)")
    result = cli("evaluate", "qrels.txt", "second.run", "--format", "trec", "--per-query", *metrics)
    assert result.out == (
        "recip_rank            \tq1\t0.5000\n"
        "num_rel_ret           \tq1\t1\n"
        "AP(rel=2)             \tq1\t0.5000\n"
        "recip_rank            \tq10\t1.0000\n"
        "num_rel_ret           \tq10\t1\n"
        "AP(rel=2)             \tq10\t0.0000\n"
        "recip_rank            \tq2\t1.0000\n"
        "num_rel_ret           \tq2\t1\n"
        "AP(rel=2)             \tq2\t0.0000\n"
        "recip_rank            \tall\t0.8333\n"
        "num_rel_ret           \tall\t3\n"
        "num_q                 \tall\t3\n"
        f"gm_map                \tall\t{(1 / 4) ** (1 / 3):.4f}\n"
        f"AP(rel=2)             \tall\t{1 / 2 / 3:.4f}\n"
    )


def test_trec_format_has_no_line_for_a_missing_topic_nor_for_what_was_not_scored(cli):
    arguments = ("evaluate", "qrels.txt", "first.run", "--format", "trec", "-q", "-m", "recip_rank")
    zero = "recip_rank            \tq1\t1.0000\nrecip_rank            \tq2\t0.5000\nrecip_rank            \tall\t{}\n"
    assert cli(*arguments).out == zero.format("0.5000")
    assert cli(*arguments, "--missing", "skip").out == zero.format("0.7500")
    assert cli(*arguments[:-1], "AP(rel=3)", "--no-relevant", "skip").out == ""


def test_output_goes_to_a_file_without_colours(cli, folder, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = cli("evaluate", "qrels.txt", "first.run", "-m", "RR", "-o", "scores.tsv")
    assert (result.code, result.out) == (0, "")
    assert (folder / "scores.tsv").read_text() == "metric\tfirst.run\nRR\t0.5\n"
    cli("evaluate", "qrels.txt", "first.run", "-m", "RR", "-o", "scores.txt", "--format", "table")
    assert "\x1b" not in (folder / "scores.txt").read_text()


def test_a_terminal_gets_a_table(cli, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "policies trec_eval" in cli("evaluate", "qrels.txt", "first.run").out
    assert cli("evaluate", "qrels.txt", "first.run", "-m", "RR", "--format", "tsv").out.startswith("metric\t")


@pytest.mark.parametrize("arguments", [("-", "first.run"), ("qrels.txt", "-")])
def test_one_file_may_be_standard_input(cli, folder, monkeypatch, arguments):
    text = (folder / ("qrels.txt" if arguments[0] == "-" else "first.run")).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert cli("evaluate", *arguments, "-m", "RR").out.splitlines()[1] == "RR\t0.5"


def test_ids_that_are_not_utf8_come_out_as_the_bytes_they_were(folder, capsysbinary):
    (folder / "latin.txt").write_bytes(b"caf\xe9 0 a 1\n")
    (folder / "latin.run").write_bytes(b"caf\xe9 Q0 a 1 1 t\n")
    assert main(["evaluate", "latin.txt", "latin.run", "-m", "map", "--format", "trec", "-q"]) == 0
    assert capsysbinary.readouterr().out.splitlines()[0] == b"map                   \tcaf\xe9\t1.0000"
    assert main(["evaluate", "latin.txt", "latin.run", "-m", "map", "--json", "-q"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["runs"][0]["queries"] == {"caf\udce9": {"AP": 1.0}}
    assert main(["evaluate", "latin.txt", "latin.run", "-m", "map", "--format", "table", "-q"]) == 0
    assert "caf?" in capsysbinary.readouterr().out.decode()


@pytest.mark.parametrize(
    ("options", "policies"),
    [
        ((), Policies()),
        (("--profile", "ranx", "--missing", "zero"), Policies("ranx", missing="zero")),
        (("--profile", "beir", "--keep-identical-ids"), Policies("beir", drop_identical_ids=False)),
        (("--ties", "expected"), Policies(ties="expected")),
        (("--order", "input", "--default-rel", "2"), Policies(order="input", default_rel=2.0)),
        (("--no-relevant", "skip", "--score-dtype", "float32"), Policies(no_relevant="skip", score_dtype="float32")),
        (("--duplicates", "first_compact"), Policies(duplicates="first_compact")),
        (("--drop-identical-ids",), Policies(drop_identical_ids=True)),
        (("--duplicate-judgements", "max", "--threads", "1"), Policies(duplicate_judgements="max")),
        (("--unjudged-query", "error"), Policies(unjudged_query="error")),
    ],
)
def test_policies_are_options(cli, options, policies):
    report = json.loads(cli("evaluate", "qrels.txt", "second.run", "-m", "RR", "-q", "--json", *options).out)
    assert report["policies"] == policies.to_dict()
    scores = evaluate("qrels.txt", "second.run", "RR", policies=policies)
    assert report["runs"][0]["queries"] == scores.to_dict()


def test_every_policy_that_can_apply_to_files_is_an_option_with_its_documentation():
    options = {parameter.name: parameter.help for parameter in evaluate_command.params if hasattr(parameter, "help")}
    fields = [name for name in get_type_hints(Policies) if not name.startswith("_")]
    assert {name for name in fields if name not in options} == {"nan"}
    assert all(options[name] for name in fields if name in options)


def test_runs_are_told_apart_by_as_much_of_their_paths_as_it_takes():
    assert run_names(["x/a.run", "y/b.run"]) == ["a.run", "b.run"]
    assert run_names(["x/a.run", "y/a.run", "b.run"]) == ["x/a.run", "y/a.run", "b.run"]
    assert run_names(["a.run", "/z/a.run", "-"]) == ["a.run", "z/a.run", "stdin"]
    assert run_names(["x/a.run", "x/a.run"]) == ["a.run", "a.run (2)"]
    assert run_names(["tab\there.run"]) == ["tab?here.run"]
