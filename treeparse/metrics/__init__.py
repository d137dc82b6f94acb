"""Scores of parses: counts, reports, torchmetrics, the paired bootstrap, calibration."""

from typing import TYPE_CHECKING

from treeparse.metrics.attachment import AttachmentReport as AttachmentReport
from treeparse.metrics.attachment import GroupScores as GroupScores
from treeparse.metrics.attachment import Scores as Scores
from treeparse.metrics.attachment import attachment_scores as attachment_scores
from treeparse.metrics.bootstrap import Comparison as Comparison
from treeparse.metrics.bootstrap import compare_counts as compare_counts
from treeparse.metrics.bootstrap import paired_bootstrap as paired_bootstrap
from treeparse.metrics.calibration import Calibration as Calibration
from treeparse.metrics.calibration import ReliabilityBin as ReliabilityBin
from treeparse.metrics.calibration import calibration as calibration
from treeparse.metrics.calibration import conformal_threshold as conformal_threshold
from treeparse.metrics.calibration import parse_calibration as parse_calibration
from treeparse.metrics.counts import REMEDY as REMEDY
from treeparse.metrics.counts import Count as Count
from treeparse.metrics.counts import PrecisionRecall as PrecisionRecall
from treeparse.metrics.counts import is_punctuation as is_punctuation
from treeparse.metrics.counts import sentence_counts as sentence_counts
from treeparse.metrics.counts import word_mismatch as word_mismatch
from treeparse.metrics.oracle import OracleScores as OracleScores
from treeparse.metrics.oracle import oracle_scores as oracle_scores
from treeparse.metrics.tags import tag_scores as tag_scores

if TYPE_CHECKING:
    from treeparse.metrics.torchmetric import AttachmentScores as AttachmentScores
    from treeparse.metrics.torchmetric import LabelScores as LabelScores
    from treeparse.metrics.torchmetric import TagScores as TagScores


def __getattr__(name: str) -> object:
    if name in ("AttachmentScores", "LabelScores", "TagScores"):  # torchmetrics takes a second to import
        from treeparse.metrics import torchmetric

        return getattr(torchmetric, name)
    raise AttributeError(f"module 'treeparse.metrics' has no attribute {name!r}")
