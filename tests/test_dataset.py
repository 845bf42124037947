"""Data sets in files: the same scores as in memory, whatever the files, workers and interruptions."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, strategies as st

from metrics_core import FileFormatError, InputError, Policies, WorkerError, distinct, evaluate_dataset, evaluate_table
from metrics_core.parts import Parts
from tests.deadly import DEADLY, FLAG, MARK

pa = pytest.importorskip("pyarrow", reason="needs the arrow extra")
parquet = pytest.importorskip("pyarrow.parquet")

METRICS = ["AP", "nDCG@5", "RR", "NumRel", "GMAP"]
N_FILES, FILE_ROWS, GROUP_ROWS = 3, 40, 10
FILES = [f"{number}.parquet" for number in range(N_FILES)]


def rows(n, seed=0, first=0):
    rng = np.random.default_rng(seed)
    grades = [rng.integers(0, 4, rng.integers(0, 4)).tolist() for _ in range(n)]
    return pa.table(
        {
            "query_id": [f"q{first + row}" for row in range(n)],
            "ground_truth": pa.array([[f"d{i}" for i in range(len(each))] for each in grades], pa.list_(pa.string())),
            "relevance": pa.array(grades, pa.list_(pa.int64())),
            "retrieved": [[f"d{i}" for i in rng.permutation(8)[: rng.integers(0, 8)]] for _ in range(n)],
        }
    )


@pytest.fixture
def folder(tmp_path):
    """Three files of forty queries, in row groups of ten."""
    (tmp_path / "in").mkdir()
    for number, name in enumerate(FILES):
        table = rows(FILE_ROWS, number, number * FILE_ROWS)
        parquet.write_table(table, tmp_path / "in" / name, row_group_size=GROUP_ROWS)
    return tmp_path / "in"


def in_memory(folder, metrics=METRICS, **options):
    return evaluate_table(pa.concat_tables(map(parquet.read_table, sorted(folder.iterdir()))), metrics, **options)


def assert_same(found, expected):
    assert len(found) == len(expected)
    assert found.policies == expected.policies
    for name, total in expected.aggregate().items():
        result = found.aggregate()[name]
        assert (result.n_scored, result.n_total) == (total.n_scored, total.n_total)
        assert result.value == pytest.approx(total.value, rel=1e-12, abs=1e-15, nan_ok=True)
    if found.paths:
        scores = found.scores()
        np.testing.assert_array_equal(scores.values, expected.values)
        assert list(scores.query_ids) == list(expected.query_ids)


class TestRows:
    @pytest.mark.parametrize("part_rows", [1, 15, 25, 1000])
    def test_the_same_as_in_memory(self, folder, tmp_path, part_rows):
        found = evaluate_dataset(folder, METRICS, out=tmp_path / "out", part_rows=part_rows)
        assert_same(found, in_memory(folder))
        assert parquet.read_table(tmp_path / "out").num_rows == N_FILES * FILE_ROWS
        assert len(found.paths) == N_FILES * {1: 4, 15: 4, 25: 2, 1000: 1}[part_rows]
        assert found.mean() == pytest.approx(in_memory(folder).mean(), rel=1e-12)
        assert str(found).splitlines()[1:] == str(in_memory(folder)).splitlines()[1:]

    def test_without_out_only_the_aggregates_are_kept(self, folder, tmp_path):
        found = evaluate_dataset(folder, METRICS)
        assert_same(found, in_memory(folder))
        with pytest.raises(InputError, match="out= names a folder"):
            found.scores()
        assert {path.name for path in tmp_path.iterdir()} == {"in"}

    def test_one_file_of_all_parts(self, folder, tmp_path):
        found = evaluate_dataset(folder, METRICS, out=tmp_path / "all.parquet", part_rows=10)
        assert found.paths == (tmp_path / "all.parquet",)
        assert_same(found, in_memory(folder))
        assert {path.name for path in tmp_path.iterdir()} == {"in", "all.parquet"}

    @pytest.mark.parametrize("paths", ["folder", "pattern", "list"])
    def test_paths(self, folder, paths):
        given = {"folder": str(folder), "pattern": f"{folder}/*.parquet", "list": sorted(folder.iterdir())}[paths]
        assert_same(evaluate_dataset(given, METRICS), in_memory(folder))

    def test_a_file_system_of_pyarrow(self, folder):
        from pyarrow import fs

        remote = fs.SubTreeFileSystem(str(folder.parent), fs.LocalFileSystem())
        for paths in ("in", "in/*.parquet", ["in/2.parquet", "in/0.parquet", "in/1.parquet"]):
            found = evaluate_dataset(paths, METRICS, filesystem=remote, out=f"{hash(str(paths))}", n_threads=1)
            assert_same_values(found, in_memory(folder))
            again = evaluate_dataset(paths, METRICS, filesystem=remote, out=f"{hash(str(paths))}", n_threads=1)
            assert again.moments == found.moments
        with pytest.raises(InputError, match="there is no such file"):
            evaluate_dataset("in/*.csv", METRICS, filesystem=remote)

    @pytest.mark.parametrize("paths", [5, None, b"x", object()])
    def test_what_is_no_path(self, folder, paths):
        with pytest.raises(InputError, match=r"^paths must be a path or several, got "):
            evaluate_dataset(paths, METRICS)
        if paths is not None:
            with pytest.raises(InputError, match=r"^a path must be a string or a Path, got "):
                evaluate_dataset(folder, METRICS, out=paths)
        with pytest.raises(InputError, match=r"^a path must be a string or a Path, got "):
            evaluate_dataset([folder, paths], METRICS)

    def test_a_uri(self, folder):
        assert_same(evaluate_dataset(folder.as_uri(), METRICS), in_memory(folder))

    def test_rows_without_ids_are_named_by_file_and_row(self, folder, tmp_path):
        for path in folder.iterdir():
            parquet.write_table(parquet.read_table(path).drop_columns("query_id"), path, row_group_size=GROUP_ROWS)
        found = evaluate_dataset(folder, METRICS, out=tmp_path / "out", part_rows=20)
        part = parquet.read_table(found.paths[1]).to_pydict()
        assert part["row"] == list(range(20, 40))
        assert set(part["file"]) == {str(folder / "0.parquet")}
        assert found.scores().query_ids == range(N_FILES * FILE_ROWS)

    def test_columns_and_scores(self, tmp_path):
        table = pa.table({"gold": [[1, 2], [3]], "found": [[2, 9], [4, 3]], "scores": [[1.0, 2.0], [0.5, 0.7]]})
        parquet.write_table(table, tmp_path / "a.parquet")
        columns = {"ground_truth": "gold", "retrieved": "found"}
        found = evaluate_dataset(tmp_path / "a.parquet", "RR", columns=columns, out=tmp_path / "out")
        assert found.scores()["RR"].tolist() == [1 / 2, 1]
        assert found.policies == Policies("trec_eval")

    def test_what_is_not_scored_is_null(self, tmp_path):
        table = pa.table({"ground_truth": [["a"], ["a"]], "relevance": [[0], [1]], "retrieved": [["a"], ["a"]]})
        parquet.write_table(table, tmp_path / "a.parquet")
        policies = Policies("haystack", default_rel=1, no_relevant="skip")
        found = evaluate_dataset(tmp_path / "a.parquet", "AP", policies=policies, out=tmp_path / "out")
        assert parquet.read_table(found.paths[0])["AP"].to_pylist() == [None, 1]
        assert found.aggregate()["AP"].n_scored == 1
        assert np.isnan(found.scores()["AP"][0])

    def test_jsonl(self, folder, tmp_path):
        lines = [row for name in FILES for row in parquet.read_table(folder / name).to_pylist()]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
        assert_same(evaluate_dataset(tmp_path / "rows.jsonl", METRICS, out=tmp_path / "out"), in_memory(folder))

    def test_integers_in_jsonl(self, tmp_path):
        lines = [
            '{"ground_truth": [], "retrieved": []}',
            '{"ground_truth": [9007199254740993], "retrieved": [1, null]}',
        ]
        (tmp_path / "rows.jsonl").write_text("\n".join([*lines, '{"ground_truth": [1], "retrieved": [1]}']))
        found = evaluate_dataset(tmp_path / "rows.jsonl", "RR", out=tmp_path / "out")
        assert found.scores()["RR"].tolist() == [0, 0, 1]

    @given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4), part_rows=st.integers(1, 40))
    def test_moments(self, sizes, part_rows):
        """The same to the bit in parts of any number of workers is tested below; here, that merging is right."""
        from functools import reduce

        from metrics_core.aggregate import Moments, aggregate

        rng = np.random.default_rng(sum(sizes) + part_rows)
        parts = [np.where(rng.random(n) < 0.2, np.nan, rng.random(n)) for n in sizes]
        whole = np.concatenate(parts)
        scored = whole[~np.isnan(whole)]
        for how in ("mean", "sum", "geometric mean"):
            moments = reduce(Moments.merged, (Moments.of(part, how) for part in parts))
            found, expected = moments.aggregate(how), aggregate(whole, how)
            assert (found.n_scored, found.n_total) == (expected.n_scored, expected.n_total)
            assert found.value == pytest.approx(expected.value, rel=1e-12, nan_ok=True)
            if scored.size > 1:
                assert moments.standard_deviation == pytest.approx(scored.std(ddof=1), rel=1e-9)


def assert_same_values(found, expected):
    """As assert_same, the files in any order."""
    assert found.scores().to_dict() == expected.to_dict()


class TestResuming:
    def test_finished_parts_are_not_scored_again(self, folder, tmp_path):
        first = evaluate_dataset(folder, METRICS, out=tmp_path / "out", part_rows=10)
        times = {path: path.stat().st_mtime_ns for path in first.paths}
        lost = first.paths[3], first.paths[7]
        for path in lost:
            path.unlink()
        (tmp_path / "out" / "_summary.json").unlink()
        (tmp_path / "out" / ".part-00000-000003.parquet.0.tmp").write_bytes(b"PAR1")
        again = evaluate_dataset(folder, METRICS, out=tmp_path / "out", part_rows=10)
        assert again == first
        assert {path for path in again.paths if path.stat().st_mtime_ns != times[path]} == set(lost)
        assert not list((tmp_path / "out").glob(".*"))
        summary = json.loads((tmp_path / "out" / "_summary.json").read_text())
        assert summary["n_queries"] == N_FILES * FILE_ROWS
        assert summary["metrics"]["AP"]["value"] == first.aggregate()["AP"].value

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"metrics": ["AP"]}, r"metrics was \['AP', .*\], now \['AP'\]"),
            ({"policies": Policies("haystack", empty_key="ignore")}, "empty_key was 'match', now 'ignore'"),
            ({"columns": {"relevance": "more"}}, "column of relevance was 'relevance', now 'more'"),
            ({"part_rows": 20}, "part_rows was 10, now 20"),
        ],
    )
    def test_another_computation_is_refused(self, folder, tmp_path, changed, message):
        for path in folder.iterdir():
            table = parquet.read_table(path)
            parquet.write_table(table.append_column("more", table["relevance"]), path, row_group_size=GROUP_ROWS)
        options = {"metrics": METRICS, "out": tmp_path / "out", "part_rows": 10}
        evaluate_dataset(folder, **options)
        with pytest.raises(InputError, match=message):
            evaluate_dataset(folder, **options | changed)

    def test_changed_files_are_refused(self, folder, tmp_path):
        evaluate_dataset(folder, METRICS, out=tmp_path / "out")
        parquet.write_table(rows(FILE_ROWS, 9), folder / "1.parquet")
        with pytest.raises(InputError, match=r"1\.parquet as it was before it changed"):
            evaluate_dataset(folder, METRICS, out=tmp_path / "out")

    @pytest.mark.usefixtures("interrupts")
    def test_ctrl_c_keeps_finished_parts(self, tmp_path):
        (tmp_path / "in").mkdir()
        table = rows(200)
        for number in range(20):
            ids = pa.array([f"q{number}-{row}" for row in range(len(table))])
            parquet.write_table(table.set_column(0, "query_id", ids), tmp_path / "in" / f"{number:02}.parquet")
        code = (
            "import sys, time\n"
            "from metrics_core import evaluate_dataset, pieces\n"
            "write = pieces.PartSink.write\n"
            "pieces.PartSink.write = lambda *args, **kwargs: (time.sleep(0.3), write(*args, **kwargs))\n"
            "evaluate_dataset(sys.argv[1], ['AP', 'RR'], out=sys.argv[2], n_threads=2)\n"
        )
        out = tmp_path / "out"
        process = subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "in", out],
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": "."},
        )
        deadline = time.monotonic() + 60
        while not list(out.glob("part-*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert b"KeyboardInterrupt" in errors
        kept = {path: path.stat().st_mtime_ns for path in out.glob("part-*")}
        assert 0 < len(kept) < 20
        assert not (out / "_summary.json").exists()
        found = evaluate_dataset(tmp_path / "in", ["AP", "RR"], out=out)
        assert len(found.paths) == 20
        assert all(path.stat().st_mtime_ns == modified for path, modified in kept.items())
        assert found.moments == evaluate_dataset(tmp_path / "in", ["AP", "RR"]).moments


def deadly(path):
    """Puts a query in its third row group that kills the first worker who scores it."""
    rows = parquet.read_table(path).to_pylist()
    rows[25] |= {"ground_truth": ["a"], "relevance": [int(MARK)]}
    parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=GROUP_ROWS)


@pytest.fixture
def expected(folder):
    return evaluate_dataset(folder, METRICS, part_rows=10, n_threads=1)


class TestExecutors:
    @pytest.mark.parametrize("n_threads", [1, 2, 30])
    def test_threads(self, folder, tmp_path, expected, n_threads):
        found = evaluate_dataset(folder, METRICS, out=tmp_path / "out", part_rows=10, n_threads=n_threads)
        assert found.moments == expected.moments
        assert_same(found, in_memory(folder))

    def test_any_executor(self, folder, expected):
        with ThreadPoolExecutor(3) as executor:
            assert evaluate_dataset(folder, METRICS, executor=executor, part_rows=10).moments == expected.moments

    def test_a_process_pool(self, folder, tmp_path, expected):
        with ProcessPoolExecutor(2, get_context("spawn")) as executor:
            found = evaluate_dataset(folder, METRICS, out=tmp_path / "out", executor=executor, part_rows=10)
            assert found.moments == expected.moments
            assert_same(found, in_memory(folder))
            parquet.write_table(rows(3).drop_columns("retrieved"), folder / "3.parquet")
            with pytest.raises(FileFormatError, match=r"3\.parquet: there is no column 'retrieved'"):
                evaluate_dataset(folder, METRICS, executor=executor)

    def test_a_worker_of_a_process_pool_dies(self, folder, tmp_path, monkeypatch):
        deadly(folder / "1.parquet")
        monkeypatch.setenv(FLAG, str(tmp_path / "died"))
        options = {"metrics": ["RR", DEADLY], "out": tmp_path / "out", "part_rows": 10}
        with (
            ProcessPoolExecutor(1, get_context("spawn")) as executor,
            pytest.raises(WorkerError, match=r"a worker died \(.*; with out=, finished parts are kept"),
        ):
            evaluate_dataset(folder, executor=executor, **options)
        assert (tmp_path / "died").exists()
        assert not (tmp_path / "out" / "_summary.json").exists()
        kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("part-*")}
        assert len(kept) == 6
        found = evaluate_dataset(folder, **options)
        assert_same(found, in_memory(folder, ["RR", DEADLY]))
        assert all(path.stat().st_mtime_ns == modified for path, modified in kept.items())

    def test_no_executor(self, folder):
        with pytest.raises(
            InputError, match=r"executor must be None, an Executor of concurrent.futures or 'ray', got 'x'"
        ):
            evaluate_dataset(folder, METRICS, executor="x")


class TestFaults:
    def test_a_corrupt_footer(self, folder, tmp_path):
        (folder / "1.parquet").write_bytes((folder / "1.parquet").read_bytes()[:-20])
        with pytest.raises(FileFormatError, match=r"1\.parquet: "):
            evaluate_dataset(folder, METRICS, out=tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_corrupt_pages(self, folder, tmp_path):
        column = parquet.read_metadata(folder / "1.parquet").row_group(2).column(1)
        content = bytearray((folder / "1.parquet").read_bytes())
        content[column.dictionary_page_offset : column.data_page_offset + 20] = b"\xff" * (
            column.data_page_offset + 20 - column.dictionary_page_offset
        )
        (folder / "1.parquet").write_bytes(content)
        with pytest.raises(FileFormatError, match=r"1\.parquet: "):
            evaluate_dataset(folder, METRICS, out=tmp_path / "out", part_rows=20, n_threads=1)
        assert len(list((tmp_path / "out").glob("part-*"))) == 3
        assert not (tmp_path / "out" / "_summary.json").exists()

    def test_other_columns_in_one_file(self, folder):
        table = rows(3)
        others = {
            "there is no column 'ground_truth'": table.drop_columns("ground_truth"),
            "column 'retrieved' must hold lists of strings or lists of integers, got string": table.set_column(
                3, "retrieved", pa.array(["a"] * 3)
            ),
            r"has a column for relevance, .*3\.parquet has none": table.drop_columns("relevance"),
            "the column for query_id holds integers, that of .*0.parquet strings": table.set_column(
                0, "query_id", pa.array([1, 2, 3])
            ),
        }
        for message, table in others.items():
            parquet.write_table(table, folder / "3.parquet")
            with pytest.raises(FileFormatError, match=rf"parquet.*{message}"):
                evaluate_dataset(folder, METRICS)

    def test_lists_of_unequal_length(self, folder):
        table = rows(FILE_ROWS, 1, FILE_ROWS)
        grades = table["relevance"].to_pylist()
        grades[23] = [*grades[23], 1]
        parquet.write_table(
            table.set_column(2, "relevance", pa.array(grades)), folder / "1.parquet", row_group_size=GROUP_ROWS
        )
        with pytest.raises(InputError, match=r"1\.parquet, row 23: query 'q63': 'relevance' has \d values for \d doc"):
            evaluate_dataset(folder, METRICS, part_rows=40)

    @pytest.mark.parametrize(("n_threads", "in_memory"), [(1, 1 << 20), (2, 25), (1, 0)])
    def test_a_query_id_in_two_files(self, folder, tmp_path, monkeypatch, n_threads, in_memory):
        monkeypatch.setattr(distinct, "_IN_MEMORY", in_memory)
        table = rows(FILE_ROWS, 1, FILE_ROWS)
        ids = table["query_id"].to_pylist()
        ids[23] = "q7"
        parquet.write_table(table.set_column(0, "query_id", pa.array(ids)), folder / "1.parquet", row_group_size=10)
        message = r"query id 'q7' is in .*0\.parquet, row 7, and in .*1\.parquet, row 23; ids must be distinct"
        for _ in range(2):  # also where all parts are there
            with pytest.raises(InputError, match=message):
                evaluate_dataset(folder, METRICS, out=tmp_path / "out", part_rows=10, n_threads=n_threads)
        assert not (tmp_path / "out" / "_summary.json").exists()

    def test_equal_fingerprints_of_different_ids(self, folder, monkeypatch):
        from metrics_core import dataset, pieces

        expected = evaluate_dataset(folder, METRICS)
        for module in (dataset, pieces):
            monkeypatch.setattr(module, "fingerprints_of", lambda keys: np.full(keys.starts.size, 7, np.uint64))
        assert evaluate_dataset(folder, METRICS) == expected
        parquet.write_table(rows(FILE_ROWS, 1, FILE_ROWS - 1), folder / "1.parquet")
        with pytest.raises(InputError, match=r"query id 'q39' is in .*0\.parquet, row 39, and in .*1\.parquet, row 0"):
            evaluate_dataset(folder, METRICS)

    def test_a_full_disk(self, folder, tmp_path, monkeypatch):
        writer = Parts.writer
        n_written = 0

        def full(parts, fragment, part, schema):
            nonlocal n_written
            n_written += 1
            if n_written == 3:
                raise OSError(errno.ENOSPC, "No space left on device")
            return writer(parts, fragment, part, schema)

        monkeypatch.setattr(Parts, "writer", full)
        with pytest.raises(OSError, match="No space left on device"):
            evaluate_dataset(folder, METRICS, out=tmp_path / "out", part_rows=10, n_threads=1)
        assert len(list((tmp_path / "out").glob("part-*"))) == 2
        assert not (tmp_path / "out" / "_summary.json").exists()
        monkeypatch.undo()
        assert_same(evaluate_dataset(folder, METRICS, out=tmp_path / "out", part_rows=10), in_memory(folder))

    def test_the_largest_file_that_can_be_written(self, folder, tmp_path):
        """As a full disk, of the kernel's own: what is written beyond 20,000 bytes fails in the middle of a part."""
        pytest.importorskip("resource", reason="needs the limits of POSIX")
        table = rows(5000, 3)
        ids = pa.array([f"a rather long name of query {i}" for i in range(len(table))])
        parquet.write_table(table.set_column(0, "query_id", ids), folder / "1.parquet")
        code = (
            "import resource, sys\n"
            "from metrics_core import evaluate_dataset\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))\n"
            "evaluate_dataset(sys.argv[1], ['AP', 'RR'], out=sys.argv[2], n_threads=1)\n"
        )
        out = tmp_path / "out"
        environment = os.environ | {"PYTHONPATH": "."}
        done = subprocess.run(
            [sys.executable, "-c", code, folder, out], check=False, env=environment, capture_output=True, text=True
        )
        assert f"OSError: [Errno {errno.EFBIG}]" in done.stderr
        assert [path.name for path in out.iterdir() if path.name != "_manifest.json"] == ["part-00000-000000.parquet"]
        assert_same(evaluate_dataset(folder, ["AP", "RR"], out=out), in_memory(folder, ["AP", "RR"]))

    def test_out_is_read(self, folder, tmp_path):
        qrels = tmp_path / "qrels.parquet"
        parquet.write_table(pa.table({"query": ["q"], "document": ["d"], "grade": [1]}), qrels)
        with pytest.raises(InputError, match=r"out is .*1\.parquet, which is read; name another file"):
            evaluate_dataset(folder, METRICS, out=folder / ".." / "in" / "1.parquet")
        run = pa.table({"query": ["q"], "document": ["d"], "score": [1.0]})
        parquet.write_table(run, tmp_path / "run.parquet")
        with pytest.raises(InputError, match=r"out is .*qrels\.parquet, which is read"):
            evaluate_dataset(tmp_path / "run.parquet", METRICS, qrels=qrels, out=qrels)
        assert_same(evaluate_dataset(folder, METRICS), in_memory(folder))

    def test_no_rows(self, tmp_path):
        parquet.write_table(rows(1).slice(0, 0), tmp_path / "a.parquet")
        with pytest.raises(InputError, match=r"there is not a row in .*a\.parquet"):
            evaluate_dataset(tmp_path / "a.parquet", "AP")

    @pytest.mark.parametrize("part_rows", [0, True, 1.5])
    def test_part_rows(self, folder, part_rows):
        with pytest.raises(InputError, match="part_rows must be a positive integer"):
            evaluate_dataset(folder, "AP", part_rows=part_rows)
