"""What an evaluation does to the process around it: nothing; and where it still works."""

from __future__ import annotations

import ast
import copy
import logging
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import metrics_core
from metrics_core import Document, IdArrays, Policies, RankedBatch, Scores, evaluate, pack

ROOT = Path(metrics_core.__file__).parents[1]
QRELS = {f"q{q}": {f"d{d}": (d + q) % 3 for d in range(0, 30, 3)} for q in range(20)}
RUN = {f"q{q}": {f"d{d}": (d * 7 + q) % 10 / 2 for d in range(25)} for q in range(20)}
METRICS = ["AP", "nDCG@5", "RR", "Bpref", "ERR(max_rel=4)", "NumRelRet"]
HEAVY = {"numba", "torch", "pyarrow", "openai", "pandas", "rich", "scipy", "haystack", "altair", "jinja2"}


COMPILED = "import metrics_core.compile; metrics_core.compile.STEPS_IN_PYTHON = 0\n"  # as with many queries


def python(code, *, environment=()):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd="/",
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), **dict(environment)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def evaluated(_=None):
    return evaluate(QRELS, RUN, METRICS).values


class TestThreadsAndProcesses:
    def test_several_threads_at_once(self):
        expected = evaluated()
        with ThreadPoolExecutor(8) as executor:
            for values in executor.map(evaluated, range(40)):
                np.testing.assert_array_equal(values, expected)

    def test_one_batch_from_several_threads(self):
        batch = pack(QRELS, RUN)
        expected = {name: batch.score(name) for name in METRICS}
        with ThreadPoolExecutor(4) as executor:
            for name, values in zip(METRICS * 5, executor.map(batch.score, METRICS * 5), strict=True):
                np.testing.assert_array_equal(values, expected[name])

    @pytest.mark.parametrize("before", ["", COMPILED], ids=["in Python", "compiled"])
    def test_first_evaluation_of_a_process_from_several_threads(self, before):
        code = (
            f"{before}from concurrent.futures import ThreadPoolExecutor\n"
            "from metrics_core import evaluate\n"
            "def score(_): return evaluate({'q': {'a': 1}}, {'q': {'x': 2., 'a': 1.}}, ['AP', 'nDCG', 'RR'])['AP'][0]\n"
            "with ThreadPoolExecutor(6) as executor: print(set(map(float, executor.map(score, range(12)))))"
        )
        done = python(code)
        assert (done.stdout, done.stderr) == ("{0.5}\n", "")

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.parametrize("before", ["import", "evaluation", "evaluation on threads"])
    def test_fork(self, before):
        first = {
            "import": "",
            "evaluation": "score()\n",
            "evaluation on threads": "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(2) as executor: list(executor.map(lambda _: score(), range(4)))\n",
        }[before]
        code = (
            f"{COMPILED}import os\n"
            "from metrics_core import evaluate, IdArrays\n"
            "judged, run = IdArrays([[1]] * 3000), IdArrays([[2, 1, *range(3, 203)]] * 3000)\n"
            "def score(): return evaluate(judged, run, ['AP', 'RR'], n_threads=2).values.mean()\n"
            f"{first}"
            "child = os.fork()\n"
            "if not child: os._exit(int(score() != 0.5))\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float(score()))"
        )
        done = python(code)
        assert (done.stdout, done.stderr) == ("0 0.5\n", "")

    def test_a_pool_of_spawned_processes(self):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            scores = pool.apply(evaluate, (QRELS, RUN, METRICS))
        np.testing.assert_array_equal(scores.values, evaluated())


class TestPickling:
    def test_scores(self):
        scores = evaluate(QRELS, RUN, METRICS, policies=Policies(missing="skip"))
        copied = pickle.loads(pickle.dumps(scores))
        assert isinstance(copied, Scores)
        assert copied.to_dict() == scores.to_dict()
        assert (copied.policies, copied.metrics, copied.aggregate()) == (
            scores.policies,
            scores.metrics,
            scores.aggregate(),
        )
        assert copy.deepcopy(scores).mean() == scores.mean()

    @pytest.mark.parametrize("ties", ["docid_desc", "expected"])
    def test_batch(self, ties):
        batch = pack(QRELS, RUN, policies=Policies(ties=ties))
        copied = pickle.loads(pickle.dumps(batch))
        assert isinstance(copied, RankedBatch)
        assert copied.score("AP").tolist() == batch.score("AP").tolist()
        assert (copied.policies, list(copied.query_ids)) == (batch.policies, list(batch.query_ids))

    def test_batches_of_arrays_and_documents(self):
        for batch in (
            pack(IdArrays([[1]]), IdArrays([[2, 1]])),
            pack([[Document(content="a")]], [[Document(content="b"), Document(content="a")]]),
        ):
            assert pickle.loads(pickle.dumps(batch)).score("RR").tolist() == [1 / 2]


class TestImport:
    @pytest.mark.parametrize(
        "statement",
        [
            "import metrics_core",
            "from metrics_core import Policies, AnswerExactMatchEvaluator",
            "from metrics_core import Document, DocumentMRREvaluator, metric_names, parse; parse('nDCG@10')",
            "from metrics_core import evaluate, read_run, IdArrays, Metric",
            "from metrics_core import compare, confidence_interval, power, topics_needed",
        ],
    )
    def test_pulls_in_nothing_heavy(self, statement):
        done = python(f"{statement}\nimport sys\nprint(*{HEAVY!r} & {{name.split('.')[0] for name in sys.modules}})")
        assert (done.stdout, done.stderr) == ("\n", "")

    def test_bare_import_pulls_in_nothing_at_all(self):
        done = python(
            "import metrics_core, sys\nprint(*{name for name in sys.modules if name.startswith('metrics_core')})"
        )
        assert (done.stdout, done.stderr) == ("metrics_core\n", "")
        assert python("import metrics_core, sys\nprint('numpy' in sys.modules)").stdout == "False\n"

    def test_answers_are_evaluated_without_numba(self):
        done = python(
            "from metrics_core import AnswerExactMatchEvaluator\n"
            "AnswerExactMatchEvaluator().run(ground_truth_answers=['a'], predicted_answers=['a'])\n"
            "import sys\nprint('numba' in sys.modules)"
        )
        assert (done.stdout, done.stderr) == ("False\n", "")

    def test_every_exported_name_exists(self):
        assert len(set(metrics_core.__all__)) == len(metrics_core.__all__)
        for name in metrics_core.__all__:
            assert getattr(metrics_core, name) is getattr(metrics_core, name)
        assert dir(metrics_core) == sorted(metrics_core.__all__)
        with pytest.raises(AttributeError, match=r"^module 'metrics_core' has no attribute 'evaluat'$"):
            metrics_core.evaluat  # noqa: B018
        done = python("from metrics_core import *\nprint(evaluate, Policies, __version__)")
        assert (done.returncode, done.stderr) == (0, "")

    def test_type_checkers_see_the_names_that_are_loaded_lazily(self):
        tree = ast.parse(Path(metrics_core.__file__).read_text())
        guard = next(node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        checked = {
            (statement.module.removeprefix("metrics_core."), alias.asname or alias.name)
            for statement in guard.body
            if isinstance(statement, ast.ImportFrom)
            for alias in statement.names
        }
        lazy = {(module, name) for module, names in metrics_core._HOMES.items() for name in names}
        assert checked == lazy
        assert {name for _, name in lazy} | {"__version__"} == set(metrics_core.__all__)


class TestNothingProcessWideChanges:
    def test_state(self):
        import numba

        def state():
            return (
                numba.get_num_threads(),
                np.geterr(),
                np.random.get_state()[1].tolist(),  # noqa: NPY002  # the global one
                random.getstate(),
                list(warnings.filters),
                [(type(each), each.level) for each in logging.getLogger().handlers],
                logging.getLogger().level,
                logging.getLogger("metrics_core").handlers,
                logging.getLogger("numba").level,
                {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
                Path.cwd(),
                np.get_printoptions(),
            )

        before = state()
        evaluate(QRELS, RUN, METRICS, n_threads=3)
        evaluate(QRELS, RUN, "AP", policies=Policies(ties="expected", score_dtype="float32"))
        evaluate([[Document(content="a")]], [[Document(content="a")]], METRICS)
        evaluate(IdArrays([[1, -1]]), IdArrays([[1, 2]], scores=[[1e300, 0]]), METRICS, policies="beir")
        assert state() == before

    def test_in_a_fresh_process(self):
        """Where the first import of numba would show as well."""
        code = (
            "import logging, warnings, os, numpy as np, threading\n"
            "def state(): return (np.geterr(), logging.root.handlers[:], logging.root.level, warnings.filters[:],"
            " dict(os.environ), threading.active_count(), np.random.get_state()[1].tolist())\n"
            "before = state()\n"
            f"{COMPILED}from metrics_core import evaluate\n"
            "evaluate({'q': {'a': 1}}, {'q': {'a': 1.}}, ['AP', 'nDCG'], n_threads=2)\n"
            "print(state() == before)"
        )
        done = python(code)
        assert (done.stdout, done.stderr) == ("True\n", "")

    def test_no_warnings_with_any_setting_of_numpy(self):
        with np.errstate(all="raise"):
            np.testing.assert_array_equal(evaluated(), evaluated())
            evaluate(
                QRELS,
                {"q1": {"d1": 1e300, "d2": -1e300, "d3": 1e-320}},
                METRICS,
                policies=Policies(score_dtype="float32"),
            )


class TestInputsAreNotMutated:
    def test_dicts(self):
        qrels, run = copy.deepcopy(QRELS), copy.deepcopy(RUN)
        run["q1"]["q1"] = 5.0
        for policies in ("trec_eval", "beir", "ranx", "haystack"):
            before = copy.deepcopy((qrels, run))
            evaluate(qrels, run, METRICS, policies=policies)
            assert (qrels, run) == before
            assert [list(part) for part in run.values()] == [list(part) for part in before[1].values()]

    def test_ranked_lists(self):
        run = {"q1": ["d1", "q1", "d2", "d1"]}
        evaluate(QRELS, run, METRICS, policies=Policies("beir", duplicates="first_compact"))
        assert run == {"q1": ["d1", "q1", "d2", "d1"]}

    def test_documents(self):
        truth = [[Document(content="a", score=2), Document(content="a", score=1)], []]
        retrieved = [[Document(content="a"), Document(content=None)], [Document(content="b")]]
        before = copy.deepcopy((truth, retrieved))
        evaluate(truth, retrieved, METRICS)
        assert [[repr(each) for each in documents] for side in (truth, retrieved) for documents in side] == [
            [repr(each) for each in documents] for side in before for documents in side
        ]

    @pytest.mark.parametrize("ties", ["docid_desc", "expected", "input"])
    def test_arrays(self, ties):
        ids, judged = np.array([[3, 1, 2], [9, 9, 8]]), np.array([[2, 3], [8, 8]])
        scores, grades = np.array([[1.0, 2.0, 2.0], [1.0, 3.0, 2.0]]), np.array([[0.0, 2.0], [1.0, 3.0]])
        arrays = (ids, judged, scores, grades)
        before = [array.copy() for array in arrays]
        for array in arrays:
            array.flags.writeable = False
        evaluate(
            IdArrays(judged, grades=grades),
            IdArrays(ids, scores=scores),
            ["AP", "nDCG"],
            policies=Policies(ties=ties, duplicates="first_compact", duplicate_judgements="max"),
        )
        for array, copied in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, copied)

    def test_prepared_objects_and_results_do_not_share_memory(self):
        grades = np.array([[1.0, 0.0], [0.0, 2.0]])
        judged, run = IdArrays([[1, 2], [1, 2]], grades=grades), IdArrays([[2, 1], [1, 2]])
        first = evaluate(judged, run, METRICS)
        first.values[:] = -1
        second = evaluate(judged, run, METRICS)
        assert (second.values >= 0).all()
        assert grades.tolist() == [[1, 0], [0, 2]]


CODE = (
    f"{COMPILED}from metrics_core import evaluate\n"
    "print(evaluate({'q': {'a': 1, 'b': 2}}, {'q': {'x': 2., 'a': 1., 'b': 1.}}, ['AP', 'RR', 'nDCG'])['RR'][0])"
)
# One kernel, which compiles fast; numba has loaded all of itself before the rights to do so are given up.
ONE_KERNEL = """
import os, resource, numba, numpy as np
from metrics_core.compile import at_once, compiled
from metrics_core.kernels.join import place_ties
numba.njit(lambda: 0)()
{before}
ranked = np.zeros((1, 2))
compiled(place_ties, at_once)(np.array([[0, 0, 2]]), np.array([1, 0]), np.array([[1.0, 2.0]]), ranked)
print(ranked.tolist() == [[2, 1]])
"""


class TestCache:
    def test_unwritable_cache_and_home(self):
        nowhere = {"NUMBA_CACHE_DIR": "/dev/null/x", "HOME": "/dev/null/x", "XDG_CACHE_HOME": "/dev/null/x"}
        done = python(CODE, environment=nowhere)
        assert (done.stdout, done.stderr) == ("0.5\n", "")

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to become another user")
    @pytest.mark.parametrize(
        "environment",
        [{}, {"HOME": "/nonexistent"}, {"HOME": "/nonexistent", "NUMBA_CACHE_DIR": "/nonexistent/cache"}],
        ids=["all of root's", "no home", "no cache"],
    )
    def test_a_user_who_may_write_nowhere(self, environment):
        nobody = "os.setgroups([]); os.setgid(65534); os.setuid(65534)"
        done = python(ONE_KERNEL.format(before=nobody), environment=environment)
        assert (done.stdout, done.stderr) == ("True\n", "")

    @pytest.mark.skipif(sys.platform == "win32", reason="needs limits of resources")
    def test_a_full_disk(self, tmp_path):
        """The folder can be written to, the file cannot."""
        full = "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
        done = python(ONE_KERNEL.format(before=full), environment={"NUMBA_CACHE_DIR": str(tmp_path / "cache")})
        assert (done.stdout, done.stderr) == ("True\n", "")

    def test_a_cache_of_one_s_own(self, tmp_path):
        for _ in range(2):
            done = python(ONE_KERNEL.format(before=""), environment={"NUMBA_CACHE_DIR": str(tmp_path / "cache")})
            assert (done.stdout, done.stderr) == ("True\n", "")
        assert list((tmp_path / "cache").rglob("*.nbi"))
