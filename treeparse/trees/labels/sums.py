"""Sums over the labels of every arc, a slice of heads at a time, so that memory beside the scores does not grow with L.

Slices hold all dependents and labels of a few heads. Autograd keeps none of what is computed in a slice: the backward
pass computes it again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from treeparse.trees.labels.sources import LabelSource

SLICE = 2**20  # numbers in a slice: 8 MB of float64


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
    if widest * nodes <= SLICE:
        return of_slice(0, nodes)
    step = max(1, SLICE // widest)
    slices = [(first, min(first + step, nodes)) for first in range(0, nodes, step)]
    if not any(part.requires_grad for part in (*scores, *others)):  # those of inference mode could not be saved
        return torch.cat([of_slice(*part) for part in slices], 1)
    options: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
    return torch.cat([checkpoint(of_slice, *part, **options) for part in slices], 1)  # pyright: ignore


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


def entropy(scores: Tensor) -> Tensor:
    """Entropy of an arc's label in nats ``(..., L) -> (...)``."""
    own = log_probs(scores)
    return _code_length(own, own)


def code_length(scores: Tensor, others: Tensor) -> Tensor:
    """Expected code length of an arc's label under other label scores, over the labels that both allow."""
    return _code_length(log_probs(scores), log_probs(others))


def _code_length(own: Tensor, other: Tensor) -> Tensor:
    both = (own > -torch.inf) & (other > -torch.inf)
    return -(own.exp() * torch.where(both, other, 0.0)).sum(-1)


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
