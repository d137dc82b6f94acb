"""Sums over projective trees with siblings against enumeration, first order, and each other in logs."""

import numpy as np
import pytest
from helpers.oracles import Array, score_scale
from helpers.second_order import enumerated, siblings_of

from treeparse.kernels.sums.inside_outside import (
    hessian_vector_product,
    log_marginals,
    log_partition,
    log_partition_and_marginals,
)

SCALES = (1e-3, 1.0, 10.0, 1e2, 1e3, 1e4)
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
LENGTHS = np.array([7, 1, 12, 3, 20])


def random_parts(stream: np.random.Generator, *batch: int, n: int, scale: float = 1.0) -> tuple[Array, Array]:
    return scale * stream.normal(size=(*batch, n + 1, n + 1)), scale * stream.normal(size=(*batch, *(n + 1,) * 3))


def used_siblings(n: int, nodes: int, single_root: bool) -> np.ndarray:
    """Which siblings some tree of n words has."""
    h, d, x = np.ix_(*[np.arange(nodes)] * 3)
    is_between = (np.minimum(h, d) < x) & (x < np.maximum(h, d))
    if single_root:
        is_between = is_between & (h > 0)
    return (d > 0) & (h != d) & (np.maximum(h, d) <= n) & (is_between | (x == h))


def assert_enumerated(arcs: Array, siblings: Array, stream: np.random.Generator, single_root: bool) -> None:
    lengths = np.array([len(arcs) - 1])
    vectors = [stream.normal(size=part.shape) for part in (arcs, siblings)]
    batch = arcs[None], siblings[None]
    expected = enumerated((arcs, siblings), vectors, single_root, [siblings_of])
    scale = score_scale(arcs) + score_scale(siblings.max(-1, where=siblings > -np.inf, initial=0.0))
    log_z, *marginals = log_partition_and_marginals(*batch, lengths, single_root=single_root)
    np.testing.assert_allclose(log_z[0], expected.log_partition, rtol=0, atol=1e-12 * scale)
    np.testing.assert_array_equal(log_partition(*batch, lengths, single_root=single_root), log_z)
    logs = log_marginals(*batch, lengths, single_root=single_root)
    product = hessian_vector_product(*batch, lengths, *(part[None] for part in vectors), single_root=single_root)
    for kind in (0, 1):
        np.testing.assert_allclose(marginals[kind][0], expected.marginals[kind], rtol=0, atol=1e-14 * scale)
        np.testing.assert_array_equal(logs[kind][0] == -np.inf, expected.log_marginals[kind] == -np.inf)
        np.testing.assert_allclose(logs[kind][0], expected.log_marginals[kind], rtol=0, atol=1e-12 * scale)
        np.testing.assert_allclose(product[kind][0], expected.product[kind], rtol=0, atol=1e-14 * scale)


@ROOTS
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("forbidden", [0.0, 0.2, 0.5])
@pytest.mark.nojit
def test_sums_equal_enumeration(single_root: bool, scale: float, forbidden: float) -> None:
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 4, 4, 5):
        parts = random_parts(stream, n=n, scale=scale)
        for part in parts:
            part[stream.random(part.shape) < forbidden / (part.ndim - 1)] = -np.inf
        assert_enumerated(*parts, stream, single_root)


@ROOTS
@pytest.mark.nojit
def test_siblings_of_score_zero_leave_the_trees_of_first_order(single_root: bool) -> None:
    stream = np.random.default_rng(2)
    for scale in (1.0, 300.0):
        arcs, siblings = random_parts(stream, 5, n=20, scale=scale)
        siblings[:] = 0.0
        log_z, marginals, of_siblings = log_partition_and_marginals(arcs, siblings, LENGTHS, single_root=single_root)
        expected = log_partition_and_marginals(arcs, LENGTHS, single_root=single_root)
        np.testing.assert_allclose(log_z, expected[0], rtol=1e-14)
        np.testing.assert_allclose(marginals, expected[1], rtol=0, atol=1e-12)
        np.testing.assert_allclose(of_siblings.sum(-1), marginals, rtol=0, atol=1e-12)
        vectors = stream.normal(size=arcs.shape)
        product, _ = hessian_vector_product(
            arcs, siblings, LENGTHS, vectors, np.zeros_like(siblings), single_root=single_root
        )
        expected = hessian_vector_product(arcs, LENGTHS, vectors, single_root=single_root)
        np.testing.assert_allclose(product, expected, rtol=0, atol=1e-12)


@ROOTS
def test_plain_weights_and_logs_agree(single_root: bool) -> None:
    """Log marginals are computed in logs at any scale, marginals of these scores by plain weights."""
    arcs, siblings = random_parts(np.random.default_rng(3), 5, n=20)
    results = log_partition_and_marginals(arcs, siblings, LENGTHS, single_root=single_root)[1:]
    logs = log_marginals(arcs, siblings, LENGTHS, single_root=single_root)
    for marginals, of_kind in zip(results, logs, strict=True):
        np.testing.assert_allclose(marginals, np.exp(of_kind), rtol=1e-11, atol=0)


@ROOTS
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_products_are_derivatives_of_marginals(single_root: bool, scale: float) -> None:
    stream = np.random.default_rng(4)
    parts, vectors = random_parts(stream, 5, n=20, scale=scale), random_parts(stream, 5, n=20)
    product = hessian_vector_product(*parts, LENGTHS, *vectors, single_root=single_root)
    step = 1e-5
    moved = []
    for sign in (1, -1):
        arcs, siblings = (part + sign * step * vector for part, vector in zip(parts, vectors, strict=True))
        moved.append(log_partition_and_marginals(arcs, siblings, LENGTHS, single_root=single_root)[1:])
    for exact, up, down in zip(product, *moved, strict=True):
        np.testing.assert_allclose(exact, (up - down) / (2 * step), rtol=0, atol=1e-6)


@ROOTS
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.nojit
def test_entries_that_are_no_parts_are_ignored_and_items_do_not_depend_on_their_batch(
    single_root: bool, scale: float
) -> None:
    stream = np.random.default_rng(5)
    arcs, siblings = random_parts(stream, 3, n=8, scale=scale)
    vectors = random_parts(stream, 3, n=8)
    lengths = np.array([8, 2, 5])
    for item, n in enumerate(lengths):
        unused = ~used_siblings(n, 9, single_root)
        siblings[item, unused] = vectors[1][item, unused] = np.nan
        for part in (arcs[item], vectors[0][item]):
            np.fill_diagonal(part, np.nan)
            part[:, 0] = part[n + 1 :] = part[:, n + 1 :] = np.nan
    together = [
        *log_partition_and_marginals(arcs, siblings, lengths, single_root=single_root),
        *log_marginals(arcs, siblings, lengths, single_root=single_root),
        *hessian_vector_product(arcs, siblings, lengths, *vectors, single_root=single_root),
    ]
    for item, n in enumerate(lengths):
        slices = slice(item, item + 1), *[slice(n + 1)] * 3
        alone = arcs[slices[:3]].copy(), siblings[slices].copy(), lengths[item : item + 1]
        alone_vectors = vectors[0][slices[:3]].copy(), vectors[1][slices].copy()
        results = [
            *log_partition_and_marginals(*alone, single_root=single_root),
            *log_marginals(*alone, single_root=single_root),
            *hessian_vector_product(*alone, *alone_vectors, single_root=single_root),
        ]
        for result, batch in zip(results, together, strict=True):
            np.testing.assert_array_equal(result, batch[slices[: result.ndim]])
            assert np.isfinite(result).all() or (result == -np.inf).any()


@ROOTS
@pytest.mark.nojit
def test_siblings_of_float32(single_root: bool) -> None:
    stream = np.random.default_rng(6)
    arcs, siblings = random_parts(stream, 2, n=9)
    single = siblings.astype(np.float32)
    lengths = np.array([9, 4])
    log_z, *marginals = log_partition_and_marginals(arcs, single, lengths, single_root=single_root)
    expected_z, *expected = log_partition_and_marginals(arcs, single.astype(float), lengths, single_root=single_root)
    # Kernels of two types are compiled apart, so that the last bit of a sum may differ.
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-15)
    assert marginals[1].dtype == np.float32
    np.testing.assert_allclose(marginals[1], expected[1], rtol=2**-23)


@ROOTS
def test_a_word_without_possible_arc_leaves_no_tree(single_root: bool) -> None:
    arcs, siblings = random_parts(np.random.default_rng(7), 1, n=4)
    siblings[0, :, 3] = -np.inf
    lengths = np.array([4])
    log_z, *marginals = log_partition_and_marginals(arcs, siblings, lengths, single_root=single_root)
    assert log_z == -np.inf
    assert not any(part.any() for part in marginals)
    assert all((part == -np.inf).all() for part in log_marginals(arcs, siblings, lengths, single_root=single_root))
