"""metrics-core demo: the bundled files evaluated, with the lines that do the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from metrics_core.cli.output import drawn, write
from metrics_core.policies import Policies

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import ConsoleRenderable, RenderableType

    from metrics_core.cli.runs import Evaluation

QRELS, BM25, DENSE = "qrels.txt", "bm25.run", "dense.run"
_N_DIFFERENT = 5  # questions shown
_NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Example:
    """An evaluation that the demo shows: as a command, and its result."""

    metrics: tuple[str, ...]
    runs: tuple[str, ...] = (BM25, DENSE)
    per_query: bool = False
    policies: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """What to type for the result in the folder of the files, in lines that fit a terminal."""
        options: list[tuple[str, ...]] = [("-m", metric) for metric in self.metrics]
        options += [("--per-query",)] if self.per_query else []
        options += [(f"--{name}", value) for name, value in self.policies.items()]
        words = ["metrics-core", "evaluate", QRELS, *self.runs, *map(shlex.join, options)]
        # An option and its value stay on one line: wrap() breaks at spaces, not at non-breaking ones.
        lines = wrap(" ".join(word.replace(" ", _NO_BREAK) for word in words), 70, break_on_hyphens=False)
        return " \\\n    ".join(lines).replace(_NO_BREAK, " ")

    def evaluated(self, folder: Path, **policies: Any) -> Evaluation:
        """The result, under these policies if others are given."""
        from metrics_core.cli.runs import evaluate_files

        runs = [str(folder / run) for run in self.runs]
        return evaluate_files(str(folder / QRELS), runs, self.metrics, Policies(**(policies or self.policies)))


TWO_RUNS = Example(("nDCG@10", "AP", "RR", "P@5", "ERR(max_rel=3)@10"))
DIFFERENCES = Example(("nDCG@10",), per_query=True)
MISSING = Example(("nDCG@10",), policies={"missing": "skip"})
TIES = Example(("nDCG@10", "AP", "RR"), (BM25,), policies={"ties": "expected"})
PYTHON = """\
from metrics_core import Document, DocumentNDCGEvaluator
oil = Document(content="Oil the chain.", score=3)
wash = Document(content="Wash the bike.", score=1)
DocumentNDCGEvaluator().run([[oil, wash]], [[wash, oil]])["score"]"""


@click.command("demo")
def demo_command() -> None:
    """Evaluates two small runs, and lists of documents, that come with the package."""
    with as_file(files("metrics_core") / "demo") as folder:
        texts = json.loads((folder / "documents.json").read_text("utf-8"))
        sections = (
            _files(folder),
            _two_runs(folder),
            _differences(folder, texts["questions"]),
            _missing(folder),
            _ties(folder),
            _documents(folder, texts),
        )
        write(drawn(*sections))


def _files(folder: Path) -> RenderableType:
    return _section(
        "The files",
        "Sixteen questions about bicycles, judgements graded from 0 to 3, and two runs of up to ten documents, all "
        "made up. The commands below work in their folder:",
        [f"cd {shlex.quote(str(folder))}"],
    )


def _two_runs(folder: Path) -> RenderableType:
    from metrics_core.cli.tables import notes, runs_table

    evaluation = TWO_RUNS.evaluated(folder)
    return _section("Two runs", [TWO_RUNS.command], runs_table(evaluation), notes(evaluation))


def _differences(folder: Path, questions: Mapping[str, str]) -> RenderableType:
    from metrics_core.cli.tables import empty_table, value_cell

    bm25, dense = (run.per_query.to_dict() for run in DIFFERENCES.evaluated(folder).runs)
    pairs = {query: (bm25[query]["nDCG@10"], dense[query]["nDCG@10"]) for query in bm25}
    most_different = sorted(pairs, key=lambda query: -abs(pairs[query][0] - pairs[query][1]))[:_N_DIFFERENT]
    table = empty_table("nDCG@10", DIFFERENCES.runs)
    for query in most_different:
        cells = (value_cell(value, "mean", best=value == max(pairs[query])) for value in pairs[query])
        table.add_row(f"{query} {questions[query]}", *cells)
    return _section(
        "Where they differ most",
        "Of the scores that this prints, those that differ most:",
        [DIFFERENCES.command],
        table,
    )


def _missing(folder: Path) -> RenderableType:
    outcomes = {treatment: MISSING.evaluated(folder, missing=treatment) for treatment in ("zero", "skip")}
    zero, skip = (max(each.runs, key=lambda run: run.scores.mean()["nDCG@10"]).name for each in outcomes.values())
    (lacking,) = (run for run in outcomes["zero"].runs if run.scores.missing)
    return _section(
        "A query without a ranking",
        f"{lacking.name} has nothing for {' and '.join(lacking.scores.missing or ())}. Scored as an empty ranking, as "
        f"by trec_eval -c, {zero} is ahead; left out, as some tools do without a word, {skip} is. Zero is the default "
        "here, and what is left out is counted. The second line of the table is what the command prints:",
        [MISSING.command],
        _policy_table("missing", outcomes, [f"nDCG@10 {run}" for run in MISSING.runs]),
    )


def _ties(folder: Path) -> RenderableType:
    outcomes = {treatment: TIES.evaluated(folder, ties=treatment) for treatment in ("docid_desc", "input", "expected")}
    return _section(
        "Tied scores",
        f"The scores of {BM25} are whole numbers, many of them equal, and the figures depend on which document of a "
        "tie comes first: by document id as in trec_eval, as in the file, or the mean over all orders, which is "
        "exact. The last line of the table is what the command prints:",
        [TIES.command],
        _policy_table("ties", outcomes, TIES.metrics),
    )


def _documents(folder: Path, texts: Mapping[str, Any]) -> RenderableType:
    from metrics_core.cli.tables import empty_table, value_cell

    table = empty_table("evaluator", ["score"])
    for name, score in evaluator_scores(folder, texts).items():
        table.add_row(name, value_cell(score, "mean"))
    return _section(
        "Lists of documents and answers",
        f"The judgements and {BM25} once more, as a RAG pipeline has them: lists of documents, compared by their "
        "content, for the questions with relevant ones; and six answers. An evaluator is called like this:",
        PYTHON.splitlines(),
        table,
    )


def evaluator_scores(folder: Path, texts: Mapping[str, Any]) -> dict[str, float]:
    """What the five evaluators say about the documents that BM25 found, and about the answers."""
    from metrics_core import evaluators
    from metrics_core.documents import Document
    from metrics_core.trec import read_qrels, read_run

    content = texts["documents"]
    run = read_run(folder / BM25).to_dict()
    ground_truth, retrieved = [], []
    for query, grades in read_qrels(folder / QRELS).to_dict().items():
        if relevant := {document: grade for document, grade in grades.items() if grade > 0}:
            ground_truth.append([Document(content=content[each], score=grade) for each, grade in relevant.items()])
            retrieved.append([Document(content=content[each]) for each in run.get(query, ())])
    answers = texts["answers"].values()
    golds, predictions = [each["gold"] for each in answers], [each["predicted"] for each in answers]
    shown: dict[str, Any] = {
        "DocumentNDCGEvaluator()": evaluators.DocumentNDCGEvaluator(),
        "DocumentMAPEvaluator()": evaluators.DocumentMAPEvaluator(),
        "DocumentMRREvaluator()": evaluators.DocumentMRREvaluator(),
        "DocumentRecallEvaluator()": evaluators.DocumentRecallEvaluator(),
        'DocumentRecallEvaluator("multi_hit")': evaluators.DocumentRecallEvaluator("multi_hit"),
        "AnswerExactMatchEvaluator()": evaluators.AnswerExactMatchEvaluator(),
        'AnswerExactMatchEvaluator(normalize="squad")': evaluators.AnswerExactMatchEvaluator(normalize="squad"),
    }
    return {
        name: evaluator.run(*((golds, predictions) if name.startswith("Answer") else (ground_truth, retrieved)))[
            "score"
        ]
        for name, evaluator in shown.items()
    }


def _policy_table(policy: str, outcomes: Mapping[str, Evaluation], columns: Sequence[str]) -> ConsoleRenderable:
    from metrics_core.cli.tables import aggregate_cell, empty_table

    table = empty_table(policy, columns)
    for treatment, evaluation in outcomes.items():
        totals = [total for run in evaluation.runs for total in run.scores.aggregate().values()]
        table.add_row(treatment, *(aggregate_cell(total, "mean") for total in totals))
    return table


def _section(title: str, *parts: str | list[str] | ConsoleRenderable) -> RenderableType:
    """A heading, then prose (str), lines to type (list) and tables."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    shown: list[RenderableType] = [Text(f"\n{title}", "bold magenta")]
    for part in parts:
        if isinstance(part, str):
            shown.append(Padding(part, (0, 1), expand=False))
        elif isinstance(part, list):
            prompt = "$" if part[0].startswith(("cd", "metrics-core")) else ">>>"
            # In one piece, so that they can be copied; a terminal breaks lines where it must.
            shown += [
                Text.assemble((f" {prompt} ", "dim"), (line, "cyan"), overflow="ignore", no_wrap=True) for line in part
            ]
        else:
            shown.append(part)
    return Group(*shown)
