"""Bilinear forms of pairs, against numpy in double precision."""

import numpy as np
import pytest

from treeparse.kernels.networks import add_pair_products


@pytest.mark.nojit
@pytest.mark.parametrize(("pairs", "labels", "size"), [(0, 3, 4), (1, 1, 1), (8, 5, 37), (8, 5, 0)])
def test_products_are_added_to_what_there_is(pairs: int, labels: int, size: int) -> None:
    stream = np.random.default_rng(1)
    mixed, vectors, sums = (
        stream.normal(size=shape).astype(np.float32) for shape in ((3, labels * size), (4, size), (pairs, labels))
    )
    rows, columns = stream.integers(3, size=pairs), stream.integers(4, size=pairs)
    matrices = mixed.astype(np.float64).reshape(3, labels, size)
    expected = sums + np.einsum("pld,pd->pl", matrices[rows], vectors[columns].astype(np.float64))
    add_pair_products(mixed, rows, vectors, columns, sums)
    np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-5)
