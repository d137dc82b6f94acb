"""The loss of arc labels."""

from torch import Tensor
from torch.nn import functional


def label_cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Negative log probability of the gold labels given their arcs ([DM] §3), summed over arcs, nats.

    ``scores`` (N, labels), ``labels`` (N,) with -1 where the label is unknown.
    """
    return functional.cross_entropy(scores, labels, ignore_index=-1, reduction="sum")
