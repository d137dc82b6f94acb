"""The arrays that kernels take and return."""

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
AnyFloatArray = NDArray[np.floating]  # float32 or float64
IntArray = NDArray[np.int64]

NO_PLACES = np.empty(0, np.int64)


def places_of_nan(numbers: FloatArray) -> IntArray:
    """Return the places ``(I,)`` of NaN among numbers ``(B,)``.

    There are mostly none, and then this takes a fifth of the time of ``np.isnan``.
    """
    return np.isnan(numbers).nonzero()[0] if math.isnan(numbers.dot(numbers)) else NO_PLACES
