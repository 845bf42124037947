"""Parts: whole or not there, and only of one computation."""

from __future__ import annotations

import errno
import os

import pytest

from metrics_core import parts as parts_module
from metrics_core.errors import InputError
from metrics_core.parts import Fragment, Parts, merge, whole_or_not_at_all

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'metrics-core[sas]'")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def files(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(name)
    return [tmp_path / name for name in ("a.csv", "b.csv")]


def opened(folder, files, **computed):
    return Parts(folder, {"model": "m", "columns": ("x", "y")} | computed, map(Fragment.of, files))


def table(*values):
    return pa.table({"score": list(values)})


def test_the_path_is_named_where_it_cannot_be_written(tmp_path):
    path = tmp_path / "absent" / "file"
    with pytest.raises(FileNotFoundError) as refusal, whole_or_not_at_all(path) as temporary:
        temporary.write_text("")
    assert refusal.value.filename == str(path)


def test_parts_are_found_again(tmp_path, files):
    first = opened(tmp_path / "out", files)
    first.write(1, 0, table(0.5))
    first.write(0, 11, table(0.25))
    first.write(0, 2, table(0.75))
    again = opened(tmp_path / "out", files)
    assert [again.done(*each) for each in ((0, 2), (0, 11), (1, 0), (0, 0), (1, 1))] == [True] * 3 + [False] * 2
    assert [parquet.read_table(path)["score"].to_pylist() for path in again.paths()] == [[0.75], [0.25], [0.5]]
    merge(again.paths(), tmp_path / "all.parquet")
    assert parquet.read_table(tmp_path / "all.parquet")["score"].to_pylist() == [0.75, 0.25, 0.5]
    again.remove()
    assert not again.folder.exists()


def test_another_computation_is_refused(tmp_path, files, monkeypatch):
    out = tmp_path / "out"
    opened(out, files)

    def refused(computed, files, message):
        with pytest.raises(InputError) as caught:
            opened(out, files, **computed)
        assert message in str(caught.value)
        assert str(caught.value).endswith("; name another folder, or remove this one")

    refused({"model": "n"}, files, "another computation: model was 'm', now 'n'")
    refused({"prompt": "p"}, files, "another computation: prompt was None, now 'p'")
    refused({}, files[:1], "b.csv, too, which is not among the files now")
    refused({}, files[::-1], "the same files in another order")
    (tmp_path / "c.csv").touch()
    refused({}, [*files, tmp_path / "c.csv"], "c.csv is new")
    times = files[0].stat()
    files[0].write_text("other")
    os.utime(files[0], ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    refused({}, files, "a.csv as it was before it changed")  # the size is the same
    monkeypatch.setattr(parts_module, "__version__", "9.9")
    refused({}, files, "version 0.1.0, this is 9.9")


def test_a_folder_of_something_else_is_left_alone(tmp_path, files):
    with pytest.raises(InputError, match="is there and is no folder of earlier parts"):
        opened(tmp_path, files)
    with pytest.raises(InputError, match="is there and is no folder of earlier parts"):
        opened(files[0], files)
    (tmp_path / "empty").mkdir()
    opened(tmp_path / "empty", files)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_half_a_part_never_counts(tmp_path, files, monkeypatch, error):
    parts = opened(tmp_path / "out", files)
    parts.write(0, 0, table(0.5))
    write_table = parquet.write_table

    def fails(written, path):
        write_table(written, path)
        raise error

    monkeypatch.setattr(parquet, "write_table", fails)
    with pytest.raises(type(error)):
        parts.write(0, 1, table(0.25))
    monkeypatch.undo()
    assert [path.name for path in parts.folder.iterdir() if path.name != "_manifest.json"] == [
        "part-00000-000000.parquet"
    ]
    (parts.folder / ".part-00000-000001.parquet.cut-off.tmp").write_bytes(b"PAR1")  # as after a power cut
    again = opened(tmp_path / "out", files)
    assert [again.done(0, 0), again.done(0, 1)] == [True, False]
    assert len(again.paths()) == 1
    again.finish({"score": 0.5})
    again.remove()
    assert not again.folder.exists()
