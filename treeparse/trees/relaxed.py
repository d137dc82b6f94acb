"""Relaxed samples: what perturbs the scores, and a whole tree in the place of its relaxation."""

import numpy as np
import torch
from torch import Size, Tensor

from treeparse.kernels.random import uniforms
from treeparse.trees.seeds import Generators, item_seeds

SALT = 0x67756D62656C  # sets this noise apart from the random numbers of samples
SMALLEST = 2.0**-54  # half of the smallest step of uniform numbers: noise is finite


def gumbel_noise(seeds: np.ndarray, shape: Size, batch_axes: int) -> Tensor:
    """Independent standard Gumbel noise for parts ``(*batch, n+1, n+1, ...)``, float64 in CPU memory.

    An item's noise depends on its seed, of ``(B,)`` uint64, not on how far its batch is padded.
    """
    heads, *rest = shape[batch_axes:]
    numbers = torch.from_numpy(uniforms(seeds, heads, int(np.prod(rest)), salt=SALT))
    return -(-numbers.clamp_min(SMALLEST).log()).log().reshape(shape)


def perturbed(scores: Tensor, batch_shape: Size, generator: Generators) -> Tensor:
    """Scores of parts plus such noise, float64, with the scores' graph."""
    noise = gumbel_noise(item_seeds(generator, batch_shape.numel()), scores.shape, len(batch_shape))
    return scores.double() + noise.to(scores.device)


def arcs_of(heads: Tensor) -> Tensor:
    """Which arcs trees ``(*batch, n+1)`` have: ``(*batch, n+1, n+1)`` bool."""
    return heads.unsqueeze(-2) == torch.arange(heads.shape[-1], device=heads.device).unsqueeze(-1)


def straight_through(relaxed: Tensor, chosen: Tensor) -> Tensor:
    """What was chosen, bool, as 0 and 1 exactly, with the gradient of its relaxation of the same shape."""
    return chosen.to(relaxed.dtype) + (relaxed - relaxed.detach())
