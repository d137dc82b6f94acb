"""Maximisation of a concave function of a few variables, some of which must not be negative."""

from collections.abc import Callable

import torch
from torch import Tensor

Function = Callable[[Tensor], tuple[Tensor, Tensor]]
"""The value, a scalar, and its gradient ``(K,)`` at a point ``(K,)``."""

RISE = 1e-4  # the share of the gain by the slope that a step must reach
RECENT = 5  # recent values, the least of which a step must exceed
ROUNDING = 1e-9  # the rounding error of values
SHORTEST, LONGEST = 1e-6, 1e6


def maximize(function: Function, free: Tensor, tolerance: Tensor, most_steps: int) -> Tensor:
    """Return the maximum ``(K,)`` by spectral projected gradients from 0 (Birgin, Martínez and Raydan 2000, SPG2).

    The curvature along the last step sets the length of the next one (Barzilai and Borwein 1988), which is shortened
    until the value exceeds the least of the recent values.

    Args:
        function: the function; it is evaluated at most ``most_steps`` times after the start.
        free: which variables may be negative, ``(K,)`` bool.
        tolerance: the greatest distance of the gradient from the gradient of a maximum, ``(K,)``.
        most_steps: the number of steps after which the point of the greatest value is returned.
    """
    point = torch.zeros_like(tolerance)
    value, gradient = function(point)
    best, recent = (value, point), [value]
    length = share = 1.0  # the step is share * length * gradient, projected
    for _ in range(most_steps):
        if bool(((_allowed(point + gradient, free) - point).abs() <= tolerance).all()):
            return point
        change = share * (_allowed(point + length * gradient, free) - point)
        new_value, new_gradient = function(point + change)
        if new_value < min(recent) + RISE * (gradient @ change) - ROUNDING:
            share /= 4
            continue
        curvature = float(change @ (gradient - new_gradient))
        length = min(max(float(change @ change) / curvature, SHORTEST), LONGEST) if curvature > 0 else LONGEST
        point, value, gradient, share = point + change, new_value, new_gradient, 1.0
        recent = [*recent[1 - RECENT :], value]
        best = max(best, (value, point), key=lambda pair: float(pair[0]))
    return best[1]


def _allowed(point: Tensor, free: Tensor) -> Tensor:
    """Return the nearest point whose variables are not negative unless they are free."""
    return torch.where(free, point, point.clamp_min(0))
