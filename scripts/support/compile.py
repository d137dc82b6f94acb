"""How the algorithms of the literature are compiled, so that nothing but the algorithm sets them apart."""

from collections.abc import Callable
from typing import Any

import numba


def jit(function: Callable[..., Any]) -> Any:
    """Compile as treeparse's kernels are compiled."""
    options: Any = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    return numba.njit(fastmath={"reassoc", "contract", "nsz"}, **options)(function)
