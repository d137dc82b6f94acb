"""MIRA's step sizes (Crammer and Singer 2003; McDonald et al. 2005): the least change that enforces all margins."""

import numpy as np

from treeparse.kernels.arrays import FloatArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.threads import run_batch

SWEEPS = 100
PRECISION = 1e-6  # of a step size, relative to the greatest


def margin_steps(products: FloatArray, lacking: FloatArray, limit: float) -> FloatArray:
    """Return how much of each difference of feature vectors is added ``(B, k)``: the least change of the weights.

    Afterwards each of the k differences of an item has the inner product with the change that it lacks ``(B, k)``, or
    more, unless its step is at the ``limit``. ``products`` ``(B, k, k)`` are the inner products of the differences.
    This is the dual of the quadratic program, solved one step size at a time (Hildreth 1957).
    """
    steps = np.zeros(lacking.shape)
    run_batch(_solve, np.ones_like, np.arange(len(lacking)), products, lacking, float(limit), steps, threads=1)
    return steps


@exact_kernel
def _solve(start, stop, _, products, lacking, limit, steps):
    for b in range(start, stop):
        k = lacking.shape[1]
        for _sweep in range(SWEEPS):
            greatest, moved = 0.0, 0.0
            for i in range(k):
                if products[b, i, i] <= 0:
                    continue
                gap = lacking[b, i]
                for j in range(k):
                    gap -= products[b, i, j] * steps[b, j]
                step = min(max(steps[b, i] + gap / products[b, i, i], 0.0), limit)
                moved = max(moved, abs(step - steps[b, i]))
                steps[b, i] = step
                greatest = max(greatest, step)
            if moved <= PRECISION * greatest:
                break
