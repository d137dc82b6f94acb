"""Random numbers by seeds: the counter-based streams of ``treeparse.kernels.random``, the same bits on any device.

Seeds are int64 tensors ``(B,)``, one a batch item, on any device; their bits are those of the kernels' uint64.
"""

import torch
from torch import Tensor

from treeparse.batch import moved
from treeparse.kernels import random
from treeparse.trees.families.arrays import seed_bits
from treeparse.trees.looks import is_at_hand

# SplitMix64 as in the kernels, on signed numbers
GAMMA, FIRST_FACTOR, SECOND_FACTOR = (
    constant - 2**64 for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def uniforms(seeds: Tensor, samples: int, draws: int, *, salt: int, device: torch.device) -> Tensor:
    """Uniform numbers ``(B, samples, draws)`` on a device, float64; the salt sets them apart from others."""
    seeds = moved(seeds, device)
    if is_at_hand(seeds):
        return torch.from_numpy(random.uniforms(seed_bits(seeds), samples, draws, salt=salt))
    return uniforms_by_tensors(seeds ^ salt, samples, draws)


def uniforms_by_tensors(seeds: Tensor, samples: int, draws: int, *, first: int = 0) -> Tensor:
    """The same where the seeds are; the number of the first sample may be another one."""
    sample = torch.arange(first, first + samples, device=seeds.device)
    stream = _mixed(seeds.unsqueeze(-1) ^ _mixed(sample * GAMMA + GAMMA))
    draw = torch.arange(1, draws + 1, device=seeds.device)
    bits = _mixed(stream.unsqueeze(-1) + draw * GAMMA)
    return (_shifted(bits, 12).to(torch.float64) + 0.5) * 2.0**-52


def _mixed(bits: Tensor) -> Tensor:
    bits = (bits ^ _shifted(bits, 30)) * FIRST_FACTOR
    bits = (bits ^ _shifted(bits, 27)) * SECOND_FACTOR
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, places: int) -> Tensor:
    """Shifted right, with zeros coming in from the left."""
    return (bits >> places) & (2 ** (64 - places) - 1)
