"""How every kernel is compiled, and how a large batch is split over threads.

A kernel is one compiled function ``kernel(start, stop, lengths, ...)`` that does the batch items of a range. Compiled
code is kept on disk until any file of this folder changes (``cache``), so a kernel may call helpers of another file.
"""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numpy.typing import NDArray

from treeparse.kernels.cache import KernelCache

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Arguments in a literal's place, for each of which numba would compile a function of its own.
NO, YES, ZERO, ONE = np.bool_(False), np.bool_(True), np.int64(0), np.int64(1)

MIN_THREAD_COST = 1e6  # elementary steps, about a millisecond: less than that is not worth a thread


class _PartCode(JITCodeLibrary):
    """The code of a function that is optimised only as a part of the kernels that it is linked into."""

    def _optimize_final_module(self) -> None:
        pass


class _PartCompiler(Compiler):
    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = _PartCode(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


def _compiler(**options: Any) -> Any:
    def compile_function(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(nogil=True, error_model="numpy", **options)(function)
        if dispatcher is not function:  # as it is under NUMBA_DISABLE_JIT=1
            dispatcher._cache = KernelCache(function)
        return dispatcher

    return compile_function


# fastmath is said to be off: otherwise numba compiles a helper with the flags of the first caller that needs it.
jit = _compiler(fastmath=False)
# For what calls much and is called by kernels alone: with a function numba optimises all that it calls over again, so
# that deep calls take long to compile. Inner loops are better optimised by themselves, too.
part_jit = _compiler(fastmath=False, pipeline_class=_PartCompiler)
# The flags let loops over sums be vectorised. Neither nnan nor ninf: -inf is a score, and finiteness is tested.
vector_jit = _compiler(fastmath={"reassoc", "contract", "nsz"})


def run_batch(
    kernel: Callable[..., None],
    cost: Callable[[IntArray], np.ndarray],
    lengths: IntArray,
    *arguments: Any,
    threads: int,
) -> None:
    """Run a kernel over a whole batch, in ranges of about equal cost on up to ``threads`` threads.

    ``cost`` estimates the elementary steps of items by their lengths. The threads end with the call: a pool that
    outlives it would break forked workers.
    """
    # Underflow and the like are part of the algorithms; plain Python (NUMBA_DISABLE_JIT=1) would warn about them.
    bounds = _bounds(cost, lengths, threads)
    if len(bounds) == 2:
        with np.errstate(all="ignore"):
            kernel(*bounds, lengths, *arguments)
        return
    with ThreadPoolExecutor(len(bounds) - 1) as pool:
        ranges = itertools.pairwise(bounds)
        futures = [pool.submit(kernel, start, stop, lengths, *arguments) for start, stop in ranges if start < stop]
        for future in futures:
            future.result()


def _bounds(cost: Callable[[IntArray], np.ndarray], lengths: IntArray, threads: int) -> list[int]:
    """Where the ranges begin and the last one ends; there are no more than are worth a thread."""
    count = len(lengths)
    if min(threads, count) > 1:
        steps = np.cumsum(cost(lengths), dtype=np.float64)
        parts = int(min(threads, count, steps[-1] // MIN_THREAD_COST))
        if parts > 1:
            return [0, *np.searchsorted(steps, steps[-1] * np.arange(1, parts) / parts).tolist(), count]
    return [0, count]
