"""Random numbers by seeds: the counter-based streams of ``treeparse.kernels.random``, the same bits on any device.

Seeds are int64 tensors ``(B,)``, one a batch item, on any device; their bits are the kernels' uint64 seeds.
"""

from collections.abc import Sequence

import torch
from torch import Generator, Size, Tensor

from treeparse.batch import moved, readable_without_sync
from treeparse.errors import TreeparseError
from treeparse.kernels import random
from treeparse.trees.families.padded_arrays import seed_bits

Generators = Generator | Sequence[Generator] | None

# SplitMix64 as in the kernels, on signed numbers
GAMMA, FIRST_FACTOR, SECOND_FACTOR = (
    constant - 2**64 for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)

GUMBEL_SALT = 0x67756D62656C  # gives this noise another stream than samples
SMALLEST = 2.0**-54  # half of the smallest step of uniform numbers: noise is finite


def item_seeds(generator: Generators, items: int) -> Tensor:
    """Draw one seed an item, int64 ``(items,)`` on the generator's device; a list has one generator an item.

    Raises:
        TreeparseError: for a list of another length.
    """
    if generator is None or isinstance(generator, Generator):
        return _draw_seeds(generator, items)
    if len(generator) != items:
        raise TreeparseError(
            f"A list of generators must have one for each of the {items} batch items, got {len(generator)}."
        )
    return torch.cat([_draw_seeds(of_item, 1) for of_item in generator]) if items else _draw_seeds(None, 0)


def _draw_seeds(generator: Generator | None, count: int) -> Tensor:
    bounds = -(2**63), 2**63 - 1, (count,)
    if generator is None:  # torch.compile knows no generator, not even None
        return torch.randint(*bounds, device="cpu")
    return torch.randint(*bounds, generator=generator, device=generator.device)


def uniforms(seeds: Tensor, samples: int, draws: int, *, salt: int, device: torch.device) -> Tensor:
    """Draw uniform numbers ``(B, samples, draws)``, float64 on a device; each salt gives a stream of its own."""
    seeds = moved(seeds, device)
    if readable_without_sync(seeds):
        return torch.from_numpy(random.uniforms(seed_bits(seeds), samples, draws, salt=salt))
    return uniforms_by_tensors(seeds ^ salt, samples, draws)


def uniforms_by_tensors(seeds: Tensor, samples: int, draws: int, *, first: int = 0) -> Tensor:
    """Draw the numbers of ``uniforms`` on the seeds' device; ``first`` is the index of the first sample."""
    sample = torch.arange(first, first + samples, device=seeds.device)
    stream = _mixed(seeds.unsqueeze(-1) ^ _mixed(sample * GAMMA + GAMMA))
    draw = torch.arange(1, draws + 1, device=seeds.device)
    bits = _mixed(stream.unsqueeze(-1) + draw * GAMMA)
    return (_shifted(bits, 12).to(torch.float64) + 0.5) * 2.0**-52


def _mixed(bits: Tensor) -> Tensor:
    bits = (bits ^ _shifted(bits, 30)) * FIRST_FACTOR
    bits = (bits ^ _shifted(bits, 27)) * SECOND_FACTOR
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, by: int) -> Tensor:
    """Shift right, with zeros on the left."""
    return (bits >> by) & (2 ** (64 - by) - 1)


def gumbel_noise(seeds: Tensor, shape: Size, batch_axes: int, device: torch.device) -> Tensor:
    """Draw independent standard Gumbel noise of a shape ``(*batch, n+1, n+1, ...)``, float64 on a device.

    An item's noise depends on its seed, one of ``(B,)``, and not on the padding of its batch.
    """
    heads, *rest = shape[batch_axes:]
    numbers = uniforms(seeds, heads, Size(rest).numel(), salt=GUMBEL_SALT, device=device)
    return -(-numbers.clamp_min(SMALLEST).log()).log().reshape(shape)


def perturbed(scores: Tensor, batch_shape: Size, generator: Generators) -> Tensor:
    """Add Gumbel noise to scores ``(*batch, n+1, n+1, ...)``; the result is float64 with the scores' graph."""
    seeds = item_seeds(generator, batch_shape.numel())
    return scores.double() + gumbel_noise(seeds, scores.shape, len(batch_shape), scores.device)
