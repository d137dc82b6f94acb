"""How every kernel is compiled.

A kernel is one compiled function ``kernel(start, stop, lengths, ...)`` that computes the batch items of a range;
``threads`` calls it. ``numba_private`` compiles kernels faster, by private parts of numba, and caches them on disk. If
numba lacks these or has changed them, ``numba.njit`` compiles kernels in every process, with the same results.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numba
from numba.extending import overload

try:
    from treeparse.kernels import numba_private
except (ImportError, AttributeError) as error:
    numba_private = None
    logging.getLogger("treeparse.kernels").warning(
        "Compiled kernels cannot be cached, so every process compiles them again, for minutes: treeparse does not know "
        "numba %s (%s). Install a version that treeparse's requirements allow.",
        numba.__version__,
        error,
    )

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def without_shipped_code() -> AbstractContextManager[None]:
    """Compile kernels for this processor within the block, even where code for kinds of processors would do."""
    return nullcontext() if numba_private is None else numba_private.without_shipped_code()


def compiled(function: Callable[..., Any], *, part: bool = False, borrows: bool = False, **options: Any) -> Any:
    """Compile a function with options of ``numba.njit`` as kernels are compiled, without their cache."""
    if numba_private is None:
        return function if numba.njit(function) is function else _PlainlyCompiled(function, **OPTIONS, **options)
    return numba_private.compiled(function, part=part, borrows=borrows, **OPTIONS, **options)


class _PlainlyCompiled:
    """A function compiled by public parts of numba alone.

    Kernels call it as an overload, which numba compiles once for all numbers. A function that ``numba.njit`` returns is
    compiled again for each literal number in a call, and sums of rows whose bounds are known then round differently.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self._function = numba.njit(**options)(function)
        inline = options.pop("inline", "never")
        as_overload: Any = overload  # its type has no fastmath
        as_overload(self, options, strict=False, inline=inline)(lambda *arguments: function)

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


def _compiler(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    def compile_kernel(function: Callable[..., Any]) -> Any:
        if numba_private is None:
            return compiled(function, **options)
        return numba_private.compiled_and_cached(function, **OPTIONS, **options)

    return compile_kernel


# fastmath is set even where it is off: otherwise numba compiles a helper with the flags of its first caller.
jit = _compiler(fastmath=False)
# For functions that call much and are called by kernels alone: numba optimises a function together with all that it
# calls, so deep calls take long to compile. Inner loops are better optimised alone, too.
part_jit = _compiler(fastmath=False, part=True)
# For functions that borrow their arrays: neither they nor the functions that they call count references to arrays,
# because counting took most of the time of short calls with many arrays. They neither make nor return arrays.
lent_jit = _compiler(fastmath=False, borrows=True)
lent_part_jit = _compiler(fastmath=False, part=True, borrows=True)
# The flags let loops over sums be vectorised. Neither nnan nor ninf: -inf is a score, and finiteness is tested.
vector_jit = _compiler(fastmath={"reassoc", "contract", "nsz"}, borrows=True)
# As ``vector_jit``, but sums keep their order, because rounding by adding and subtracting a constant needs it.
fused_jit = _compiler(fastmath={"contract"}, borrows=True)
# For views of arrays, which become part of the function that calls them.
view_jit = _compiler(inline="always", fastmath=False)
