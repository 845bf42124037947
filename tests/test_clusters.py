"""Data sets on small local clusters, of Ray and of Dask, also where a worker dies."""

from __future__ import annotations

import pytest

from metrics_core import InputError, evaluate_dataset
from tests.deadly import DEADLY, FLAG
from tests.test_dataset import METRICS, assert_same, deadly, folder, in_memory  # noqa: F401  # folder is a fixture

pa = pytest.importorskip("pyarrow", reason="needs the arrow extra")
parquet = pytest.importorskip("pyarrow.parquet")
OPTIONS = {"part_rows": 10}


METRIC = ["RR", DEADLY]


@pytest.fixture
def died(folder, tmp_path, monkeypatch):  # noqa: F811
    """A file that is there once a worker died on the data set."""
    deadly(folder / "1.parquet")
    monkeypatch.setenv(FLAG, str(tmp_path / "died"))
    return tmp_path / "died"


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


def check_death(folder, tmp_path, executor, died):  # noqa: F811
    found = evaluate_dataset(folder, METRIC, executor=executor, out=tmp_path / "out", **OPTIONS)
    assert died.exists()
    assert len(found.paths) == 12
    assert not list((tmp_path / "out").glob(".*"))
    assert_same(found, in_memory(folder, METRIC))


class TestRay:
    """The cluster is a local one of our own; it is started once for a call, as users would."""

    def test_the_same_scores(self, folder, tmp_path):  # noqa: F811
        ray = pytest.importorskip("ray", reason="needs the ray extra")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
            patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        try:
            check(folder, tmp_path, "ray")
            assert ray.is_initialized()
        finally:
            ray.shutdown()

    def test_a_worker_dies(self, folder, tmp_path, died):  # noqa: F811
        ray = pytest.importorskip("ray", reason="needs the ray extra")
        check_death(folder, tmp_path, "ray", died)
        assert not ray.is_initialized()


class TestDask:
    @pytest.fixture
    def client(self, tmp_path, died):
        distributed = pytest.importorskip("distributed", reason="needs distributed")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path, silence_logs=50
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client

    def test_the_same_scores(self, client, folder, tmp_path, died):  # noqa: F811
        died.touch()
        check(folder, tmp_path, client.get_executor())

    def test_a_worker_dies(self, client, folder, tmp_path, died):  # noqa: F811
        check_death(folder, tmp_path, client.get_executor(), died)
