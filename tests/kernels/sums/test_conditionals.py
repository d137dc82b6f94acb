"""Log marginals against enumeration and 50-digit arithmetic, however improbable the arc, alone and in batches."""

import numpy as np
import pytest
from helpers.batches import assert_same_alone, batch_of_lengths, padded
from helpers.hostile_scores import forbidden_arcs, hostile_scores, prefer_each_other
from helpers.oracles import (
    enumerated_log_marginals,
    precise_log_marginals,
    score_scale,
)

from treeparse.kernels.sums import conditionals
from treeparse.kernels.sums.conditionals import log_marginals

SCALES = (1e-3, pytest.param(1.0, marks=pytest.mark.nojit), 10.0, 1e2, 1e3, pytest.param(1e4, marks=pytest.mark.nojit))
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


def logs_of(scores: np.ndarray, single_root: bool) -> np.ndarray:
    """Log marginals of one item, whose ignored entries hold NaN; checks what holds for any scores."""
    logs = log_marginals(padded(scores), np.array([len(scores) - 1]), single_root=single_root)[0]
    assert not np.isnan(logs).any()
    assert (logs <= 0.0).all()
    assert (np.diagonal(logs) == -np.inf).all()
    assert (logs[:, [0, -1]] == -np.inf).all()
    assert (logs[-1] == -np.inf).all()
    return logs[:-1, :-1]


def assert_enumerated(scores: np.ndarray, single_root: bool) -> None:
    logs, expected = logs_of(scores, single_root), enumerated_log_marginals(scores, single_root)
    np.testing.assert_array_equal(logs == -np.inf, expected == -np.inf)
    np.testing.assert_allclose(logs, expected, rtol=0, atol=1e-12 * score_scale(scores))


@ROOTS
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("forbidden", [0.0, 0.3, 0.6])
def test_log_marginals_equal_enumeration(single_root: bool, scale: float, forbidden: float) -> None:
    stream = np.random.default_rng(1)
    for n in (1, 2, 3, 4, 4, 5, 5):
        scores = stream.normal(size=(n + 1, n + 1)) * scale
        scores[stream.random(scores.shape) < forbidden] = -np.inf
        assert_enumerated(scores, single_root)


@ROOTS
def test_underflow_is_never_silent(single_root: bool) -> None:
    stream = np.random.default_rng(5)
    for _ in range(500):
        assert_enumerated(hostile_scores(stream, int(stream.integers(2, 5))), single_root)


@ROOTS
def test_products_of_weights_in_range_underflow(single_root: bool) -> None:
    """Every weight is in the range of float64, but not a product of three of them."""
    stream = np.random.default_rng(6)
    for n in (3, 4, 5) * 80:
        shape = (n + 1, n + 1)
        assert_enumerated(stream.choice([0.0, -310.0, -np.inf], size=shape, p=[0.2, 0.4, 0.4]), single_root)
        scores = np.where(stream.random(shape) < 0.4, -310.0, -np.inf)
        scores[stream.integers(1, n + 1, n), np.arange(1, n + 1)] = 0.0
        assert_enumerated(scores, single_root)


def test_a_lost_path_that_no_later_number_shows() -> None:
    """The arc from the root to the first word is part of trees only through a path of weight e^-930 (by search)."""
    far, off = -310.0, -np.inf
    scores = [[off, far, 0, far, off], [off, off, off, off, far], [off, far, off, 0, far]]
    scores += [[off, far, far, off, 0], [off, far, off, far, off]]
    assert_enumerated(np.array(scores), single_root=True)


@ROOTS
def test_log_space_alone_equals_enumeration(single_root: bool) -> None:
    """Graphs that plain weights would do, and graphs without a tree, by way of one arc that is out of their range."""
    stream = np.random.default_rng(16)
    for _ in range(100):
        scores = stream.normal(size=(5, 5))
        scores[stream.random(scores.shape) < 0.5] = -np.inf
        scores[stream.integers(5), stream.integers(1, 5)] = -1e3
        assert_enumerated(scores, single_root)


@pytest.mark.nojit
@ROOTS
def test_every_pattern_of_forbidden_arcs_over_three_words(single_root: bool) -> None:
    for scores in forbidden_arcs():
        assert_enumerated(scores, single_root)


@ROOTS
@pytest.mark.parametrize("share", [0.3, 0.45, 0.6])
def test_sparse_patterns_over_more_words(single_root: bool, share: float) -> None:
    """The word at the root shows itself at different stages for different words of one sentence."""
    stream = np.random.default_rng(7)
    for n in (4, 5) * 60:
        scores = np.where(stream.random((n + 1, n + 1)) < share, stream.integers(-1, 2, (n + 1, n + 1)), -np.inf)
        scores[0] = np.where(stream.random(n + 1) < 0.3, -np.inf, scores[0])
        assert_enumerated(scores, single_root)


def assert_precise(scores: np.ndarray, single_root: bool, stream: np.random.Generator) -> None:
    """Compare the least probable arc, the most probable one and random ones with 50-digit arithmetic."""
    logs = logs_of(scores, single_root)
    arcs = np.argwhere(logs > -np.inf)
    order = np.argsort(logs[tuple(arcs.T)])
    sample = arcs[[order[0], order[-1], *stream.integers(len(arcs), size=3)]]
    expected = precise_log_marginals(scores, sample, single_root)
    np.testing.assert_allclose(logs[tuple(sample.T)], expected, rtol=0, atol=1e-12 * score_scale(scores))


@ROOTS
@pytest.mark.parametrize("scale", [1, 10, 30, 100, 300, 1000, 10000])
def test_log_marginals_at_50_digits(single_root: bool, scale: float) -> None:
    stream = np.random.default_rng(9)
    for n in (10, 18) if scale != 30 else (30,):
        assert_precise(stream.normal(size=(n + 1, n + 1)) * scale, single_root, stream)


@ROOTS
@pytest.mark.parametrize("gap", [30, 100, 300, 1000])
def test_words_that_prefer_each_other(single_root: bool, gap: float) -> None:
    stream = np.random.default_rng(10)
    scores = prefer_each_other(stream.normal(size=(17, 17)), [(3, 4), (8, 15), (1, 16)], gap)
    assert_precise(scores, single_root, stream)


@ROOTS
def test_probabilities_far_below_the_range_of_float64(single_root: bool) -> None:
    """Along a chain of words, every step away from the first word costs 500 nats and the way back nothing."""
    n = 10
    scores = np.full((n + 1, n + 1), -np.inf)
    scores[0, 1:] = -500.0 * np.arange(n)
    for word in range(1, n):
        scores[word, word + 1] = -500.0
        scores[word + 1, word] = 0.0
    stream = np.random.default_rng(11)
    assert_precise(scores, single_root, stream)


@ROOTS
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_plain_weights_and_log_space_agree(single_root: bool, scale: float) -> None:
    """One arc far below the range of plain weights sends an item to log space, and changes no other marginal."""
    n = 40
    scores = np.random.default_rng(13).normal(size=(n + 1, n + 1)) * scale
    scores[7, 8] = -np.inf
    expected = logs_of(scores, single_root)
    scores[7, 8] = -1e5
    logs = logs_of(scores, single_root)
    assert logs[7, 8] < -9e4
    logs[7, 8] = -np.inf
    np.testing.assert_allclose(logs, expected, rtol=0, atol=1e-12 * scale)


@ROOTS
@pytest.mark.nojit
def test_an_item_is_the_same_bits_alone_and_in_a_batch(single_root: bool) -> None:
    def logs(lengths: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray]:
        return (log_marginals(scores, lengths, single_root=single_root),)

    lengths = np.array([7, 12, 1, 12, 3, 9])
    scores = batch_of_lengths(lengths, seed=14)
    scores[3, 0, 1:] = -np.inf  # no tree
    (found,) = assert_same_alone(logs, (-np.inf,), lengths, scores)
    assert (found[3] == -np.inf).all()


def test_a_sentence_of_700_words_needs_no_recursion() -> None:
    n = 700
    scores = np.random.default_rng(15).normal(size=(1, n + 1, n + 1))
    logs = log_marginals(scores, np.array([n]), single_root=True)[0]
    assert conditionals._pool_size(n) < 3 * n**2
    np.testing.assert_allclose(np.exp(logs).sum(0)[1:], 1.0, rtol=0, atol=1e-12)
