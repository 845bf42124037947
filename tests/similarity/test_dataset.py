"""sas_dataset and its command: the scores of rows in memory, whatever the files, the parts and the interruptions."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
from math import fsum

import numpy as np
import pytest

from metrics_core import answer_similarity, sas_dataset
from metrics_core.cli import main
from metrics_core.errors import FileFormatError, InputError
from metrics_core.similarity import dataset, scoring
from tests.tiny_models import MAX_TOKENS, WORDS

N_ROWS = 50


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)

    def text():
        return " ".join(rng.choice(WORDS, rng.integers(1, 4)))

    return [{"gold": [text() for _ in range(rng.integers(1, 3))], "said": text()} for _ in range(N_ROWS)]


@pytest.fixture
def files(tmp_path, rows):
    """The rows in a parquet file and a JSONL file."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "answers"
    folder.mkdir()
    parquet.write_table(pa.Table.from_pylist(rows[:30]), folder / "a.parquet", row_group_size=7)
    (folder / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[30:]))
    return folder


@pytest.fixture
def score(files, tiny):
    columns = {"ground_truth_column": "gold", "predicted_column": "said"}
    return lambda **options: sas_dataset(files, **({"model": tiny.bi, "part_rows": 8} | columns | options))


@pytest.fixture
def expected(rows, tiny):
    golds, said = [row["gold"] for row in rows], [row["said"] for row in rows]
    return answer_similarity(golds, said, tiny.bi).scores


def written(result):
    parquet = pytest.importorskip("pyarrow.parquet")
    return [row for path in result.paths for row in parquet.read_table(path).to_pylist()]


def test_parts_and_a_single_file(score, expected, files, tmp_path):
    in_parts = score(out=tmp_path / "scores")
    assert in_parts.n_rows == N_ROWS
    assert [path.name for path in in_parts.paths] == [
        f"part-{fragment:05}-{part:06}.parquet" for fragment, parts in ((0, 4), (1, 3)) for part in range(parts)
    ]
    found = written(in_parts)
    assert [row["score"] for row in found] == pytest.approx(expected, rel=0, abs=2e-6)
    assert [row["row"] for row in found] == [*range(30), *range(20)]
    assert {row["file"] for row in found[:30]} == {str(files / "a.parquet")}
    assert {row["file"] for row in found[30:]} == {str(files / "b.jsonl")}
    assert in_parts.score == pytest.approx(fsum(row["score"] for row in found) / N_ROWS, rel=1e-15)
    summary = json.loads((tmp_path / "scores" / "_summary.json").read_text())
    assert (summary["score"], summary["n_rows"], summary["kind"]) == (in_parts.score, N_ROWS, "bi")
    single = score(out=tmp_path / "scores.parquet")
    assert written(single) == found
    assert single.score == in_parts.score == score().score
    assert sorted(each.name for each in tmp_path.iterdir()) == ["answers", "scores", "scores.parquet"]


def test_repeats_across_parts_are_read_once(score, rows):
    texts = {text for row in rows for text in (*row["gold"], row["said"])}
    assert score().n_unique <= len(texts)
    assert score(n_kept=0).n_unique > len(texts)
    assert score(n_kept=0).score == pytest.approx(score(n_kept=5).score, abs=1e-6)


@pytest.mark.parametrize("out", ["scores", "scores.parquet"])
def test_an_interrupted_run_goes_on(score, tmp_path, monkeypatch, out):
    whole = score(out=tmp_path / f"whole-{out}")
    n_scored = []
    scored = scoring.SimilarityScorer.score

    def interrupted(self, *arguments):
        if len(n_scored) == 5:
            raise KeyboardInterrupt
        n_scored.append(1)
        return scored(self, *arguments)

    monkeypatch.setattr(scoring.SimilarityScorer, "score", interrupted)
    with pytest.raises(KeyboardInterrupt):
        score(out=tmp_path / out)
    assert not (tmp_path / out / "_summary.json").exists()
    assert not (tmp_path / out).is_file()
    with pytest.raises(InputError, match="another computation: empty was 'encode', now 'zero'"):
        score(out=tmp_path / out, empty="zero")
    n_scored.clear()
    result = score(out=tmp_path / out)
    assert len(n_scored) == 2  # of seven
    assert result.score == pytest.approx(whole.score, abs=1e-6)
    assert [row["score"] for row in written(result)] == pytest.approx(
        [row["score"] for row in written(whole)], abs=2e-6
    )
    assert [row["row"] for row in written(result)] == [row["row"] for row in written(whole)]


def test_a_finished_run_loads_no_model(score, tmp_path, monkeypatch):
    first = score(out=tmp_path / "scores")
    monkeypatch.setattr(dataset, "SimilarityScorer", None)
    assert score(out=tmp_path / "scores") == first


def test_another_model_in_the_same_folder_is_another_computation(score, tiny, tmp_path):
    model = shutil.copytree(tiny.bi, tmp_path / "model")
    first = score(model=model, out=tmp_path / "scores")
    assert score(model=model, out=tmp_path / "scores") == first
    (model / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes() + b"\0")
    with pytest.raises(InputError, match="parts of another computation: model_files was"):
        score(model=model, out=tmp_path / "scores")


def test_a_full_disk_keeps_what_was_written(score, tmp_path, monkeypatch):
    whole = score(out=tmp_path / "whole")
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table, n_written = parquet.write_table, []

    def full(table, file):
        write_table(table, file)
        n_written.append(1)
        if len(n_written) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(parquet, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        score(out=tmp_path / "scores")
    assert len(list((tmp_path / "scores").iterdir())) == 3  # two parts and the manifest
    assert score(out=tmp_path / "scores").score == pytest.approx(whole.score, abs=1e-6)
    assert len(n_written) == 3 + 5  # of seven


def test_progress_is_told_in_pairs_and_tokens(score, tmp_path, capsys):
    assert score(out=tmp_path / "scores", progress_bar=True).n_rows == N_ROWS
    shown = capsys.readouterr().err
    assert re.search(rf"{N_ROWS}pair \[.*pair/s, [\d,]+ tokens/s\]", shown)
    assert score(out=tmp_path / "scores", progress_bar=True).n_rows == N_ROWS
    assert f"{N_ROWS}pair [" in capsys.readouterr().err
    score()
    assert "pair" not in capsys.readouterr().err


def test_a_cross_encoder(score, rows, tiny):
    golds, said = [row["gold"] for row in rows], [row["said"] for row in rows]
    result = score(model=tiny.cross)
    assert result.kind == "cross"
    assert result.score == pytest.approx(answer_similarity(golds, said, tiny.cross).scores.mean(), abs=2e-6)


def test_truncated_texts_are_counted_over_all_parts(score, files, caplog):
    long = json.dumps({"gold": "rome " * MAX_TOKENS, "said": "paris"}) + "\n"
    (files / "c.jsonl").write_text(long * 20 + long.replace("rome", "nine"))
    assert score().n_truncated == 2
    (record,) = caplog.records
    assert "tokens of 2 texts" in record.getMessage()


def test_bad_rows_are_named_and_leave_nothing_that_looks_complete(score, files, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"gold": ["a"] * 12, "said": [*["b"] * 10, None, "b"]}), files / "c.parquet")
    for out in ("scores", "scores.parquet"):
        with pytest.raises(InputError, match=rf"must be strings, got None in {files / 'c.parquet'}, row 10"):
            score(out=tmp_path / out)
        assert not (tmp_path / out / "_summary.json").exists()
        assert not (tmp_path / out).is_file()
    (files / "c.parquet").write_bytes(b"PAR1")
    with pytest.raises(FileFormatError, match=f"{files / 'c.parquet'}: "):
        score()
    (files / "c.parquet").unlink()
    (files / "c.jsonl").write_text('{"gold": "a"}\n')
    with pytest.raises(FileFormatError, match=rf"{files / 'c.jsonl'}, line 1: there is no 'said'"):
        score()


def test_what_cannot_be(tmp_path, tiny, score):
    from sentence_transformers import SentenceTransformer

    with pytest.raises(InputError, match="a folder or a name here, got a loaded SentenceTransformer"):
        score(model=SentenceTransformer(tiny.bi, device="cpu"), out=tmp_path / "scores")
    with pytest.raises(InputError, match="part_rows must be a positive integer, got 0"):
        score(part_rows=0)
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(InputError, match="is a folder; name a file"):
        score(out=tmp_path / "folder.parquet")
    for name in ("scores.csv", "scores.jsonl.gz"):
        with pytest.raises(InputError, match=r"name a \.parquet file, or a folder without the suffix of a file"):
            score(out=tmp_path / name)
    for n_kept in (-1, True, 1.5):
        with pytest.raises(InputError, match=f"n_kept must be an integer from 0, got {n_kept}"):
            score(n_kept=n_kept)
    with pytest.raises(InputError, match="must differ, got 'gold' for both"):
        score(predicted_column="gold")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(InputError, match="there is not a row in"):
        sas_dataset(tmp_path / "empty.jsonl", tiny.bi)
    with pytest.raises(TypeError, match="batchsize"):
        score(batchsize=3)


def test_the_command(files, tiny, tmp_path, score, expected, capsys):
    out = tmp_path / "scores.parquet"
    columns = ["--ground-truth-column", "gold", "--predicted-column", "said"]
    common = ["sas", str(files / "a.parquet"), str(files / "b.jsonl"), *columns, "--model"]
    assert main([*common, tiny.bi, "-o", str(out), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["score"] == pytest.approx(expected.mean(), abs=2e-6)
    assert printed["paths"] == [str(out)]
    assert len(pytest.importorskip("pyarrow.parquet").read_table(out)) == N_ROWS
    options = ["--kind", "cross", "--dtype", "bfloat16", "--device", "cpu", "--empty", "zero", "--token-budget", "64"]
    assert main([*common, tiny.unnamed, *options]) == 0
    lines = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert (lines["metric"], lines["kind"], lines["dtype"], lines["n_rows"]) == ("value", "cross", "bfloat16", "50")
    assert main([*common, tiny.bi, "--format", "table"]) == 0
    assert f"{expected.mean():.4f}" in capsys.readouterr().out


def test_the_command_reads_csv(tiny, tmp_path, capsys):
    path = tmp_path / "answers.csv"
    path.write_text('ground_truth_answers,predicted_answers\nparis,"rome, of ""nine"""\nthe city,the city\n')
    assert main(["sas", str(path), "--model", tiny.bi, "--json"]) == 0
    expected = answer_similarity(["paris", "the city"], ['rome, of "nine"', "the city"], tiny.bi).scores
    assert json.loads(capsys.readouterr().out)["score"] == pytest.approx(expected.mean(), abs=2e-6)


def test_errors_of_the_command_are_one_line(files, tiny, capsys, monkeypatch):
    columns = ["--ground-truth-column", "gold", "--predicted-column", "said"]

    def refused(*arguments):
        assert main(["sas", *map(str, arguments)]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("metrics-core: error: ")
        assert printed.err.count("\n") == 1
        return printed.err

    assert "absent.jsonl: there is no such file" in refused("absent.jsonl", "--model", tiny.bi)
    assert "no column 'ground_truth_answers'; it has 'gold', 'said'" in refused(files, "--model", tiny.bi)
    assert "device='banana' is none of torch's" in refused(files, *columns, "--model", tiny.bi, "--device", "banana")
    assert "model './absent': there is no such folder" in refused(files, *columns, "--model", "./absent")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    assert "pip install 'metrics-core[sas]'" in refused(files, *columns, "--model", tiny.bi)
