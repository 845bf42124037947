"""DocumentNDCGEvaluator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metrics_core.blocks import GradeBlock
from metrics_core.documents import DocumentLike
from metrics_core.evaluation import pack
from metrics_core.evaluators.document_metric import DocumentMetric, paired_questions
from metrics_core.metrics import DCG, nDCG
from metrics_core.sources.documents import DocumentLists, DocumentSource, Needs


class DocumentNDCGEvaluator(DocumentMetric):
    """Normalised discounted cumulative gain; the gain is the ground-truth document's score, 1 where none has one.

    Source: Järvelin and Kekäläinen, TOIS 2002, with linear gains and the discount log2(rank + 1).
    """

    _metric = nDCG

    @staticmethod
    def validate_inputs(gt_docs: DocumentLists, ret_docs: DocumentLists) -> None:
        """Refuses the questions and the ground truth that `run` would refuse.

        Raises:
            InputError: lists that are empty or do not pair up, a question of whose ground-truth documents some have
                a score and some none, a score that is no finite number.
        """
        ground_truth, retrieved = paired_questions(gt_docs, ret_docs)
        questions = range(len(ground_truth))
        source = DocumentSource(
            questions,
            ground_truth,
            retrieved,
            "content",
            DocumentNDCGEvaluator._policies,
            Needs(grades=True, unjudged_repeats=False, only_first=False),
        )
        source.grades(np.arange(len(questions)))

    def calculate_dcg(self, gt_docs: Sequence[DocumentLike], ret_docs: Sequence[DocumentLike]) -> float:
        """The discounted cumulative gain of one question's retrieved documents."""
        return float(DCG.score(self._pack(gt_docs, ret_docs), self._policies)[0])

    def calculate_idcg(self, gt_docs: Sequence[DocumentLike]) -> float:
        """The discounted cumulative gain of one question's best possible ranking."""
        block = self._pack(gt_docs, [])
        ranks = np.arange(1, len(block.ideal) + 1, dtype=np.int32)[:, None]
        best = replace(block, grades=block.ideal, ranks=ranks, n_retrieved=np.isfinite(block.ideal).sum(axis=0))
        return float(DCG.score(best, self._policies)[0])

    def _pack(self, gt_docs: Sequence[DocumentLike], ret_docs: Sequence[DocumentLike]) -> GradeBlock:
        batch = pack(
            [gt_docs],
            [ret_docs],
            policies=self._policies,
            document_comparison_field=self.document_comparison_field,
        )
        return batch.blocks[0]
