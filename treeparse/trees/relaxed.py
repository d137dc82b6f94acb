"""Relaxed samples: what perturbs the scores, and a whole tree in the place of its relaxation."""

import torch
from torch import Size, Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.randomness import Generators, item_seeds, uniforms

SALT = 0x67756D62656C  # sets this noise apart from the random numbers of samples
SMALLEST = 2.0**-54  # half of the smallest step of uniform numbers: noise is finite


def gumbel_noise(seeds: Tensor, shape: Size, batch_axes: int, device: torch.device) -> Tensor:
    """Independent standard Gumbel noise for parts ``(*batch, n+1, n+1, ...)``, float64 on a device.

    An item's noise depends on its seed, of ``(B,)``, not on how far its batch is padded.
    """
    heads, *rest = shape[batch_axes:]
    numbers = uniforms(seeds, heads, Size(rest).numel(), salt=SALT, device=device)
    return -(-numbers.clamp_min(SMALLEST).log()).log().reshape(shape)


def perturbed(scores: Tensor, batch_shape: Size, generator: Generators) -> Tensor:
    """Scores of parts plus such noise, float64, with the scores' graph."""
    seeds = item_seeds(generator, batch_shape.numel())
    return scores.double() + gumbel_noise(seeds, scores.shape, len(batch_shape), scores.device)


def check_hard(hard: bool) -> None:
    """Raise for anything but true and false, such as a generator in the place of ``hard``."""
    if not isinstance(hard, bool):
        raise TreeparseError(
            f"hard must be True or False, got a {type(hard).__name__}; name a generator, generator=..."
        )


def arcs_of(heads: Tensor) -> Tensor:
    """Which arcs trees ``(*batch, n+1)`` have: ``(*batch, n+1, n+1)`` bool."""
    return heads.unsqueeze(-2) == torch.arange(heads.shape[-1], device=heads.device).unsqueeze(-1)


def straight_through(relaxed: Tensor, chosen: Tensor) -> Tensor:
    """What was chosen, bool, as 0 and 1 exactly, with the gradient of its relaxation of the same shape."""
    return chosen.to(relaxed.dtype) + (relaxed - relaxed.detach())
