"""The maximum of a concave function of a few variables, some of which must not be negative."""

from collections.abc import Callable

import torch
from torch import Tensor

Function = Callable[[Tensor], tuple[Tensor, Tensor]]
"""The value, a scalar, and its gradient ``(K,)`` at a point ``(K,)``."""

RISE = 1e-4  # of what the slope promises, that a step must gain
RECENT = 5  # values, the least of which a step must exceed
ROUNDING = 1e-9  # in the values
SHORTEST, LONGEST = 1e-6, 1e6


def maximize(function: Function, free: Tensor, tolerance: Tensor, most_steps: int) -> Tensor:
    """The point ``(K,)``, found by spectral projected gradients from 0 (Birgin, Martínez and Raydan 2000, SPG2).

    A step is as long as the curvature along the last one makes it (Barzilai and Borwein 1988), and is shortened until
    the value exceeds the least of the last few.

    Args:
        function: what is evaluated at most ``most_steps`` times after the start.
        free: which variables may be negative, ``(K,)`` bool.
        tolerance: how far the gradient may be from that of a maximum, ``(K,)``.
        most_steps: then the point of the greatest value is returned.
    """
    point = torch.zeros_like(tolerance)
    value, gradient = function(point)
    best, recent = (value, point), [value]
    length = share = 1.0  # of the gradient that is followed, and of the step that is tried
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
    """The nearest point whose variables are not negative but where they may be."""
    return torch.where(free, point, point.clamp_min(0))
