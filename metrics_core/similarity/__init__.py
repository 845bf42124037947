"""Semantic answer similarity: two answers compared by a sentence-transformers model (extra `sas`)."""

from metrics_core.similarity.dataset import DatasetSimilarity, sas_dataset
from metrics_core.similarity.scoring import Similarity, SimilarityScorer, answer_similarity
from metrics_core.similarity.settings import Settings

__all__ = ["DatasetSimilarity", "Settings", "Similarity", "SimilarityScorer", "answer_similarity", "sas_dataset"]
