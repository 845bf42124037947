"""metrics-core metrics: the catalogue."""

from __future__ import annotations

import json

import pytest

from metrics_core import metric_names
from metrics_core.metrics import registered_metrics


def test_tsv_has_a_line_a_metric(cli):
    header, *lines = cli("metrics").out.splitlines()
    columns = header.split("\t")
    assert columns == ["name", "form", "title", "definition", "parameters", "aggregate", "trec_eval", "source"]
    assert [line.split("\t")[0] for line in lines] == list(metric_names())
    assert all(len(line.split("\t")) == len(columns) for line in lines)
    ndcg = dict(zip(columns, lines[0].split("\t"), strict=True))
    assert ndcg["form"] == "nDCG(dcg, rel, gains)[@k]"
    assert ndcg["trec_eval"] == "ndcg, ndcg_cut_10"


def test_json_has_every_definition(cli):
    entries = json.loads(cli("metrics", "--json").out)
    assert {entry["name"]: entry["definition"] for entry in entries} == {
        metric.name: metric.definition for metric in registered_metrics()
    }


@pytest.mark.parametrize(
    ("name", "canonical"),
    [("nDCG", "nDCG"), ("ndcg_cut_10", "nDCG"), ("mrr@10", "RR"), ("err", "ERR"), ("P", "P"), ("R@5", "R")],
)
def test_one_metric_by_any_spelling(cli, name, canonical):
    assert json.loads(cli("metrics", name, "--json").out)["name"] == canonical


def test_a_required_parameter_is_marked(cli):
    assert json.loads(cli("metrics", "RBP", "--json").out)["parameters"]["p"] == {
        "definition": "persistence",
        "required": True,
        "default": None,
    }
    assert "persistence (required)" in cli("metrics", "RBP", "--format", "table").out


def test_a_default_is_told_apart_from_the_definition(cli):
    out = " ".join(cli("metrics", "nDCG", "--format", "table").out.split())
    assert "2^grade - 1 ('exp-log2'); default log2" in out
    assert "dcg=log2: gain grade" in cli("metrics", "nDCG", "--format", "tsv").out


def test_table_has_title_definition_and_source_of_each(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    out = cli("metrics", "--format", "table").out
    for metric in registered_metrics():
        assert all(text in out for text in (metric.name, metric.title, metric.definition, metric.source))
