"""How a kernel runs over a batch; large batches are split over threads."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType
from typing import Any

import numpy as np

from treeparse.kernels import IntArray
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
    count, parts, steps = len(lengths), 1, np.zeros(1)
    if threads > 1 and count > 1:
        steps = np.cumsum(cost(lengths), dtype=np.float64)
        parts = int(min(threads, count, steps[-1] // MIN_THREAD_COST))
    if parts < 2:
        call(kernel, 0, count, lengths, *arguments)
        return
    ends = np.searchsorted(steps, steps[-1] * np.arange(1, parts) / parts).tolist()
    with ThreadPoolExecutor(parts) as pool:
        ranges = [each for each in itertools.pairwise([0, *ends, count]) if each[0] < each[1]]
        futures = [pool.submit(call, kernel, *each, lengths, *arguments) for each in ranges]
        for future in futures:
            future.result()
