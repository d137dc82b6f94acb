"""How the algorithms of the literature are compiled, so that nothing but the algorithm sets them apart."""

from collections.abc import Callable
from typing import Any

from treeparse.kernels.compile import compiled


def jit(function: Callable[..., Any]) -> Any:
    """Compile as treeparse's kernels are compiled."""
    return compiled(function, cache=True, fastmath={"reassoc", "contract", "nsz"})
