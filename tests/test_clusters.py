"""Data sets on small local clusters, of Ray and of Dask, also where a worker dies."""

from __future__ import annotations

import pytest

from metrics_core import InputError, evaluate_dataset, execution
from tests.deadly import DEADLY, FLAG
from tests.test_dataset import METRICS, assert_same, deadly, folder, in_memory  # noqa: F401  # folder is a fixture

pa = pytest.importorskip("pyarrow", reason="needs the arrow extra")
parquet = pytest.importorskip("pyarrow.parquet")

OPTIONS = {"part_rows": 10}
METRIC = ["RR", DEADLY]


@pytest.fixture(scope="class")
def flag(tmp_path_factory):
    """A file that is there once a worker died; the cluster's processes, which begin later, know it."""
    path = tmp_path_factory.mktemp("flag") / "died"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FLAG, str(path))
        yield path


def check(folder, tmp_path, executor):  # noqa: F811
    expected = evaluate_dataset(folder, METRICS, **OPTIONS)
    found = evaluate_dataset(folder, METRICS, executor=executor, out=tmp_path / "out", **OPTIONS)
    assert found.moments == expected.moments
    assert_same(found, in_memory(folder))
    table = parquet.read_table(folder / "2.parquet")
    grades = [[1] * 9, *table["relevance"].to_pylist()[1:]]
    parquet.write_table(table.set_column(2, "relevance", pa.array(grades)), folder / "2.parquet")
    with pytest.raises(
        InputError, match=r"^\S*2\.parquet, row 0: query 'q80': 'relevance' has 9 values for \d documents"
    ):
        evaluate_dataset(folder, METRICS, executor=executor, **OPTIONS)


def check_death(folder, tmp_path, executor, flag):  # noqa: F811
    deadly(folder / "1.parquet")
    found = evaluate_dataset(folder, METRIC, executor=executor, out=tmp_path / "out", **OPTIONS)
    assert flag.exists()
    assert len(found.paths) == 12
    assert not list((tmp_path / "out").glob(".*"))
    assert_same(found, in_memory(folder, METRIC))


@pytest.fixture(scope="class")
def own_ray(flag):
    """The local cluster that is started where the process is connected to none; the calls within connect to it."""
    ray = pytest.importorskip("ray", reason="needs the extra: pip install 'metrics-core[ray]'")
    with execution._ray():
        yield ray
    assert not ray.is_initialized()


class TestRay:
    def test_the_same_scores(self, own_ray, folder, tmp_path):  # noqa: F811
        check(folder, tmp_path, "ray")
        assert own_ray.is_initialized()

    def test_a_worker_dies(self, own_ray, flag, folder, tmp_path):  # noqa: F811
        check_death(folder, tmp_path, "ray", flag)


@pytest.fixture(scope="class")
def client(tmp_path_factory, flag):
    distributed = pytest.importorskip("distributed", reason="needs the extra: pip install 'metrics-core[dask]'")
    scratch = tmp_path_factory.mktemp("dask")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=scratch, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


class TestDask:
    def test_the_same_scores(self, client, folder, tmp_path):  # noqa: F811
        check(folder, tmp_path, client.get_executor())

    def test_a_worker_dies(self, client, flag, folder, tmp_path):  # noqa: F811
        check_death(folder, tmp_path, client.get_executor(), flag)


def test_ray_is_not_installed(folder, monkeypatch):  # noqa: F811
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ImportError, match=r"executor='ray' needs Ray: pip install 'metrics-core\[ray\]'"):
        evaluate_dataset(folder, METRICS, executor="ray")
