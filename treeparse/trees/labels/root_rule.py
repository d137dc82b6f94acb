"""The rule on the label "root": arcs from the root have it, and no other arcs do."""

import torch
from torch import Tensor


def with_root_rule(scores: Tensor, from_root: Tensor, root_label: int) -> Tensor:
    """Return label scores ``(..., L)`` of arcs, with -inf where the rule forbids a label.

    Args:
        scores: the scores.
        from_root: ``(...)`` bool, or of a shape that broadcasts to it: which arcs are from the root.
        root_label: the index of the label "root"; -1 if no label is reserved for arcs from the root.
    """
    count = scores.shape[-1]
    if root_label < 0 or count == 1:
        return scores
    is_root = torch.arange(count, device=scores.device) == root_label
    return scores.masked_fill(is_root != from_root.unsqueeze(-1), -torch.inf)
