"""Sums over the labels of every arc, a slice of heads at a time, so that memory beside the scores does not grow with L.

Slices hold all dependents and labels of a few heads. Autograd keeps none of what is computed in a slice: the backward
pass computes it again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from treeparse.batch import readable_without_sync
from treeparse.trees.labels.sources import LabelSource

SLICE = 2**20  # numbers in a slice: 8 MB of float64
DENSE = 2**23  # the same on devices, and where few of them are read: what a batch of usual sentences has


def by_heads(
    function: Callable[..., Tensor], arcs: Tensor, scores: Sequence[LabelSource], others: Sequence[Tensor] = ()
) -> Tensor:
    """The function of slices ``(B, h, n+1, ...)`` of ``scores`` and ``others``, joined again along the heads.

    ``arcs`` ``(B, n+1, n+1)`` bool says where arcs are; label scores come to the function as float64
    ``(B, h, n+1, L)``, 0 at what is no arc.
    """
    batch, nodes = arcs.shape[:2]

    def of_slice(first: int, last: int) -> Tensor:
        real = arcs[:, first:last]
        labels = [real_scores(real, source.from_heads(first, last)) for source in scores]
        return function(*labels, *(tensor[:, first:last] for tensor in others))

    widest = max(
        *(batch * nodes * source.shape[-1] for source in scores), *(tensor[:, 0].numel() for tensor in others), 1
    )
    differentiable = any(part.requires_grad for part in (*scores, *others))
    parts = _of_slices(of_slice, nodes, (SLICE if arcs.device.type == "cpu" else DENSE) // widest, differentiable)
    return torch.cat(parts, 1) if len(parts) > 1 else parts[0]


def _of_slices(function: Callable[[int, int], Tensor], nodes: int, step: int, differentiable: bool) -> list[Tensor]:
    """The function of the first and the last of the heads of every slice, at most ``step`` heads each."""
    if step >= nodes:
        return [function(0, nodes)]
    slices = [(first, min(first + max(1, step), nodes)) for first in range(0, nodes, max(1, step))]
    if not differentiable:  # what inference mode made could not be saved
        return [function(*part) for part in slices]
    options: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
    return [checkpoint(function, *part, **options) for part in slices]  # pyright: ignore


def expected(function: Callable[..., Tensor], marginals: Tensor, scores: Sequence[LabelSource]) -> Tensor:
    """The expected sum ``(B,)`` of a function ``(A, L), ... -> (A,)`` of arcs' label scores over a random tree's arcs.

    Arcs that are so improbable that together they are to a tree what the resolution of the scores is to a number are
    left out; of a trained parser these are most. On a device the labels of all arcs are read, for to pick some out
    would wait for it.

    Args:
        function: of the label scores of some arcs, float64.
        marginals: of arcs ``(B, n+1, n+1)``.
        scores: one or more for every arc.
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
        weighted = marginals[item, head, dependent] * values.double()
        return marginals.new_zeros(batch).index_add(0, item, weighted)

    widest = max(batch * nodes * source.shape[-1] for source in scores)
    differentiable = marginals.requires_grad or any(source.requires_grad for source in scores)
    return torch.stack(_of_slices(of_slice, nodes, DENSE // max(widest, 1), differentiable)).sum(0)


def real_scores(arcs: Tensor, scores: Tensor) -> Tensor:
    """Label scores as float64, 0 at what is no arc, whatever stands there."""
    return torch.where(arcs.unsqueeze(-1), scores, 0.0).to(torch.float64)


def log_sum(scores: Tensor) -> Tensor:
    """Log of the summed weight of an arc's labels ``(..., L) -> (...)``; -inf, and no gradient, where all are -inf."""
    allowed = (scores > -torch.inf).any(-1)
    finite = torch.where(allowed.unsqueeze(-1), scores, 0.0)
    return torch.where(allowed, finite.logsumexp(-1), -torch.inf)


def log_probs(scores: Tensor) -> Tensor:
    """Log probability of each label given the arc ``(..., L)``; -inf on arcs without any label."""
    total = log_sum(scores).unsqueeze(-1)
    return torch.where(total > -torch.inf, scores - torch.where(total > -torch.inf, total, 0.0), -torch.inf)


class _Entropy(torch.autograd.Function):
    """Entropies of softmaxes: in half of the time that composed operations take."""

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
    """Entropy of an arc's label in nats ``(..., L) -> (...)``, differentiable once; some label must be possible."""
    return _Entropy.apply(scores)


def difference(scores: Tensor) -> Tensor:
    """The probability that two of an arc's labels differ ``(..., L) -> (...)``; some label must be possible."""
    probs = scores.softmax(-1)
    return (probs * (1 - probs)).sum(-1)


def code_length(scores: Tensor, others: Tensor) -> Tensor:
    """Expected code length of an arc's label under other label scores, over the labels that both allow."""
    other = others.log_softmax(-1)
    return -(scores.softmax(-1) * torch.where(other > -torch.inf, other, 0.0)).sum(-1)


def mean(scores: Tensor, marginals: Tensor, values: Tensor) -> Tensor:
    """Expected values of an arc's label, ``(..., L)``, ``(..., L, R) -> (..., R)``; impossible ones count 0."""
    probs = _label_probs(scores, marginals)
    return (probs * torch.where(probs > 0, values.to(torch.float64), 0.0)).sum(-2)


def covariance(scores: Tensor, marginals: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Summed covariances of labels' values given their arcs ``(B, 1, R, S)``, weighted by the arcs' marginals."""
    probs = _label_probs(scores, marginals)
    weights = (marginals.unsqueeze(-1).unsqueeze(-1) * probs).flatten(1, 3)
    first, second = (_centred(probs, values).flatten(1, 3) for values in (left, right))
    return ((weights * first).transpose(1, 2) @ second).unsqueeze(1)


def _label_probs(scores: Tensor, marginals: Tensor) -> Tensor:
    """Probabilities of labels given their arcs ``(..., L, 1)``, 0 on arcs of marginal 0."""
    probs = log_probs(scores).exp()
    return torch.where(marginals.unsqueeze(-1) > 0, probs, 0.0).unsqueeze(-1)


def _centred(probs: Tensor, values: Tensor) -> Tensor:
    """Values less their mean over the arc's labels."""
    finite = torch.where(probs > 0, values.to(torch.float64), 0.0)
    return finite - (probs * finite).sum(-2, keepdim=True)
