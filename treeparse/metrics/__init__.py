"""Scores of parses: counts, reports, torchmetrics, the paired bootstrap, calibration, conformal prediction."""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand
from treeparse.metrics.attachment import AttachmentReport, GroupScores, Scores, attachment_scores
from treeparse.metrics.bootstrap import Comparison, compare_counts, paired_bootstrap
from treeparse.metrics.calibration import Calibration, ReliabilityBin, calibration, parse_calibration
from treeparse.metrics.conformal import conformal_threshold, conformal_trees
from treeparse.metrics.counts import REMEDY, Count, PrecisionRecall, is_punctuation, sentence_counts, word_mismatch
from treeparse.metrics.oracle import OracleScores, oracle_scores
from treeparse.metrics.tags import tag_scores

if TYPE_CHECKING:
    from treeparse.metrics.torchmetric import AttachmentScores, LabelScores, TagScores, TreebankScores

__all__ = [
    "REMEDY",
    "AttachmentReport",
    "AttachmentScores",
    "Calibration",
    "Comparison",
    "Count",
    "GroupScores",
    "LabelScores",
    "OracleScores",
    "PrecisionRecall",
    "ReliabilityBin",
    "Scores",
    "TagScores",
    "TreebankScores",
    "attachment_scores",
    "calibration",
    "compare_counts",
    "conformal_threshold",
    "conformal_trees",
    "is_punctuation",
    "oracle_scores",
    "paired_bootstrap",
    "parse_calibration",
    "sentence_counts",
    "tag_scores",
    "word_mismatch",
]
__getattr__, __dir__ = names_on_demand(
    __name__, {"treeparse.metrics.torchmetric": "AttachmentScores LabelScores TagScores TreebankScores"}
)  # torchmetrics takes a second to import
