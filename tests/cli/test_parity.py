"""--format trec against trec_eval's own output, line by line."""

from __future__ import annotations

import csv
import gzip

import pytest

from metrics_core import MetricNameError, parse
from metrics_core.cli import main
from metrics_core.metrics import IPrec, IPrec11, trec_eval_name


def _is_ours(name: str) -> bool:
    try:
        metric = parse(name)
    except MetricNameError:
        return False
    # IPrec is defined without trec_eval's rounding of recall levels.
    return trec_eval_name(metric) == name and metric.name not in (IPrec.name, IPrec11.name)


@pytest.mark.parametrize(("reference", "missing"), [("qc", "zero"), ("q", "skip")])
@pytest.mark.parametrize("pair", ["te-trunc", "dl19-colbert", "web-valid.wt11"])
def test_lines_equal_trec_evals(shared, capsys, pair, reference, missing):
    data = shared / "data"
    with (data / "pairs.tsv").open() as table:
        paths = next(row for row in csv.DictReader(table, delimiter="\t") if row["id"] == pair)
    with gzip.open(data / "reference" / f"{pair}.{reference}.txt.gz", "rt") as file:
        lines = file.read().splitlines()
    names = [name for name in dict.fromkeys(line.split()[0] for line in lines) if _is_ours(name)]
    assert len(names) > 50
    metrics = [word for name in names for word in ("-m", name)]
    files = [str(data / paths["qrels"]), str(data / paths["run"])]
    assert main(["evaluate", *files, "--format", "trec", "-q", "--missing", missing, *metrics]) == 0
    ours = capsys.readouterr().out.splitlines()
    theirs = [line for line in lines if line.split()[0] in names]
    # trec_eval's measures come in an order of its own; topics come in the same.
    assert list(dict.fromkeys(map(_topic, ours))) == list(dict.fromkeys(map(_topic, theirs)))
    assert sorted(ours) == sorted(theirs)


def _topic(line: str) -> str:
    return line.split("\t")[1]
