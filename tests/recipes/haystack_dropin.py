"""Moves an evaluation pipeline of Haystack's to metrics-core: the import line, or one replacement in a saved pipeline.

Needs `pip install 'metrics-core[haystack]'`.

It prints:

    map 0.41666666666666663 [0.8333333333333333, 0.0]
    recall 0.5 [1.0, 0.0]
    saved map 0.41666666666666663 [0.8333333333333333, 0.0]
    AP 0.41666666666666663 [0.8333333333333333, 0.0]
    SetR 0.5 [1.0, 0.0]
"""

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack import Document, Pipeline

# In the place of: from haystack.components.evaluators import ...
from metrics_core.haystack import DocumentMAPEvaluator, DocumentMetricsEvaluator, DocumentRecallEvaluator

TRUTH = [[Document(content="9th century"), Document(content="9th")], [Document(content="Paris")]]
FOUND = [[Document(content=text) for text in ("9th century", "10th century", "9th")], [Document(content="Lyon")]]
ASKED = {"ground_truth_documents": TRUTH, "retrieved_documents": FOUND}

SAVED = """
components:
  map:
    type: haystack.components.evaluators.document_map.DocumentMAPEvaluator
    init_parameters: {document_comparison_field: content}
connections: []
"""


def main() -> None:
    """Prints the same numbers three times over."""
    pipeline = Pipeline()
    pipeline.add_component("map", DocumentMAPEvaluator())
    pipeline.add_component("recall", DocumentRecallEvaluator(mode="multi_hit"))
    for name, found in pipeline.run({"map": ASKED, "recall": ASKED}).items():
        print(name, found["score"], found["individual_scores"])

    # What was saved with Haystack's evaluators
    loaded = Pipeline.loads(SAVED.replace("haystack.components.evaluators.", "metrics_core.haystack."))
    found = loaded.run({"map": ASKED})["map"]
    print("saved map", found["score"], found["individual_scores"])

    # A pipeline copies all documents for each component: one for all metrics saves most of the time
    pipeline = Pipeline()
    pipeline.add_component("documents", DocumentMetricsEvaluator(["AP", "SetR"]))
    found = pipeline.run({"documents": ASKED})["documents"]
    for metric, score in found["scores"].items():
        print(metric, score, found["individual_scores"][metric])


if __name__ == "__main__":
    main()
