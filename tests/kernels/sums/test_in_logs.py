"""Sums in logs against plain weights, where these are safe, and arithmetic of 32 digits against 60 of them."""

from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from helpers.precise import CONTEXT

from treeparse.kernels.sums import elimination, hessian
from treeparse.kernels.sums.in_logs import code_lengths_by_elimination, double_double
from treeparse.kernels.sums.in_logs import elimination as elimination_in_logs

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
LENGTHS = np.array([1, 5, 8, 23])
SIZE = 25
IMPLEMENTATIONS = {
    "nonprojective": (elimination, hessian, elimination_in_logs, code_lengths_by_elimination),
}
EVERY_ONE = pytest.mark.parametrize("trees", IMPLEMENTATIONS)
Number = tuple[float, float]


def random_scores(seed: int, forbidden: float = 0.1) -> np.ndarray:
    """A batch with NaN where it is to be ignored."""
    stream = np.random.default_rng(seed)
    scores = 3 * stream.normal(size=(len(LENGTHS), SIZE, SIZE))
    mask = np.random.default_rng(9).random(scores.shape) < forbidden
    mask[:, 0] = mask[:, np.arange(1, SIZE), np.arange(SIZE - 1)] = False  # each word may have the one after it
    scores[mask] = -np.inf
    for item, n in zip(scores, LENGTHS, strict=True):
        item[:, 0] = item[n + 1 :] = item[:, n + 1 :] = np.nan
        np.fill_diagonal(item, np.nan)
    return scores


@ROOTS
@EVERY_ONE
def test_sums_and_products_are_those_of_plain_weights(trees: str, single_root: bool) -> None:
    plain, products, in_logs, _ = IMPLEMENTATIONS[trees]
    scores, vectors = random_scores(1), np.random.default_rng(2).normal(size=(len(LENGTHS), SIZE, SIZE))
    log_z, marginals = in_logs.log_partition_and_marginals(scores, LENGTHS, single_root=single_root)
    expected = plain.log_partition_and_marginals(scores, LENGTHS, single_root=single_root)
    assert (expected[0] > -np.inf).all()
    np.testing.assert_allclose(log_z, expected[0], rtol=1e-14)
    np.testing.assert_allclose(marginals, expected[1], rtol=0, atol=1e-13)
    found = in_logs.hessian_vector_product(scores, LENGTHS, vectors, single_root=single_root)
    product = products.hessian_vector_product(scores, LENGTHS, vectors, single_root=single_root)
    np.testing.assert_allclose(found if isinstance(found, np.ndarray) else found[0], product, rtol=0, atol=1e-12)


@ROOTS
@EVERY_ONE
def test_code_lengths_are_differences_where_these_do_not_cancel(trees: str, single_root: bool) -> None:
    plain, products, _, code_lengths = IMPLEMENTATIONS[trees]
    p, q = random_scores(1), random_scores(2)
    _, marginals = plain.log_partition_and_marginals(p, LENGTHS, single_root=single_root)
    of_q = np.where(q > -np.inf, q, 0.0)
    values, found, derivatives = code_lengths.code_lengths((p,), (q,), LENGTHS, single_root=single_root)
    np.testing.assert_allclose(found, marginals, rtol=0, atol=1e-13)
    expected = plain.log_partition(q, LENGTHS, single_root=single_root) - (marginals * of_q).sum((1, 2))
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-11)
    product = products.hessian_vector_product(p, LENGTHS, of_q, single_root=single_root)
    np.testing.assert_allclose(derivatives, -product, rtol=0, atol=1e-11)
    own = np.where(p > -np.inf, np.random.default_rng(7).random(p.shape), 0.0)  # code lengths of arcs
    more, _, slopes = code_lengths.code_lengths((p,), (q,), LENGTHS, values=own, single_root=single_root)
    np.testing.assert_allclose(more, values + (marginals * own).sum((1, 2)), rtol=0, atol=1e-11)
    product = products.hessian_vector_product(p, LENGTHS, own, single_root=single_root)
    np.testing.assert_allclose(slopes, derivatives + product, rtol=0, atol=1e-11)


@EVERY_ONE
def test_remainders_count(trees: str) -> None:
    """A number and its remainder are the number that they are the parts of."""
    _, _, in_logs, _ = IMPLEMENTATIONS[trees]
    scores = random_scores(3)
    low = np.where(scores > -np.inf, np.random.default_rng(4).normal(size=scores.shape), 0.0)
    found = in_logs.log_partition_and_marginals(scores - low, LENGTHS, remainders=low, single_root=True)
    expected = in_logs.log_partition_and_marginals(scores, LENGTHS, single_root=True)
    for each, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(each, other, rtol=1e-13, atol=1e-13)


def exact(number: Number) -> Decimal:
    return Decimal(float(number[0])) + Decimal(float(number[1]))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (double_double.add, lambda x, y: x + y),
        (double_double.subtract, lambda x, y: x - y),
        (double_double.multiply, lambda x, y: x * y),
        (double_double.divide, lambda x, y: x / y),
        (lambda x, y: double_double.exp((-abs(x[0]), -abs(x[1]))), lambda x, y: (-abs(x)).exp()),
        (lambda x, y: double_double.log((2 + abs(y[0]), 0.0)), lambda x, y: Decimal(2 + abs(float(y))).ln()),
    ],
    ids=["add", "subtract", "multiply", "divide", "exp", "log"],
)
@pytest.mark.nojit
def test_numbers_have_thirty_digits(
    function: Callable[[Number, Number], Number], expected: Callable[[Decimal, Decimal], Decimal]
) -> None:
    stream = np.random.default_rng(5)
    with localcontext(CONTEXT):
        for _ in range(200):
            high = stream.normal(size=2) * 10.0 ** stream.integers(-3, 2)
            x, y = (double_double.add((value, 0.0), (value * 1e-17 * stream.random(), 0.0)) for value in high)
            found, right = exact(function(x, y)), expected(exact(x), exact(y))
            assert abs(found - right) <= Decimal("1e-29") * max(abs(right), abs(exact(x)))
