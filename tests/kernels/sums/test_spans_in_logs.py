"""Sums in logs against plain weights where these are safe."""

import numpy as np
import pytest

from treeparse.kernels.sums.inside_outside import hessian_vector_product, log_partition_and_marginals
from treeparse.kernels.sums.spans_in_logs import sum_items

LENGTHS = np.array([1, 5, 0, 26])
SIZE = 28


@pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
@pytest.mark.parametrize("kinds", [1, 2, 3], ids=["arcs", "siblings", "grandparents"])
def test_logs_agree_with_plain_weights(kinds: int, single_root: bool) -> None:
    stream = np.random.default_rng(1)
    shapes = [(len(LENGTHS), *(SIZE,) * axes) for axes in (2, 3, 3)][:kinds]
    parts = tuple(2 * stream.normal(size=shape) for shape in shapes)
    vectors = tuple(stream.normal(size=shape) for shape in shapes)
    parts[0][stream.random(shapes[0]) < 0.2] = -np.inf
    parts[0][:, np.arange(SIZE - 1), np.arange(1, SIZE)] = 0.0  # each word may have the one before it
    expected_z, *expected = log_partition_and_marginals(*parts, LENGTHS, single_root=single_root)
    expected_product = hessian_vector_product(*parts, LENGTHS, *vectors, single_root=single_root)
    expected_product = expected_product if kinds > 1 else (expected_product,)
    items, log_z = np.array([0, 2, 3]), np.full(len(LENGTHS), 7.0)
    marginals, product = (tuple(np.full_like(part, 7.0) for part in parts) for _ in range(2))
    options = {"single_root": single_root, "threads": 1}
    sum_items(parts, LENGTHS, items, log_z, product, vectors, **options)
    sum_items(parts, LENGTHS, items, log_z, marginals, **options)
    assert (expected_z > -np.inf).all()
    np.testing.assert_allclose(log_z[items], expected_z[items], rtol=1e-14)
    for kind in range(kinds):
        np.testing.assert_allclose(np.exp(marginals[kind][items]), expected[kind][items], rtol=0, atol=1e-14)
        np.testing.assert_allclose(product[kind][items], expected_product[kind][items], rtol=0, atol=1e-13)
        assert (marginals[kind][1] == 7.0).all()
        assert (product[kind][1] == 7.0).all()
