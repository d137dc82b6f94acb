"""Tables of weights: float32 while they are learned, float8 afterwards.

Most of the time of a score is spent on reading weights at random, so that a table of a quarter of the size is read
twice as fast.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from treeparse.kernels.compile import exact_kernel

# A float8 is of the kind E4M3: a sign, four bits of exponent and three of mantissa. These are the highest bits of a
# float32 if the exponent grows by 120, but for numbers below LOWEST in magnitude, of the lowest exponent: `decoded`.
MAGNITUDE, SIGN = np.int32(0x7F), np.int32(0x80)
TO_EXPONENT, TO_SIGN = np.int32(20), np.int32(24)
OFFSET = np.int32(120 << 23)
LOWEST = np.float32(2.0**-6)
CODES = 256


class WeightTable(NamedTuple):
    """Weights of features: ``(2**bits,)`` of parts or ``(2**bits, L)`` of labels.

    Attributes:
        values: float32 weights, or the bytes of float8 ones.
        scale: by which float8 weights are multiplied.
    """

    values: NDArray[Any]
    scale: np.float32 = np.float32(1)


@exact_kernel
def decoded(byte):
    """Return the number that the byte of a float8 stands for; of NaN, any.

    With the lowest exponent it is ``2 * number - LOWEST``, and otherwise that is not below the number. To read the bits
    as a denormal float32 instead and multiply takes many times as long.
    """
    bits = np.int32(byte)
    number = np.int32(((bits & MAGNITUDE) << TO_EXPONENT) + OFFSET).view(np.float32)
    magnitude = np.float32(min(number, np.float32(2) * number - LOWEST))
    return np.int32(magnitude.view(np.int32) | ((bits & SIGN) << TO_SIGN)).view(np.float32)


@exact_kernel
def new_codes(scale):
    """Return the weights of all bytes: to look them up is faster than to decode, where weights are read one by one."""
    codes = np.empty(CODES, np.float32)
    for byte in range(CODES):
        codes[byte] = scale * decoded(byte)
    return codes


def weight(values, codes, index):  # pyright: ignore
    """Return one weight of a table; ``codes`` are those of `new_codes`."""
    return codes[values[index]] if values.dtype == np.uint8 else values[index]


@overload(weight, inline="always")
def _weight(values, codes, index):  # pyright: ignore
    if values.dtype is types.uint8:
        return lambda values, codes, index: codes[values[index]]
    return lambda values, codes, index: values[index]


def weight_in_row(row, scale, index):  # pyright: ignore
    """Return one weight of a row that is read as a whole, in vectors."""
    return scale * decoded(row[index]) if row.dtype == np.uint8 else row[index]


@overload(weight_in_row, inline="always")
def _weight_in_row(row, scale, index):  # pyright: ignore
    if row.dtype is types.uint8:
        return lambda row, scale, index: scale * decoded(row[index])
    return lambda row, scale, index: row[index]
