"""Updates of the weights by feature vectors, which are sums over parts with coefficients, and updates of labels.

Weights are averaged over all steps (Freund and Schapire 1999; Collins 2002): beside each weight, ``sums`` has the sum
of its changes, each times the step of the change.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.linear_features import (
    Hashes,
    Templates,
    arc_features,
    fill_keys,
    triple_features,
)
from treeparse.kernels.linear_scores import add_rows, feature_limit, shift_of
from treeparse.kernels.threads import run_batch

PERCEPTRON, MIRA, LOG_LINEAR = 0, 1, 2


@dataclass(frozen=True)
class FeatureVectors:
    """V feature vectors: of each, the indices of features and their values; an index may come several times.

    Attributes:
        indices: ``(F,)`` the features of vector 0, then of vector 1, and so on.
        values: ``(F,)`` float32.
        starts: ``(V+1,)`` where each vector starts.
    """

    indices: IntArray
    values: NDArray[np.float32]
    starts: IntArray


@dataclass(frozen=True)
class WeightedParts:
    """P parts of one kind with coefficients, sorted by item.

    Attributes:
        items: ``(P,)``.
        cells: ``(P,)`` indices into the flattened scores of an item.
        vectors: ``(P,)`` the feature vector that each is a part of.
        coefficients: ``(P,)`` float32.
        templates: the templates of this kind of part.
        is_arc: whether the parts are arcs; otherwise they have three nodes.
    """

    items: IntArray
    cells: IntArray
    vectors: IntArray
    coefficients: NDArray[np.float32]
    templates: Templates
    is_arc: bool


def feature_vectors(
    nodes: Hashes, lengths: IntArray, kinds: list[WeightedParts], count: int, weights: np.ndarray
) -> FeatureVectors:
    """Return ``count`` feature vectors, each the sum of its parts' features times coefficients."""
    indices, values, vectors = [], [], []
    for parts in kinds:
        most = len(parts.items) * int(feature_limit(parts.templates, nodes.shape[1]))
        features, starts = np.empty(most, np.int64), np.zeros(len(parts.items) + 1, np.int64)
        items, cells = np.ascontiguousarray(parts.items), np.ascontiguousarray(parts.cells)
        arguments = lengths, nodes, *parts.templates, items, cells, parts.is_arc, shift_of(weights)
        run_batch(_expand, np.ones_like, items, *arguments, features, starts, threads=1)
        sizes = np.diff(starts)
        indices.append(features[: starts[-1]])
        values.append(np.repeat(parts.coefficients, sizes))
        vectors.append(np.repeat(parts.vectors, sizes))
    order = np.argsort(np.concatenate(vectors), kind="stable")
    starts = np.searchsorted(np.concatenate(vectors)[order], np.arange(count + 1))
    return FeatureVectors(np.concatenate(indices)[order], np.concatenate(values)[order], starts)


def inner_products(vectors: FeatureVectors, group: int, scratch: NDArray[np.float32]) -> FloatArray:
    """Return the inner products ``(V / group, group, group)`` of the vectors of each group of consecutive ones.

    ``scratch`` is as long as the weights and 0 throughout, before and after.
    """
    groups = (len(vectors.starts) - 1) // group
    products = np.empty((groups, group, group))
    arguments = vectors.indices, vectors.values, vectors.starts, scratch, products
    run_batch(_multiply, np.ones_like, np.arange(groups), *arguments, threads=1)
    return products


def add_vectors(
    vectors: FeatureVectors, rates: FloatArray, step: int, weights: NDArray[np.float32], sums: FloatArray
) -> None:
    """Add to the weights each vector times its rate ``(V,)``, as the change of a step."""
    arguments = vectors.indices, vectors.values, vectors.starts, float(step), weights, sums
    run_batch(_add_vectors, np.ones_like, np.arange(len(rates)), rates, *arguments, threads=1)


def update_labels(
    nodes: Hashes,
    lengths: IntArray,
    templates: Templates,
    arcs: IntArray,
    possible: NDArray[np.bool_],
    algorithm: int,
    rate: float,
    root_label: int,
    step: int,
    weights: NDArray[np.float32],
    sums: FloatArray,
) -> float:
    """Learn the labels of gold arcs ``(A, 4)``: item, head, dependent and label; one after the other.

    ``algorithm`` is the perceptron's, MIRA's, whose updates ``rate`` bounds, or log-linear learning at this rate. Arcs
    from the root have ``root_label`` alone, and no others have it; -1 for no such label. An item has its ``possible``
    labels ``(B, L)`` alone. Return the loss in nats.
    """
    loss = np.zeros(1)
    numbers = algorithm, float(rate), root_label, float(step)
    arguments = nodes, lengths, *templates, arcs, possible, *numbers, shift_of(weights), weights, sums, loss
    run_batch(_update_labels, np.ones_like, np.arange(len(arcs)), *arguments, threads=1)
    return float(loss[0])


@exact_kernel
def _expand(
    start, stop, _, lengths, nodes, slots, salts, between, distance, items, cells, is_arc, shift, features, starts
):
    templates, size = Templates(slots, salts, between, distance), nodes.shape[1]
    keys = np.empty((2 if is_arc else 3, size, len(between)), np.uint32)
    seen, item, count = np.empty(size, np.uint32), -1, 0
    for p in range(start, stop):
        b, cell = items[p], cells[p]
        n = lengths[b]
        if b != item:
            item = b
            fill_keys(nodes[b], n, slots, salts, keys)
        if is_arc:
            h, d, out = cell // size, cell % size, features[count:]
            count += arc_features(nodes[b], templates, keys, shift, h, d, seen, out)
        else:
            h, d, x, out = cell // (size * size), cell // size % size, cell % size, features[count:]
            count += triple_features(templates, keys, shift, h, d, x, out)
        starts[p + 1] = count


@exact_kernel
def _multiply(start, stop, _, indices, values, starts, scratch, products):
    group = products.shape[1]
    for g in range(start, stop):
        for i in range(group):
            first = starts[g * group + i], starts[g * group + i + 1]
            for f in range(first[0], first[1]):
                scratch[indices[f]] += values[f]
            for j in range(i + 1):
                total = 0.0
                for f in range(starts[g * group + j], starts[g * group + j + 1]):
                    total += values[f] * scratch[indices[f]]
                products[g, i, j] = products[g, j, i] = total
            for f in range(first[0], first[1]):
                scratch[indices[f]] = np.float32(0)


@exact_kernel
def _add_vectors(start, stop, _, rates, indices, values, starts, step, weights, sums):
    for v in range(start, stop):
        if rates[v] == 0:
            continue
        for f in range(starts[v], starts[v + 1]):
            change = rates[v] * values[f]
            weights[indices[f]] += np.float32(change)
            sums[indices[f]] += step * change


@exact_kernel
def _update_labels(
    start,
    stop,
    _,
    nodes,
    lengths,
    slots,
    salts,
    between,
    distance,
    arcs,
    possible,
    algorithm,
    rate,
    root_label,
    step,
    shift,
    weights,
    sums,
    loss,
):
    templates, labels = Templates(slots, salts, between, distance), weights.shape[1]
    features = np.empty(feature_limit(templates, nodes.shape[1]), np.int64)
    keys = np.empty((2, nodes.shape[1], len(between)), np.uint32)
    seen, scores = np.empty(nodes.shape[1], np.uint32), np.empty(labels, np.float32)
    scale, item = np.float32(1), -1  # which float32 weights do without; the item whose keys are filled
    for a in range(start, stop):
        b, h, d, gold = arcs[a]
        if root_label >= 0 and labels > 1 and h == 0:
            continue
        if b != item:
            item = b
            fill_keys(nodes[b], lengths[b], slots, salts, keys)
        count = arc_features(nodes[b], templates, keys, shift, h, d, seen, features)
        scores[:] = 0
        add_rows(weights, features, count, scale, scores)
        for i in range(labels):
            if not possible[b, i] or (i == root_label and labels > 1):
                scores[i] = -np.inf
        loss[0] += _loss(scores, gold)
        if algorithm == LOG_LINEAR:
            _to_gradient(scores, gold, rate)
        else:
            _to_best_change(scores, gold, rate, count, algorithm == MIRA)
        _change_rows(scores, step, features, count, weights, sums)


@exact_kernel
def _loss(scores, gold):
    top, total = scores.max(), 0.0
    for score in scores:
        total += np.exp(score - top)
    return np.log(total) + top - scores[gold]


@exact_kernel
def _to_gradient(scores, gold, rate):
    """Turn the scores of labels into the changes of the weights of each feature: the gradient of the likelihood."""
    top, total = scores.max(), np.float32(0)
    for i in range(len(scores)):
        scores[i] = np.exp(scores[i] - top)
        total += scores[i]
    for i in range(len(scores)):
        scores[i] = np.float32(rate) * ((np.float32(1) if i == gold else np.float32(0)) - scores[i] / total)


@exact_kernel
def _to_best_change(scores, gold, rate, count, is_mira):
    """Turn scores into changes towards gold and away from the best other label; in MIRA as large as the margin asks."""
    own = scores[gold]
    scores[gold] = -np.inf
    other = scores.argmax()
    lacking = scores[other] - own
    change = np.float32(0)
    if is_mira:
        change = np.float32(min(max((1 + lacking) / (2 * count), 0.0), rate))
    elif lacking >= 0:
        change = np.float32(1)
    scores[:] = 0
    scores[gold] += change
    scores[other] -= change


@exact_kernel
def _change_rows(changes, step, features, count, weights, sums):
    """Add changes to the weights of ``count`` features, and to their sums over the steps."""
    for f in range(count):
        for i in range(len(changes)):
            weights[features[f], i] += changes[i]
            sums[features[f], i] += step * changes[i]


SWEEPS = 100
PRECISION = 1e-6  # of a step size, relative to the greatest


def margin_steps(products: FloatArray, lacking: FloatArray, limit: float) -> FloatArray:
    """Return how much of each difference of feature vectors is added ``(B, k)``: the least change of the weights.

    Afterwards each of the k differences of an item has the inner product with the change that it lacks ``(B, k)``, or
    more, unless its step is at the ``limit``. ``products`` ``(B, k, k)`` are the inner products of the differences.
    This is the dual of the quadratic program, solved one step size at a time (Hildreth 1957).
    """
    steps = np.zeros(lacking.shape)
    run_batch(_solve, np.ones_like, np.arange(len(lacking)), products, lacking, float(limit), steps, threads=1)
    return steps


@exact_kernel
def _solve(start, stop, _, products, lacking, limit, steps):
    for b in range(start, stop):
        k = lacking.shape[1]
        for _sweep in range(SWEEPS):
            greatest, moved = 0.0, 0.0
            for i in range(k):
                if products[b, i, i] <= 0:
                    continue
                gap = lacking[b, i]
                for j in range(k):
                    gap -= products[b, i, j] * steps[b, j]
                step = min(max(steps[b, i] + gap / products[b, i, i], 0.0), limit)
                moved = max(moved, abs(step - steps[b, i]))
                steps[b, i] = step
                greatest = max(greatest, step)
            if moved <= PRECISION * greatest:
                break
