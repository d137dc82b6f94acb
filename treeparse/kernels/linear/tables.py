"""Tables of weights: float32 while they are learned, one byte a weight afterwards.

Most of the time of a score is spent on reading weights at random, so that a table of a quarter of the size is read
twice as fast.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

CODES = 256


class WeightTable(NamedTuple):
    """Weights of features: ``(2**bits,)`` of parts or ``(2**bits, L)`` of labels.

    Attributes:
        values: float32 weights, or bytes that index ``codes``.
        codes: ``(256,)`` float32, the weights that bytes stand for.
    """

    values: NDArray[Any]
    codes: NDArray[np.float32]

    @classmethod
    def of_floats(cls, weights: NDArray[np.float32]) -> "WeightTable":
        """Return the table of float32 weights."""
        return cls(weights, np.zeros(CODES, np.float32))


def weight(values, codes, index):  # pyright: ignore
    """Return the weight at an index of a row or table."""
    return codes[values[index]] if values.dtype == np.uint8 else values[index]


@overload(weight, inline="always")
def _weight(values, codes, index):  # pyright: ignore
    if values.dtype is types.uint8:
        return lambda values, codes, index: codes[values[index]]
    return lambda values, codes, index: values[index]
