"""Sums over projective trees with siblings, and grandparents, against enumeration, lower orders, and each other."""

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

SCALES = (1e-3, pytest.param(1.0, marks=pytest.mark.nojit), 10.0, 1e2, 1e3, pytest.param(1e4, marks=pytest.mark.nojit))
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
KINDS = pytest.mark.parametrize("kinds", [2, 3], ids=["siblings", "grandparents"])


def random_parts(kinds: int, stream: np.random.Generator, *batch: int, n: int, scale: float = 1.0) -> list[Array]:
    """Scores of arcs, siblings and, as the third kind, grandparents."""
    return [scale * stream.normal(size=(*batch, *(n + 1,) * axes)) for axes in (2, 3, 3)[:kinds]]


def used_parts(kinds: int, n: int, nodes: int, single_root: bool) -> list[np.ndarray]:
    """Which parts of each kind some tree of n words has."""
    h, d, x = np.ix_(*[np.arange(nodes)] * 3)
    first, last = np.minimum(h, d), np.maximum(h, d)
    is_arc = (d > 0) & (h != d) & (last <= n)
    is_between = (first < x) & (x < last) & (h > 0 if single_root else True)
    is_outside = (h > 0) & (x <= n) & ((x < first) | (last < x))
    return [is_arc[:, :, 0], is_arc & (is_between | (x == h)), is_arc & is_outside][:kinds]


@KINDS
@ROOTS
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("forbidden", [0.0, 0.2, 0.5])
def test_sums_equal_enumeration(kinds: int, single_root: bool, scale: float, forbidden: float) -> None:
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 4, 5):
        parts, vectors = random_parts(kinds, stream, n=n, scale=scale), random_parts(kinds, stream, n=n)
        for part in parts:
            part[stream.random(part.shape) < forbidden / (part.ndim - 1)] = -np.inf
        expected = enumerated(parts, vectors, single_root, [siblings_of, grandparents_of][: kinds - 1])
        size = sum(score_scale(part.max(-1, initial=0.0) if part.ndim == 3 else part) for part in parts)
        batch = *(part[None] for part in parts), np.array([n])
        log_z, *marginals = log_partition_and_marginals(*batch, single_root=single_root)
        np.testing.assert_allclose(log_z[0], expected.log_partition, rtol=0, atol=1e-12 * size)
        np.testing.assert_array_equal(log_partition(*batch, single_root=single_root), log_z)
        logs = log_marginals(*batch, single_root=single_root)
        product = hessian_vector_product(*batch, *(vector[None] for vector in vectors), single_root=single_root)
        for kind in range(kinds):
            np.testing.assert_allclose(marginals[kind][0], expected.marginals[kind], rtol=0, atol=1e-14 * size)
            np.testing.assert_array_equal(logs[kind][0] == -np.inf, expected.log_marginals[kind] == -np.inf)
            np.testing.assert_allclose(logs[kind][0], expected.log_marginals[kind], rtol=0, atol=1e-12 * size)
            np.testing.assert_allclose(product[kind][0], expected.product[kind], rtol=0, atol=1e-14 * size)


@KINDS
@ROOTS
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_parts_of_score_zero_leave_the_trees_of_lower_order(kinds: int, single_root: bool, scale: float) -> None:
    stream, lengths = np.random.default_rng(2), np.array([7, 1, 12, 3, 20])
    parts, vectors = random_parts(kinds, stream, 5, n=20, scale=scale), random_parts(kinds, stream, 5, n=20)
    parts[-1][:] = vectors[-1][:] = 0.0
    found = log_partition_and_marginals(*parts, lengths, single_root=single_root)
    expected = log_partition_and_marginals(*parts[:-1], lengths, single_root=single_root)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
    for part, other in zip(found[1:], expected[1:], strict=False):
        np.testing.assert_allclose(part, other, rtol=0, atol=1e-12)
    heads = slice(kinds == 3, None)  # a word below the root has no grandparent
    np.testing.assert_allclose(found[-1].sum(-1)[:, heads], found[1][:, heads], rtol=0, atol=1e-12)
    products = hessian_vector_product(*parts, lengths, *vectors, single_root=single_root)
    expected = hessian_vector_product(*parts[:-1], lengths, *vectors[:-1], single_root=single_root)
    for part, other in zip(products, expected if kinds == 3 else [expected], strict=False):
        np.testing.assert_allclose(part, other, rtol=0, atol=1e-12)


@KINDS
@ROOTS
@pytest.mark.parametrize(("scale", "digits"), [(1.0, 1e-8), (1e3, 1e-6)])
def test_products_are_differences_of_marginals(kinds: int, single_root: bool, scale: float, digits: float) -> None:
    stream, lengths, step = np.random.default_rng(4), np.array([19, 8, 1]), 1e-5
    parts, vectors = random_parts(kinds, stream, 3, n=19, scale=scale), random_parts(kinds, stream, 3, n=19)
    ends = []
    for side in (step, -step):
        moved = *(part + side * vector for part, vector in zip(parts, vectors, strict=True)), lengths
        ends.append(log_partition_and_marginals(*moved, single_root=single_root)[1:])
    products = hessian_vector_product(*parts, lengths, *vectors, single_root=single_root)
    for product, after, before in zip(products, *ends, strict=True):
        np.testing.assert_allclose(product, (after - before) / (2 * step), rtol=0, atol=digits)


@KINDS
@ROOTS
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.nojit
def test_entries_that_are_no_parts_are_ignored_and_items_do_not_depend_on_their_batch(
    kinds: int, single_root: bool, scale: float
) -> None:
    stream, lengths = np.random.default_rng(5), np.array([8, 2, 5])
    parts, vectors = random_parts(kinds, stream, 3, n=8, scale=scale), random_parts(kinds, stream, 3, n=8)
    for item, n in enumerate(lengths):
        for part, vector, used in zip(parts, vectors, used_parts(kinds, n, 9, single_root), strict=True):
            part[item, ~used] = vector[item, ~used] = np.nan

    def every_sum(parts: list[Array], lengths: np.ndarray, vectors: list[Array]) -> list[Array]:
        return [
            *log_partition_and_marginals(*parts, lengths, single_root=single_root),
            *log_marginals(*parts, lengths, single_root=single_root),
            *hessian_vector_product(*parts, lengths, *vectors, single_root=single_root),
        ]

    together = every_sum(parts, lengths, vectors)
    for item, n in enumerate(lengths):
        slices = slice(item, item + 1), *[slice(n + 1)] * 3
        own, along = ([part[slices[: part.ndim]].copy() for part in each] for each in (parts, vectors))
        for result, batch in zip(every_sum(own, lengths[item : item + 1], along), together, strict=True):
            np.testing.assert_array_equal(result, batch[slices[: result.ndim]])
            assert not np.isnan(result).any()


@KINDS
@ROOTS
@pytest.mark.nojit
def test_parts_of_float32(kinds: int, single_root: bool) -> None:
    arcs, *others = random_parts(kinds, np.random.default_rng(6), 2, n=9)
    short, lengths = [part.astype(np.float32) for part in others], np.array([9, 4])
    log_z, *marginals = log_partition_and_marginals(arcs, *short, lengths, single_root=single_root)
    exact = [part.astype(np.float64) for part in short]
    expected_z, *expected = log_partition_and_marginals(arcs, *exact, lengths, single_root=single_root)
    # Kernels of two types are compiled apart, so that the last bit of a sum may differ.
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-15)
    for part, other in zip(marginals[1:], expected[1:], strict=True):
        assert part.dtype == np.float32
        np.testing.assert_allclose(part, other, rtol=2**-23)
