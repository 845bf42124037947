"""Bad usage and bad input: exit code 2 and one line that says what to do."""

from __future__ import annotations

import pytest

from metrics_core.cli import main

pytestmark = pytest.mark.usefixtures("folder")

EVALUATE = ("evaluate", "qrels.txt", "first.run")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evalute",), "no such command 'evalute'; did you mean 'evaluate'? (see 'metrics-core --help')"),
        (("zzz",), "no such command 'zzz' (see 'metrics-core --help')"),
        (("evaluate",), "missing argument 'QRELS' (see 'metrics-core evaluate --help')"),
        (("evaluate", "qrels.txt"), "missing argument 'RUN"),
        ((*EVALUATE, "--tise", "input"), "no such option"),
        ((*EVALUATE, "--ties", "random"), "'random' is not one of"),
        ((*EVALUATE, "--threads", "0"), "'--threads'"),
        ((*EVALUATE, "--json", "--format", "tsv"), "--json and --format tsv exclude each other"),
        (("evaluate", "qrels.txt", "first.run", "second.run", "--format", "trec"), "--format trec takes one RUN"),
        ((*EVALUATE, "-m", "ndgc"), "unknown metric 'ndgc'; did you mean 'nDCG'?"),
        ((*EVALUATE, "-m", "zzz"), "unknown metric 'zzz'; 'metrics-core metrics' lists those there are"),
        ((*EVALUATE, "-m", "nDCG@0"), "cutoff in 'nDCG@0' must be a positive integer, got '0'"),
        ((*EVALUATE, "-m", "Bpref", "--ties", "expected"), "Bpref has no exact value"),
        (
            (*EVALUATE, "--missing", "error"),
            "first.run lacks query 'q10'; --missing zero scores such queries 0, --missing skip leaves",
        ),
        ((*EVALUATE, "--default-rel", "nan"), "default_rel must be a number, got nan"),
        (
            ("evaluate", "qrels.txt", "first.run", "nDCG@10"),
            "'nDCG@10' is a metric, and no file; metrics are given as -m nDCG@10",
        ),
        (("evaluate", "absent"), "absent: No such file or directory"),
        (("evaluate", "absent.txt", "first.run"), "absent.txt: No such file or directory"),
        (("evaluate", "qrels.txt", "."), ".: there is no table in this folder (.parquet, "),
        (("evaluate", "qrels.txt", "qrels.txt"), "qrels.txt, line 1: 6 columns expected"),
        (("evaluate", "-", "-"), "only one of the files can be standard input"),
        ((*EVALUATE, "-o", "absent/scores.tsv"), "absent/scores.tsv: No such file or directory"),
        (("metrics", "ndgc"), "did you mean 'nDCG'?"),
    ],
)
def test_one_line_and_exit_code_2(cli, arguments, message):
    result = cli(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("metrics-core: error: ")
    assert result.err.count("\n") == 1
    assert result.err.endswith("\n")
    assert message in result.err


def test_a_document_judged_twice_is_refused_with_file_line_and_option(cli, folder):
    (folder / "twice.txt").write_text("q1 0 a 1\nq1 0 a 2\n")
    result = cli("evaluate", "twice.txt", "first.run")
    assert result.code == 2
    assert "twice.txt, line 2: document 'a' is judged twice" in result.err
    assert "--duplicate-judgements max" in result.err
    assert cli("evaluate", "twice.txt", "first.run", "--duplicate-judgements", "last").code == 0


def test_what_is_wrong_with_one_of_several_runs_names_it(cli, folder):
    (folder / "twice.run").write_text("q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n")
    assert "twice.run" in cli("evaluate", "qrels.txt", "first.run", "twice.run").err


def test_ctrl_c_ends_with_130_and_no_traceback(cli, monkeypatch):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("metrics_core.cli.runs.evaluate_files", interrupted)
    result = cli(*EVALUATE)
    assert (result.code, result.out, result.err.strip()) == (130, "", "")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_of_the_program(arguments, capsys):
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in ("evaluate", "metrics", "demo"))


@pytest.mark.parametrize("command", ["evaluate", "metrics"])
def test_help_of_a_command_has_examples(cli, command):
    out = cli(command, "--help").out
    assert f"Examples:\n    metrics-core {command}" in out


def test_help_lists_the_policies_apart(cli):
    options, policies = cli("evaluate", "--help").out.split("Policies:")
    assert "--metric" in options
    assert "--ties" not in options
    assert "[docid_desc|input|expected|error]" in policies
    assert "documents with equal scores" in " ".join(policies.split())
