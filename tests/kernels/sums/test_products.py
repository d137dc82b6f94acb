"""What holds of products of any vector with the Hessian, over either family of trees."""

import numpy as np
import pytest
from helpers.hessian_products import Kernel, checked_product

from treeparse.kernels.sums import hessian, inside_outside

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
KERNELS = pytest.mark.parametrize(
    "kernel",
    [hessian.hessian_vector_product, inside_outside.hessian_vector_product],
    ids=["nonprojective", "projective"],
)


@KERNELS
@ROOTS
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
def test_the_hessian_is_symmetric_and_its_columns_sum_to_zero(kernel: Kernel, single_root: bool, scale: float) -> None:
    scores, first, second = np.random.default_rng(9).normal(size=(3, 31, 31))
    scores *= scale
    product, other = (checked_product(kernel, scores, vector, single_root) for vector in (first, second))
    assert abs((second * product).sum() - (first * other).sum()) <= 1e-14 * max(100.0, scale)
    np.testing.assert_allclose(product.sum(0), 0.0, atol=1e-14)


@KERNELS
@ROOTS
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_a_constant_of_a_column_changes_nothing(kernel: Kernel, single_root: bool, scale: float) -> None:
    scores, vector = np.random.default_rng(10).normal(size=(2, 13, 13))
    scores *= scale
    constant = np.broadcast_to(1e3 * np.arange(13.0), (13, 13))
    assert not checked_product(kernel, scores, constant, single_root).any()
    shifted, product = (checked_product(kernel, scores, v, single_root) for v in (vector + constant, vector))
    np.testing.assert_allclose(shifted, product, rtol=0, atol=1e-11)


@KERNELS
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_vectors_of_any_magnitude(kernel: Kernel, scale: float) -> None:
    scores, vector = np.random.default_rng(11).normal(size=(2, 9, 9))
    product = checked_product(kernel, scores * scale, vector, True)
    for magnitude in (2.0**-300, 2.0**-60, 2.0**60, 2.0**300):
        scaled = checked_product(kernel, scores * scale, vector * magnitude, True)
        np.testing.assert_allclose(scaled / magnitude, product, rtol=0, atol=1e-15)
    assert not checked_product(kernel, scores * scale, 0 * vector, True).any()


@KERNELS
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_shows(kernel: Kernel, wrong: float) -> None:
    scores, vectors = np.random.default_rng(12).normal(size=(2, 2, 6, 6))
    expected = kernel(scores, np.array([5, 5]), vectors, single_root=True)
    vectors[0, 2, 3] = wrong
    product = kernel(scores, np.array([5, 5]), vectors, single_root=True)
    assert np.isnan(product[0, 2, 3])
    np.testing.assert_array_equal(product[1], expected[1])
