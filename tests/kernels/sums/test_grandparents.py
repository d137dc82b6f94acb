"""Sums over projective trees with siblings and grandparents against enumeration, siblings alone, and logs."""

import numpy as np
import pytest
from helpers.oracles import Array, score_scale
from helpers.second_order import enumerated, grandparents_of, siblings_of

from treeparse.kernels.sums.inside_outside import (
    hessian_vector_product,
    log_marginals,
    log_partition,
    log_partition_and_marginals,
)

SCALES = (1e-3, 1.0, 10.0, 1e2, 1e3, 1e4)
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
LENGTHS = np.array([7, 1, 12, 3])


def random_parts(stream: np.random.Generator, *batch: int, n: int, scale: float = 1.0) -> tuple[Array, Array, Array]:
    arcs, siblings, grandparents = (scale * stream.normal(size=(*batch, *(n + 1,) * axes)) for axes in (2, 3, 3))
    return arcs, siblings, grandparents


@ROOTS
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("forbidden", [0.0, 0.2])
@pytest.mark.nojit
def test_sums_equal_enumeration(single_root: bool, scale: float, forbidden: float) -> None:
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 4, 5):
        parts, vectors = random_parts(stream, n=n, scale=scale), random_parts(stream, n=n)
        for part in parts:
            part[stream.random(part.shape) < forbidden / (part.ndim - 1)] = -np.inf
        expected = enumerated(parts, vectors, single_root, [siblings_of, grandparents_of])
        size = sum(score_scale(part.max(-1, initial=0.0) if part.ndim == 3 else part) for part in parts)
        (arcs, siblings, grandparents), lengths = (part[None] for part in parts), np.array([n])
        batch = arcs, siblings, grandparents, lengths
        log_z, *marginals = log_partition_and_marginals(*batch, single_root=single_root)
        np.testing.assert_allclose(log_z[0], expected.log_partition, rtol=0, atol=1e-12 * size)
        np.testing.assert_array_equal(log_partition(*batch, single_root=single_root), log_z)
        logs = log_marginals(*batch, single_root=single_root)
        along = (vector[None] for vector in vectors)
        product = hessian_vector_product(*batch, *along, single_root=single_root)
        for kind in range(3):
            np.testing.assert_allclose(marginals[kind][0], expected.marginals[kind], rtol=0, atol=1e-14 * size)
            np.testing.assert_array_equal(logs[kind][0] == -np.inf, expected.log_marginals[kind] == -np.inf)
            np.testing.assert_allclose(logs[kind][0], expected.log_marginals[kind], rtol=0, atol=1e-12 * size)
            np.testing.assert_allclose(product[kind][0], expected.product[kind], rtol=0, atol=1e-14 * size)


@ROOTS
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_grandparents_of_score_zero_leave_siblings(single_root: bool, scale: float) -> None:
    stream = np.random.default_rng(2)
    arcs, siblings, grandparents = random_parts(stream, 4, n=12, scale=scale)
    grandparents[:] = 0.0
    found = log_partition_and_marginals(arcs, siblings, grandparents, LENGTHS, single_root=single_root)
    expected = log_partition_and_marginals(arcs, siblings, LENGTHS, single_root=single_root)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
    for part, other in zip(found[1:], expected[1:], strict=False):
        np.testing.assert_allclose(part, other, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[3].sum(-1)[:, 1:], found[1][:, 1:], rtol=0, atol=1e-12)


@ROOTS
def test_plain_weights_and_logs_agree(single_root: bool) -> None:
    """Log marginals are computed in logs at any scale, marginals of these scores by plain weights."""
    parts, lengths = random_parts(np.random.default_rng(3), 4, n=26), np.array([26, 8, 17, 3])
    results = log_partition_and_marginals(*parts, lengths, single_root=single_root)[1:]
    logs = log_marginals(*parts, lengths, single_root=single_root)
    for marginals, of_kind in zip(results, logs, strict=True):
        np.testing.assert_allclose(marginals, np.exp(of_kind), rtol=1e-11, atol=0)


@ROOTS
def test_products_are_differences_of_marginals(single_root: bool) -> None:
    stream, lengths, step = np.random.default_rng(4), np.array([19, 8]), 1e-5
    parts, vectors = random_parts(stream, 2, n=19), random_parts(stream, 2, n=19)
    ends = []
    for side in (step, -step):
        arcs, siblings, grandparents = (part + side * vector for part, vector in zip(parts, vectors, strict=True))
        moved = arcs, siblings, grandparents, lengths
        ends.append(log_partition_and_marginals(*moved, single_root=single_root)[1:])
    products = hessian_vector_product(*parts, lengths, *vectors, single_root=single_root)
    for product, after, before in zip(products, *ends, strict=True):
        np.testing.assert_allclose(product, (after - before) / (2 * step), rtol=0, atol=1e-8)


@ROOTS
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.nojit
def test_items_do_not_depend_on_their_batch(single_root: bool, scale: float) -> None:
    stream = np.random.default_rng(5)
    parts, vectors = random_parts(stream, 3, n=6, scale=scale), random_parts(stream, 3, n=6)
    lengths = np.array([6, 2, 4])
    for part in (*parts, *vectors):
        for item, n in enumerate(lengths):
            for axis in range(part.ndim - 1):
                np.moveaxis(part[item], axis, 0)[n + 1 :] = np.nan
    together = [
        *log_partition_and_marginals(*parts, lengths, single_root=single_root),
        *log_marginals(*parts, lengths, single_root=single_root),
        *hessian_vector_product(*parts, lengths, *vectors, single_root=single_root),
    ]
    for item, n in enumerate(lengths):
        slices = slice(item, item + 1), *[slice(n + 1)] * 3
        arcs, siblings, grandparents = (part[slices[: part.ndim]].copy() for part in parts)
        own = arcs, siblings, grandparents, lengths[item : item + 1]
        along = (vector[slices[: vector.ndim]].copy() for vector in vectors)
        results = [
            *log_partition_and_marginals(*own, single_root=single_root),
            *log_marginals(*own, single_root=single_root),
            *hessian_vector_product(*own, *along, single_root=single_root),
        ]
        for result, batch in zip(results, together, strict=True):
            np.testing.assert_array_equal(result, batch[slices[: result.ndim]])
            assert not np.isnan(result).any()


@ROOTS
def test_parts_of_float32(single_root: bool) -> None:
    arcs, siblings, grandparents = random_parts(np.random.default_rng(6), 2, n=9)
    short = siblings.astype(np.float32), grandparents.astype(np.float32)
    lengths = np.array([9, 4])
    log_z, *marginals = log_partition_and_marginals(arcs, *short, lengths, single_root=single_root)
    exact = short[0].astype(np.float64), short[1].astype(np.float64)
    expected_z, *expected = log_partition_and_marginals(arcs, *exact, lengths, single_root=single_root)
    np.testing.assert_array_equal(log_z, expected_z)
    for part, other in zip(marginals[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(part, other.astype(np.float32))
