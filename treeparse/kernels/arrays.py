"""The arrays that kernels take and return."""

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
AnyFloatArray = NDArray[np.floating]  # float32 or float64
IntArray = NDArray[np.int64]

LINE = 64  # bytes of a line of cache, which is a vector's length


def aligned(*shape: int) -> FloatArray:
    """Return an empty array that begins with a line of cache; vectors across two lines take twice as long to read."""
    count = math.prod(shape)
    numbers = np.empty(count + LINE // 8)
    start = -numbers.__array_interface__["data"][0] % LINE // 8
    return numbers[start : start + count].reshape(shape)
