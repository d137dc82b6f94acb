"""Sums over the labels of every arc, by slices of heads, so that memory besides the scores does not grow with L.

Slices hold all dependents and labels of a few heads. Autograd saves nothing that is computed in a slice: the backward
pass computes it again.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from treeparse.batch import is_plain, readable_without_sync
from treeparse.trees.labels.sources import LabelSource

SLICE = 2**20  # numbers in a slice: 8 MB of float64
DENSE = 2**23  # numbers in a slice on devices, and where few numbers are read: a usual batch is one slice


def by_heads(
    function: Callable[..., Tensor], arcs: Tensor, scores: Sequence[LabelSource], others: Sequence[Tensor] = ()
) -> Tensor:
    """Apply a function to slices ``(B, h, n+1, ...)`` of ``scores`` and ``others``, and join the results by heads.

    The function gets label scores as float64 ``(B, h, n+1, L)``, 0 at entries that are no arc by the mask ``arcs``
    ``(B, n+1, n+1)``.
    """
    batch, nodes = arcs.shape[:2]

    def of_slice(first: int, last: int) -> Tensor:
        slices = [real_scores(arcs[:, first:last], source.from_heads(first, last)) for source in scores]
        return function(*slices, *[tensor[:, first:last] for tensor in others])

    differentiable = any([values.requires_grad for values in (*scores, *others)])
    widths = [batch * nodes * source.shape[-1] for source in scores] + [tensor[:, 0].numel() for tensor in others]
    step = (SLICE if arcs.device.type == "cpu" else DENSE) // max(1, *widths)
    if step >= nodes:
        return of_slice(0, nodes)
    parts = _of_slices(of_slice, nodes, step, differentiable)
    return torch.cat([*parts], 1) if differentiable else _joined(parts, nodes)


def _joined(parts: Iterator[Tensor], nodes: int) -> Tensor:
    """Join results of slices, at most one row a head; each is stored before the next is made.

    Kept between the memory of slices that is freed, they would break it into pieces too small for the next slice.
    """
    first = next(parts)
    result, rows = first.new_empty(first.shape[0], nodes, *first.shape[2:]), 0
    for part in chain([first], parts):
        result[:, rows : rows + part.shape[1]] = part
        rows += part.shape[1]
    return result[:, :rows]


def _of_slices(function: Callable[[int, int], Tensor], nodes: int, step: int, differentiable: bool) -> Iterator[Tensor]:
    """Apply a function to the first head of every slice of ``step`` heads and the first head after it."""
    options: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
    for first in range(0, nodes, max(1, step)):
        part = first, min(first + max(1, step), nodes)
        # Tensors of inference mode cannot be saved.
        yield checkpoint(function, *part, **options) if differentiable else function(*part)  # pyright: ignore


def expected(function: Callable[..., Tensor], marginals: Tensor, scores: Sequence[LabelSource]) -> Tensor:
    """Return expected sums ``(B,)`` of a function of an arc's label scores.

    Arcs whose marginal is at most the resolution of the scores divided by ``n+1`` are left out, because together they
    weigh less than a rounding error; for a trained parser these are most arcs. On a device, the labels of all arcs are
    read, because a selection would cause a device sync.

    Args:
        function: from label scores ``(A, L)`` of arcs, one tensor a source, to values ``(A,)``.
        marginals: of arcs ``(B, n+1, n+1)``.
        scores: the sources, one or more.
    """
    batch, nodes = marginals.shape[:2]
    resolution = max(source.resolution for source in scores)
    counting = marginals.detach() > resolution / nodes

    def of_slice(first: int, last: int) -> Tensor:
        if not readable_without_sync(marginals):
            part = counting[:, first:last]
            values = function(*(real_scores(part, source.from_heads(first, last)) for source in scores))
            return torch.where(part, marginals[:, first:last] * values, 0.0).sum((1, 2))
        item, head, dependent = counting[:, first:last].nonzero(as_tuple=True)
        head = head + first
        values = function(*(source.among(first, last, item, head, dependent) for source in scores))
        weighted = marginals[item, head, dependent] * values.double()  # never in a compiled graph
        return marginals.new_zeros(batch).index_add(0, item, weighted)

    widest = max(batch * nodes * source.shape[-1] for source in scores)
    differentiable = marginals.requires_grad or any(source.requires_grad for source in scores)
    step = DENSE // max(widest, 1)
    if step >= nodes:
        return of_slice(0, nodes)
    return torch.stack([*_of_slices(of_slice, nodes, step, differentiable)]).sum(0)


def real_scores(arcs: Tensor, scores: Tensor) -> Tensor:
    """Convert label scores to float64, with 0 at entries that are no arc, whatever they hold."""
    return torch.where(arcs.unsqueeze(-1), scores, 0.0).to(torch.float64)


def log_sum(scores: Tensor) -> Tensor:
    """Return the log of the summed weight of an arc's labels ``(..., L) -> (...)``.

    Where all scores are -inf, the result is -inf and has no gradient.
    """
    allowed = (scores > -torch.inf).any(-1)
    finite = torch.where(allowed.unsqueeze(-1), scores, 0.0)
    return torch.where(allowed, finite.logsumexp(-1), -torch.inf)


def log_probs(scores: Tensor) -> Tensor:
    """Return the log probability of each label given the arc ``(..., L)``; -inf on arcs without a label."""
    allowed = (scores > -torch.inf).any(-1, keepdim=True)
    return torch.where(allowed, torch.where(allowed, scores, 0.0).log_softmax(-1), -torch.inf)


class _Entropy(torch.autograd.Function):
    """The entropy of a softmax, in half of the time of composed operations."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        probs = scores.softmax(-1)
        parts = torch.special.entr(probs)  # 0 at 0
        entropy = parts.sum(-1)
        ctx.save_for_backward(probs, parts, entropy)
        return entropy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        probs, parts, entropy = ctx.saved_tensors
        return torch.addcmul(gradient.unsqueeze(-1) * parts, probs, (-gradient * entropy).unsqueeze(-1))


def entropy(scores: Tensor) -> Tensor:
    """Return the entropy of an arc's label ``(..., L) -> (...)``, differentiable once; some label must be allowed."""
    return _Entropy.apply(scores) if is_plain(scores) else code_length(scores, scores)


def difference(scores: Tensor) -> Tensor:
    """Return the probability ``(..., L) -> (...)`` that two labels of an arc differ; some label must be allowed."""
    probs = scores.softmax(-1)
    return (probs * (1 - probs)).sum(-1)


def code_length(scores: Tensor, others: Tensor) -> Tensor:
    """Return the expected code length of an arc's label under other scores, over the labels that both allow."""
    other = others.log_softmax(-1)
    return -(scores.softmax(-1) * torch.where(other > -torch.inf, other, 0.0)).sum(-1)


def mean(scores: Tensor, marginals: Tensor, values: Tensor) -> Tensor:
    """Return expected values of an arc's label: ``(..., L)``, ``(..., L, R) -> (..., R)``; forbidden labels count 0."""
    probs = _label_probs(scores, marginals)
    return (probs * torch.where(probs > 0, values.to(torch.float64), 0.0)).sum(-2)


def covariance(scores: Tensor, marginals: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return summed covariances ``(B, 1, R, S)`` of labels' values given their arcs, by the arcs' marginals."""
    probs = _label_probs(scores, marginals)
    weights = (marginals.unsqueeze(-1).unsqueeze(-1) * probs).flatten(1, 3)
    first, second = (_centred(probs, values).flatten(1, 3) for values in (left, right))
    return ((weights * first).transpose(1, 2) @ second).unsqueeze(1)


def _label_probs(scores: Tensor, marginals: Tensor) -> Tensor:
    """Return probabilities of labels given their arcs ``(..., L, 1)``, 0 on arcs of marginal 0."""
    probs = log_probs(scores).exp()
    return torch.where(marginals.unsqueeze(-1) > 0, probs, 0.0).unsqueeze(-1)


def _centred(probs: Tensor, values: Tensor) -> Tensor:
    """Subtract from values their mean over the arc's labels."""
    finite = torch.where(probs > 0, values.to(torch.float64), 0.0)
    return finite - (probs * finite).sum(-2, keepdim=True)
