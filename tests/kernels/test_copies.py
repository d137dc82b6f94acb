"""Copies between rows of float32 and float64 against numpy: nothing beside the rows is read, and nothing is written.

One of the copies is written in whole vectors.
"""

import numpy as np
import pytest

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.copies import copy_below_max, copy_multiple, copy_short
from treeparse.kernels.rows import whole

COUNTS = (1, 2, 7, 8, 9, 16, 30)


@exact_kernel
def _copy_all(below, plain, back, source, at, factor, count):
    top = copy_below_max(below, 3, source, at, count)
    copy_short(plain, 5, source, at, count)
    copy_multiple(back, at, plain, 5, factor, count)
    return top


@pytest.mark.nojit
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["random", "some forbidden", "all forbidden", "large"])
def test_copies(count: int, dtype: type, kind: str) -> None:
    stream = np.random.default_rng(count)
    row = stream.normal(size=count).astype(dtype) * (1e12 if kind == "large" else 1)
    if kind == "some forbidden":
        row[stream.random(count) < 0.5] = -np.inf
    elif kind == "all forbidden":
        row[:] = -np.inf
    # The row ends its array: whoever reads on reads what belongs to others. Before it lies what must not be read.
    source = np.concatenate([np.full(4, np.nan), row]).astype(dtype)
    below, plain, back = np.full(50, 7.0), np.full(50, 7.0), np.full(len(source), 7.0, dtype)
    top = _copy_all(below, plain, back, source, 4, 3.0, count)
    assert top == row.max()
    exact = row.astype(np.float64)
    expected = exact - row.max() if row.max() > -np.inf else exact
    np.testing.assert_array_equal(below[3 : 3 + count], expected)
    np.testing.assert_array_equal(plain[5 : 5 + count], exact)
    np.testing.assert_array_equal(back[4:], (3.0 * exact).astype(dtype))
    for array, start, length in ((below, 3, whole(count)), (plain, 5, count), (back, 4, count)):
        assert (np.delete(array, np.s_[start : start + length]) == 7.0).all()
