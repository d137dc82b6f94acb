"""How every kernel is compiled, and how a large batch is split over threads.

A kernel is one compiled function ``kernel(start, stop, lengths, ...)`` that does the batch items of a range. It calls
jitted helpers of its own file only: numba's cache does not see a change in a helper of another file.
"""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

jit: Any = numba.njit(cache=True, nogil=True, error_model="numpy")
# The flags let loops over sums be vectorised. Neither nnan nor ninf: -inf is a score, and finiteness is tested.
vector_jit: Any = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

MIN_THREAD_COST = 1e6  # elementary steps, about a millisecond: less than that is not worth a thread


def run_batch(kernel: Callable[..., None], cost: np.ndarray, lengths: IntArray, *arguments: Any, threads: int) -> None:
    """Run a kernel over a whole batch, in ranges of about equal cost on up to ``threads`` threads.

    ``cost`` (B,) estimates each item's elementary steps. The threads end with the call: a pool that outlives it would
    break forked workers.
    """
    count = len(lengths)
    if count == 0:
        return
    total = float(cost.sum())
    parts = int(max(1, min(threads, count, total // MIN_THREAD_COST)))
    # Underflow and the like are part of the algorithms; plain Python (NUMBA_DISABLE_JIT=1) would warn about them.
    if parts == 1:
        with np.errstate(all="ignore"):
            kernel(0, count, lengths, *arguments)
        return
    bounds = np.searchsorted(np.cumsum(cost), total * np.arange(1, parts) / parts)
    ranges = itertools.pairwise([0, *bounds.tolist(), count])
    with ThreadPoolExecutor(parts) as pool:
        futures = [pool.submit(kernel, start, stop, lengths, *arguments) for start, stop in ranges if start < stop]
        for future in futures:
            future.result()
