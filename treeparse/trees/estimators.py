"""Unbiased estimates of expectations, and of their gradients, from samples with or without replacement.

The functions take samples' log probabilities and values, of any distribution, and return an estimate of E[f]. Its
gradient is an unbiased estimate of the gradient of E[f], through the values and through the log probabilities (the
score-function or REINFORCE gradient). So log probabilities must have their graph: take them from ``log_prob`` of the
drawn trees. Slots of log probability -inf, past the end of the support, do not count, whatever their values.

The weight of a sample ``s`` of a set without replacement follows from a race: every element ``i`` arrives after an
exponential time of rate ``p(i)``, at exp(-key). The set has the elements that arrive first.
"""

import math

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.checks import check_dtype, fits

# The integration variable is y = log(q t), where t is the time and q the probability of all elements outside the set.
LOWEST = -40.0  # the first y: smaller ones add less than 1e-17
POINTS = 9  # points for each unit of y, at least; more samples need more, and 8 give the same to the last bits
SMALLEST = 1e-300  # the smallest expected number of arrivals; smaller ones have the same share
SMALLEST_OUTSIDE = 2.0**-60  # the smallest q: the rounding of 1 - sum p hides smaller ones


def sample_mean(log_probs: Tensor, values: Tensor, *, baseline: bool = True) -> Tensor:
    """Return the mean ``(*batch,)`` of values ``(K, *batch)`` of samples with replacement.

    With ``baseline`` and at least two samples, the gradient compares each value with the mean of the others, which
    removes much of its variance and adds no bias (Kool et al. 2019, *Buy 4 REINFORCE samples, get a baseline for
    free!*).
    """
    log_probs, values, dtype = _checked(log_probs, values)
    count = values.shape[-1]
    constants = values.detach()
    others = torch.zeros_like(constants)
    if baseline and count > 1:
        others = (constants.sum(-1, keepdim=True) - constants) / (count - 1)
    return _estimate(log_probs, values, torch.full_like(constants, 1 / count), others).to(dtype)


def horvitz_thompson(log_probs: Tensor, values: Tensor, threshold: Tensor, *, baseline: Tensor | float = 0.0) -> Tensor:
    """Return the sum ``(*batch,)`` of ``p(s) f(s) / q(s)`` over samples without replacement.

    ``q(s)`` is the probability that the key of ``s`` is above the ``threshold`` (Horvitz and Thompson 1952; Duffield et
    al. 2007 with other keys; Kool et al. 2019, *Stochastic beams and where to find them*, §4.2).

    Args:
        log_probs: ``(K, *batch)``, of the K samples of the largest keys.
        values: ``(K, *batch)``.
        threshold: ``(*batch,)``, the next key: draw K + 1 samples and pass the first K and the key of the last. -inf if
            there are at most K trees; then the estimate is exact.
        baseline: ``(*batch,)`` or one number, with which the gradient compares values; it must not depend on the
            sample.
    """
    log_probs, values, dtype = _checked(log_probs, values)
    logs = log_probs.detach()
    weights = (logs - _log_arrived(logs - _of_batch(threshold, logs, "A threshold").unsqueeze(-1))).exp()
    reference = _of_batch(torch.as_tensor(baseline), logs, "A baseline")
    return _estimate(log_probs, values, weights, reference.unsqueeze(-1).expand_as(logs)).to(dtype)


def unordered_set(log_probs: Tensor, values: Tensor, *, baseline: bool = True) -> Tensor:
    """Return the mean ``(*batch,)`` of the first sample's value over all orders in which the set may have been drawn.

    ``log_probs`` and ``values`` ``(K, *batch)`` are of samples without replacement. The estimate is the sum of
    ``p(s) R(s) f(s)``, where ``R(s)`` is the leave-one-out ratio: the probability to draw the other elements from a
    distribution without ``s``, divided by the probability of the set (Kool et al. 2020, *Estimating gradients for
    discrete random variables by sampling without replacement*). With ``baseline`` and K > 1, the gradient compares
    ``f(s)`` with this estimate from the other elements, which adds no bias (their eq. 13).

    The ratios are integrals over the time of the race, taken by the trapezoidal rule in its logarithm, in O(K^2). It
    converges exponentially there: errors are below 1e-12.
    """
    log_probs, values, dtype = _checked(log_probs, values)
    first, second = _leave_one_out_weights(log_probs.detach())
    constants = values.detach().nan_to_num() * (log_probs.detach() > -torch.inf)
    others = torch.zeros_like(constants)
    if baseline and values.shape[-1] > 1:
        others = (second @ constants.unsqueeze(-1)).squeeze(-1)
    return _estimate(log_probs, values, first, others).to(dtype)


def _of_batch(value: Tensor, logs: Tensor, name: str) -> Tensor:
    """Return a constant ``()`` or ``(*batch,)`` in the dtype and on the device of log probabilities ``(*batch, K)``."""
    batch = tuple(logs.shape[:-1])
    if value.dim() and not fits(tuple(value.shape), batch):
        raise TreeparseError(
            f"{name} must have one number for each item of the batch {batch}, got the shape {tuple(value.shape)}."
        )
    return value.to(logs).detach()


def _checked(log_probs: Tensor, values: Tensor) -> tuple[Tensor, Tensor, torch.dtype]:
    """Check log probabilities and values ``(K, *batch)``; return float64 ``(*batch, K)``, and the result's dtype."""
    if log_probs.shape != values.shape or not log_probs.dim() or not len(log_probs):
        raise TreeparseError(
            f"Log probabilities and values must have one shape (K, *batch) with K >= 1 samples, got "
            f"{tuple(log_probs.shape)} and {tuple(values.shape)}."
        )
    check_dtype(log_probs, "Log probabilities")
    dtype = torch.promote_types(torch.promote_types(log_probs.dtype, values.dtype), torch.float32)
    log_probs, values = (column.to(torch.float64).movedim(0, -1) for column in (log_probs, values))
    return log_probs, values, dtype


def _estimate(log_probs: Tensor, values: Tensor, weights: Tensor, others: Tensor) -> Tensor:
    """Return the weighted sum of values; its gradient in the log probabilities is ``weights * (values - others)``."""
    real = log_probs > -torch.inf
    weights, values = torch.where(real, weights, 0.0), torch.where(real, values, 0.0)
    score = (weights * (values - others)).detach() * torch.where(real, log_probs, 0.0)
    return (weights * values + score - score.detach()).sum(-1)


def _leave_one_out_weights(log_probs: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``p(s) R(s)`` ``(*batch, K)`` and, for every s, these weights of the other elements ``(*batch, K, K)``.

    With probability ``q`` outside the set S, the set's probability is the integral over the time t of ``q exp(-q t)``
    times the product over S of ``1 - exp(-p(s) t)``; without s, its factor is left out. In ``y = log q t`` the
    integrand is smooth and small at both ends. The diagonal of the second result is ``p(s)``.
    """
    count = log_probs.shape[-1]
    real = log_probs > -torch.inf
    outside = (1.0 - log_probs.exp().sum(-1)).clamp(min=SMALLEST_OUTSIDE)
    last = math.log(count + 41 + 10 * math.sqrt(count + 1))
    y = torch.arange(LOWEST, last, 1 / (POINTS + count / 16), dtype=torch.float64, device=log_probs.device)
    time = y.exp()
    # The probability of an arrival, 1 - exp(-p(s) t), is p(s) t times a share, which never underflows.
    rates = (log_probs - outside.log().unsqueeze(-1)).exp().unsqueeze(-1)
    expected = (rates * time).clamp_(min=SMALLEST)
    share = expected.neg().expm1_().div_(expected).neg_()  # (*batch, K, Y)
    density = y * (1 + real.sum(-1, keepdim=True)) - time + share.log().sum(-2)
    # Densities are divided by the greatest one: the factors that are left out change little there.
    greatest, peak = density.max(-1, keepdim=True)
    density = (density - greatest).exp_().unsqueeze(-2)
    arrived = share.mul_(time)  # in units of p(s)
    at_peak = arrived.gather(-1, peak.unsqueeze(-2).expand(*arrived.shape[:-1], 1))
    inverse = torch.div(at_peak, arrived, out=arrived)
    weighted = density * inverse
    without_one = weighted.sum(-1)
    without_two = weighted @ inverse.mT
    factor = torch.where(real, outside.unsqueeze(-1) / at_peak.squeeze(-1), 0.0)
    first = factor * without_one / density.sum(-1)
    second = factor.unsqueeze(-2) * without_two / without_one.unsqueeze(-1)
    second.diagonal(dim1=-2, dim2=-1).copy_(log_probs.exp())
    return first, second


def _log_arrived(log_rates: Tensor) -> Tensor:
    """Return the log probability that an exponential variable is below 1, from the log of its rate."""
    return torch.where(log_rates < -37.0, log_rates, (-(-log_rates.exp()).expm1()).log())
