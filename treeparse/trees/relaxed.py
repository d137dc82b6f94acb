"""Relaxed samples: Gumbel noise for scores, and straight-through trees."""

import torch
from torch import Size, Tensor

from treeparse.trees.randomness import Generators, item_seeds, uniforms

SALT = 0x67756D62656C  # gives this noise another stream than samples
SMALLEST = 2.0**-54  # half of the smallest step of uniform numbers: noise is finite


def gumbel_noise(seeds: Tensor, shape: Size, batch_axes: int, device: torch.device) -> Tensor:
    """Draw independent standard Gumbel noise of a shape ``(*batch, n+1, n+1, ...)``, float64 on a device.

    An item's noise depends on its seed, one of ``(B,)``, and not on the padding of its batch.
    """
    heads, *rest = shape[batch_axes:]
    numbers = uniforms(seeds, heads, Size(rest).numel(), salt=SALT, device=device)
    return -(-numbers.clamp_min(SMALLEST).log()).log().reshape(shape)


def perturbed(scores: Tensor, batch_shape: Size, generator: Generators) -> Tensor:
    """Add Gumbel noise to scores ``(*batch, n+1, n+1, ...)``; the result is float64 with the scores' graph."""
    seeds = item_seeds(generator, batch_shape.numel())
    return scores.double() + gumbel_noise(seeds, scores.shape, len(batch_shape), scores.device)


def arcs_of(heads: Tensor) -> Tensor:
    """Return the arcs of trees ``(*batch, n+1)`` as a mask ``(*batch, n+1, n+1)`` bool."""
    return heads.unsqueeze(-2) == torch.arange(heads.shape[-1], device=heads.device).unsqueeze(-1)


def arcs_agreeing_with(heads: Tensor) -> Tensor:
    """Return the arcs ``(*batch, n+1, n+1)`` bool of trees that have known heads ``(*batch, n+1)``; -1 is unknown."""
    return arcs_of(heads) | (heads < 0).unsqueeze(-2)


def straight_through(relaxed: Tensor, chosen: Tensor) -> Tensor:
    """Return a bool mask as exactly 0 and 1, with the gradient of its relaxation of the same shape."""
    return chosen.to(relaxed.dtype) + (relaxed - relaxed.detach())
