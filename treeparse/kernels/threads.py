"""How a kernel runs over a batch; large batches are split over threads."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType
from typing import Any

import numpy as np

from treeparse.kernels.arrays import IntArray
from treeparse.kernels.compile import call

MIN_THREAD_COST = 1e6  # elementary steps, about a millisecond: less than that is not worth a thread


def run_batch(
    kernel: Callable[..., None],
    cost: Callable[[IntArray], np.ndarray],
    lengths: IntArray,
    *arguments: Any,
    threads: int,
) -> None:
    """Run a kernel over a whole batch, in ranges of about equal cost on up to ``threads`` threads.

    ``cost`` estimates the elementary steps of items by their lengths. The threads end with the call, because a
    pool that outlives it would break forked workers.
    """
    if isinstance(kernel, FunctionType):  # it would warn about underflow and the like, which algorithms allow for
        kernel = np.errstate(all="ignore")(kernel)
    bounds = _bounds(cost, lengths, threads)
    if len(bounds) == 2:
        call(kernel, *bounds, lengths, *arguments)
        return
    with ThreadPoolExecutor(len(bounds) - 1) as pool:
        ranges = [each for each in itertools.pairwise(bounds) if each[0] < each[1]]
        futures = [pool.submit(call, kernel, *each, lengths, *arguments) for each in ranges]
        for future in futures:
            future.result()


def _bounds(cost: Callable[[IntArray], np.ndarray], lengths: IntArray, threads: int) -> list[int]:
    """Return the bounds of the ranges, of which each is worth a thread."""
    count = len(lengths)
    if min(threads, count) > 1:
        steps = np.cumsum(cost(lengths), dtype=np.float64)
        parts = int(min(threads, count, steps[-1] // MIN_THREAD_COST))
        if parts > 1:
            return [0, *np.searchsorted(steps, steps[-1] * np.arange(1, parts) / parts).tolist(), count]
    return [0, count]
