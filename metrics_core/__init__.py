"""A vectorised engine of retrieval and answer metrics.

Importing the package loads nothing else; each name below is imported from its module at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metrics_core.aggregate import Aggregate as Aggregate
    from metrics_core.batch import RankedBatch as RankedBatch
    from metrics_core.comparison import (
        Comparison as Comparison,
        Difference as Difference,
        compare as compare,
        confidence_interval as confidence_interval,
    )
    from metrics_core.dataset import DatasetScores as DatasetScores, evaluate_dataset as evaluate_dataset
    from metrics_core.documents import Document as Document
    from metrics_core.errors import (
        FileFormatError as FileFormatError,
        InputError as InputError,
        MetricNameError as MetricNameError,
        MetricsError as MetricsError,
        ModelError as ModelError,
        PolicyError as PolicyError,
        WorkerError as WorkerError,
    )
    from metrics_core.evaluation import evaluate as evaluate, pack as pack
    from metrics_core.evaluators import (
        AnswerExactMatchEvaluator as AnswerExactMatchEvaluator,
        AnswerF1Evaluator as AnswerF1Evaluator,
        DocumentMAPEvaluator as DocumentMAPEvaluator,
        DocumentMetricsEvaluator as DocumentMetricsEvaluator,
        DocumentMRREvaluator as DocumentMRREvaluator,
        DocumentNDCGEvaluator as DocumentNDCGEvaluator,
        DocumentRecallEvaluator as DocumentRecallEvaluator,
        RecallMode as RecallMode,
        SASEvaluator as SASEvaluator,
    )
    from metrics_core.metrics import (
        Metric as Metric,
        Parameter as Parameter,
        metric_names as metric_names,
        parse as parse,
        parse_all as parse_all,
        register_metric as register_metric,
    )
    from metrics_core.policies import Policies as Policies
    from metrics_core.record_batches import batch_scorer as batch_scorer, score_schema as score_schema
    from metrics_core.report import write_report as write_report
    from metrics_core.results import EvaluationRunResult as EvaluationRunResult
    from metrics_core.scores import Scores as Scores
    from metrics_core.similarity import (
        DatasetSimilarity as DatasetSimilarity,
        Similarity as Similarity,
        answer_similarity as answer_similarity,
        sas_dataset as sas_dataset,
    )
    from metrics_core.sources.arrays import IdArrays as IdArrays
    from metrics_core.statistics import power as power, topics_needed as topics_needed
    from metrics_core.tabular import evaluate_table as evaluate_table
    from metrics_core.trec import (
        Qrels as Qrels,
        Run as Run,
        read_qrels as read_qrels,
        read_run as read_run,
        write_qrels as write_qrels,
        write_run as write_run,
    )

__version__ = "0.1.0"

_HOMES = {
    "aggregate": ("Aggregate",),
    "batch": ("RankedBatch",),
    "comparison": ("Comparison", "Difference", "compare", "confidence_interval"),
    "dataset": ("DatasetScores", "evaluate_dataset"),
    "documents": ("Document",),
    "errors": (
        "FileFormatError",
        "InputError",
        "MetricNameError",
        "MetricsError",
        "ModelError",
        "PolicyError",
        "WorkerError",
    ),
    "evaluation": ("evaluate", "pack"),
    "evaluators": (
        "AnswerExactMatchEvaluator",
        "AnswerF1Evaluator",
        "DocumentMAPEvaluator",
        "DocumentMRREvaluator",
        "DocumentMetricsEvaluator",
        "DocumentNDCGEvaluator",
        "DocumentRecallEvaluator",
        "RecallMode",
        "SASEvaluator",
    ),
    "metrics": ("Metric", "Parameter", "metric_names", "parse", "parse_all", "register_metric"),
    "policies": ("Policies",),
    "record_batches": ("batch_scorer", "score_schema"),
    "report": ("write_report",),
    "results": ("EvaluationRunResult",),
    "scores": ("Scores",),
    "similarity": ("DatasetSimilarity", "Similarity", "answer_similarity", "sas_dataset"),
    "sources.arrays": ("IdArrays",),
    "statistics": ("power", "topics_needed"),
    "tabular": ("evaluate_table",),
    "trec": ("Qrels", "Run", "read_qrels", "read_run", "write_qrels", "write_run"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]  # noqa: PLE0604  # computed from the one list of names


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
