"""How the algorithms of the literature are compiled, so that nothing but the algorithm sets them apart."""

from collections.abc import Callable
from typing import Any

import numba

from treeparse.kernels.compile import OPTIONS


def jit(function: Callable[..., Any]) -> Any:
    """Compile as treeparse's kernels are compiled."""
    return numba.njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, **OPTIONS)(function)
