"""The arrays that kernels take and return, and longer copies of them."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
AnyFloatArray = NDArray[np.floating]  # float32 or float64
IntArray = NDArray[np.int64]


def lengthened(array: np.ndarray, more: int, axis: int, fill: float) -> np.ndarray:
    """Return a copy with ``more`` entries of ``fill`` at the end of an axis."""
    shape = list(array.shape)
    shape[axis] = more
    return np.concatenate([array, np.full(shape, fill, array.dtype)], axis)
