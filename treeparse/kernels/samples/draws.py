"""What every sampler of non-projective trees with replacement is given, and what it fills in."""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray


class Draws(NamedTuple):
    """The trees of all items, and what they are drawn from."""

    scores: FloatArray  # (B, n+1, n+1)
    seeds: np.ndarray  # (B,) uint64
    single_root: bool
    method: int
    steps_a_pair: float  # times n^2, the steps of walks after which expansion takes over
    heads: IntArray  # (B, S, n+1), -1 before they are drawn
    steps: IntArray  # (B, S), 0 before
