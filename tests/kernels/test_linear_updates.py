"""Updates of weights against dense feature vectors, averages of all steps, and autograd."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from treeparse.kernels.linear_features import Templates
from treeparse.kernels.linear_scores import WeightTable, score_labels
from treeparse.kernels.linear_updates import (
    LOG_LINEAR,
    MIRA,
    PERCEPTRON,
    FeatureVectors,
    add_vectors,
    inner_products,
    margin_steps,
    update_labels,
)

pytestmark = pytest.mark.nojit

SIZE, LABELS, ROOT = 64, 5, 2


def random_vectors(stream: np.random.Generator, count: int) -> FeatureVectors:
    """Vectors in which features repeat; one is empty."""
    sizes = stream.integers(1, 12, count)
    sizes[count // 2] = 0
    starts = np.concatenate([[0], np.cumsum(sizes)])
    values = stream.normal(size=starts[-1]).astype(np.float32)
    return FeatureVectors(stream.integers(0, SIZE, starts[-1]), values, starts)


def dense(vectors: FeatureVectors) -> np.ndarray:
    rows = np.zeros((len(vectors.starts) - 1, SIZE))
    for row, (start, stop) in enumerate(zip(vectors.starts[:-1], vectors.starts[1:], strict=True)):
        np.add.at(rows[row], vectors.indices[start:stop], vectors.values[start:stop])
    return rows


@pytest.mark.parametrize("group", [1, 3])
def test_inner_products_of_groups(group: int) -> None:
    vectors, scratch = random_vectors(np.random.default_rng(1), 4 * group), np.zeros(SIZE, np.float32)
    rows = dense(vectors).reshape(4, group, SIZE)
    np.testing.assert_allclose(inner_products(vectors, group, scratch), rows @ rows.transpose(0, 2, 1), atol=1e-5)
    np.testing.assert_allclose(scratch, 0, atol=1e-6)


def test_weights_and_the_average_of_all_steps() -> None:
    stream = np.random.default_rng(2)
    weights, sums, every = np.zeros(SIZE, np.float32), np.zeros(SIZE), [np.zeros(SIZE)]
    for step in range(1, 8):
        vectors, rates = random_vectors(stream, 5), stream.normal(size=5)
        rates[0] = 0
        add_vectors(vectors, rates, step, weights, sums)
        every.append(every[-1] + rates @ dense(vectors))
    np.testing.assert_allclose(weights, every[-1], atol=1e-5)
    np.testing.assert_allclose(weights - sums / 8, np.mean(every, 0), atol=1e-5)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("limit", [0.05, 10.0])
def test_margin_steps_are_optimal(k: int, limit: float) -> None:
    """The conditions of Karush, Kuhn and Tucker hold, which are sufficient for a convex problem."""
    stream = np.random.default_rng(k)
    rows = stream.normal(size=(20, k, 9))
    rows[3, 0] = 0  # of a tree that is the gold one
    products, lacking = rows @ rows.transpose(0, 2, 1), stream.normal(size=(20, k)) + 1
    steps = margin_steps(products, lacking, limit)
    left = lacking - np.einsum("bij,bj->bi", products, steps)
    assert ((steps >= 0) & (steps <= limit)).all()
    has_length = products.diagonal(axis1=1, axis2=2) > 0
    assert (left[(steps == 0) & has_length] <= 1e-4).all()
    assert (left[steps == limit] >= -1e-4).all()
    np.testing.assert_allclose(left[(steps > 0) & (steps < limit)], 0, atol=1e-4)
    assert (steps[~has_length] == 0).all() and (steps > 0).any()


class LabelCase:
    """Arcs with gold labels, the last one from the root."""

    def __init__(self, seed: int) -> None:
        stream = np.random.default_rng(seed)
        self.nodes, self.lengths = stream.integers(0, 3, (2, 5, 2)).astype(np.uint32), np.array([4, 3])
        slots = np.full((3, 4, 2, 2), -1)
        slots[:2, :, 0] = [[[0, 0], [1, 0], [0, 1], [1, -1]], [[1, 0], [0, 0], [0, 0], [1, 0]]]
        salts = stream.integers(0, 2**32, (3, 4), dtype=np.uint32)
        self.templates = Templates(slots, salts, np.array([-1, -1, -1, 0]), np.array([True, False, False, False]))
        self.arcs = np.array([[0, 1, 3, 4], [0, 4, 1, 0], [1, 2, 3, 1], [1, 0, 2, ROOT]])
        self.weights = stream.normal(size=(SIZE, LABELS)).astype(np.float32)
        self.sums = np.zeros((SIZE, LABELS))
        self.possible = np.ones((2, LABELS), bool)
        self.possible[0, 3] = self.possible[1, 4] = False

    def scores(self) -> np.ndarray:
        table = WeightTable(self.weights)
        scores = score_labels(self.nodes, self.lengths, self.templates, table, self.arcs[:, :3])
        scores[:3, ROOT] = -np.inf
        scores[~self.possible[self.arcs[:, 0]]] = -np.inf
        return scores

    def update(self, arc: int, algorithm: int, rate: float) -> float:
        arcs = self.arcs[arc : arc + 1]
        given = self.nodes, self.lengths, self.templates, arcs, self.possible, algorithm, rate, ROOT, 3
        return update_labels(*given, self.weights, self.sums)


@pytest.mark.parametrize("arc", range(3))
def test_log_linear_labels_go_up_the_gradient(arc: int) -> None:
    case, rate = LabelCase(4), 0.5
    before, weights = case.scores(), case.weights.copy()
    gold = torch.tensor(case.arcs[arc, 3])
    logits = torch.from_numpy(before[arc]).requires_grad_()
    loss = functional.cross_entropy(logits, gold)
    [slope] = torch.autograd.grad(loss, logits)
    assert case.update(arc, LOG_LINEAR, rate) == pytest.approx(loss.item(), rel=1e-5)
    changes = case.weights - weights
    features = np.flatnonzero(changes.any(1))
    assert len(features) >= 3
    for feature in features:  # a feature that the arc has twice changes twice
        times = round(float(np.abs(changes[feature]).max() / (rate * slope.abs().max())))
        np.testing.assert_allclose(changes[feature], -times * rate * slope.numpy(), atol=1e-6)
    np.testing.assert_allclose(case.sums, 3 * changes, atol=1e-5)


@pytest.mark.parametrize("arc", range(3))
@pytest.mark.parametrize("algorithm", [PERCEPTRON, MIRA])
def test_labels_learn_until_gold_is_best(arc: int, algorithm: int) -> None:
    case, gold = LabelCase(5), LabelCase(5).arcs[arc, 3]
    for _ in range(200):
        case.update(arc, algorithm, 10.0)
    scores = case.scores()[arc]
    margin = scores[gold] - np.delete(scores, gold).max()
    assert margin >= (1 - 1e-3 if algorithm == MIRA else 0)
    before = case.weights.copy()
    case.update(arc, algorithm, 10.0)
    np.testing.assert_allclose(case.weights, before, atol=1e-3 if algorithm == MIRA else 0)


def test_arcs_from_the_root_learn_no_label() -> None:
    case = LabelCase(6)
    before = case.weights.copy()
    assert case.update(3, LOG_LINEAR, 1.0) == 0
    np.testing.assert_array_equal(case.weights, before)
