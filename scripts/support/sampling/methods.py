"""The library's samplers of non-projective trees with replacement, and two that exist to be compared with them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scripts.support.sampling.colbourn import sample_word_by_word
from scripts.support.sampling.rejection import sample_by_rejection

from treeparse.kernels.samples import nonprojective_samples
from treeparse.kernels.samples.nonprojective_samples import STEPS_A_PAIR
from treeparse.kernels.threads import run_batch

AUTO, EXPANSION = nonprojective_samples.AUTO, nonprojective_samples.EXPANSION
WILSON, WILSON_MARGINAL = nonprojective_samples.WILSON, nonprojective_samples.WILSON_MARGINAL
WILSON_REJECT, COLBOURN = range(WILSON_MARGINAL + 1, WILSON_MARGINAL + 3)
KERNELS: dict[int, Any] = {WILSON_REJECT: sample_by_rejection, COLBOURN: sample_word_by_word}


def sample_trees(
    scores: NDArray[np.float64],
    lengths: NDArray[np.int64],
    seeds: np.ndarray,
    count: int,
    *,
    single_root: bool,
    method: int = AUTO,
    steps_a_pair: float = STEPS_A_PAIR,
    threads: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw heads ``(B, count, n+1)`` and the steps of their walks ``(B, count)``, as `nonprojective_samples` does.

    Raises:
        ValueError: if the method draws trees with another number of roots.
    """
    if method not in KERNELS:
        options = {"method": method, "steps_a_pair": steps_a_pair, "threads": threads}
        return nonprojective_samples.sample_trees(scores, lengths, seeds, count, single_root=single_root, **options)
    if method == WILSON_REJECT and not single_root:
        raise ValueError("Rejection draws trees with a single root, not with any number of roots.")
    heads = np.full((len(lengths), count, scores.shape[1]), -1)
    steps = np.zeros((len(lengths), count), np.int64)
    draws = scores, seeds, single_root, method, float(steps_a_pair), heads, steps
    run_batch(KERNELS[method], lambda n: n**3 + 5 * count * n**2, lengths, *draws, threads=threads)
    return heads, steps
