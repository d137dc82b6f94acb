"""Products of matrices and vectors that kernels spell out, against numpy, compiled and as plain Python."""

import numpy as np
import pytest
from treeparse.kernels.sums.products import add_product, add_transposed_product

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.vectors import copy_transposed


@pytest.mark.nojit
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 13])
@pytest.mark.parametrize("inner", [0, 1, 9])
def test_products_of_parts_of_matrices(rows: int, inner: int) -> None:
    total, left, right = np.random.default_rng(1).normal(size=(3, 24, 24))
    expected, transposed = total.copy(), total.copy()
    expected[3 : 3 + rows, 8:24] += left[2 : 2 + rows, 5 : 5 + inner] @ right[1 : 1 + inner, :16]
    transposed[3 : 3 + rows, 8:24] += left[5 : 5 + inner, 2 : 2 + rows].T @ right[1 : 1 + inner, :16]
    result = total.copy()
    add_product(result, (3, 8), left, (2, 5), right, (1, 0), (rows, inner, 16))
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-14)
    result = total.copy()
    add_transposed_product(result, (3, 8), left, (5, 2), right, (1, 0), (rows, inner, 16))
    np.testing.assert_allclose(result, transposed, rtol=0, atol=1e-14)


@exact_kernel
def _transpose(target, source):
    copy_transposed(target, 30, 9, source, 2, 11)


@pytest.mark.nojit
def test_vectors_are_copied_as_columns() -> None:
    target, source = np.random.default_rng(2).normal(size=(2, 110))
    expected = target.copy()
    for row in range(8):
        for column in range(8):
            expected[30 + 9 * column + row] = source[2 + 11 * row + column]
    _transpose(target, source)
    np.testing.assert_allclose(target, expected, rtol=0, atol=1e-14)
