"""Products of a vector with the Hessian of one item's log partition, by the kernel for either family of trees."""

from collections.abc import Callable

import numpy as np
from helpers.batches import padded
from helpers.oracles import Array

Kernel = Callable[..., Array]


def checked_product(kernel: Kernel, scores: Array, vector: Array, single_root: bool) -> Array:
    """The product for one item; checks what holds for any scores. What must be ignored is NaN or infinite."""
    direction = padded(np.where(scores == -np.inf, np.nan, vector), np.inf)
    lengths = np.array([len(scores) - 1])
    product = kernel(padded(scores, 1e300), lengths, direction, single_root=single_root)[0]
    assert np.isfinite(product).all()
    ignored = np.eye(len(scores) + 1) == 1
    ignored[:-1, :-1] |= scores == -np.inf
    ignored[:, [0, -1]] = ignored[-1] = True
    assert not product[ignored].any()
    return product[:-1, :-1]
