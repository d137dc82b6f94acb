"""Trees and gradients as feature vectors: sums of the features of their parts with coefficients."""

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from treeparse.kernels.arrays import IntArray
from treeparse.kernels.linear.features import Templates
from treeparse.kernels.linear.updates import WeightedParts
from treeparse.trees.parts import PartKind


def tree_cells(heads: Tensor, lengths: Tensor, kinds: Sequence[PartKind]) -> list[IntArray]:
    """Return the parts of trees ``(T, n+1)``, arcs first: ``(T, n+1)`` indices into flattened scores, -1 for none."""
    size = heads.shape[-1]
    arcs = np.where(heads.numpy() >= 0, heads.numpy() * size + np.arange(size), -1)
    return [arcs, *(kind.of_trees(heads, lengths).numpy() for kind in kinds)]


def differences(
    gold: Tensor,
    trees: Tensor,
    lengths: Tensor,
    kinds: Sequence[PartKind],
    arrays: Mapping[str, Templates],
) -> list[WeightedParts]:
    """Return gold trees ``(B, n+1)`` less each of k others ``(B, k, n+1)``: ``B * k`` vectors, by kind of part.

    Parts that two trees share cancel out and are left out.
    """
    items, k, size = trees.shape
    of_gold = tree_cells(gold, lengths, kinds)
    of_trees = tree_cells(trees.reshape(-1, size), lengths.repeat_interleave(k), kinds)
    result = []
    for name, own, others in zip(_names(kinds), of_gold, of_trees, strict=True):
        others = others.reshape(items, k, -1)
        item, rank, word = np.nonzero(own[:, np.newaxis] != others)
        cells = np.stack([own[item, word], others[item, rank, word]], -1).ravel()
        coefficients = np.tile(np.array([1, -1], np.float32), len(item))
        vectors, item = np.repeat(item * k + rank, 2), np.repeat(item, 2)
        real = cells >= 0
        parts = item[real], cells[real], vectors[real], coefficients[real]
        result.append(WeightedParts(*parts, arrays[name], name == "arcs"))
    return result


def gradients(
    values: Sequence[Tensor], kinds: Sequence[PartKind], arrays: Mapping[str, Templates], least: float
) -> list[WeightedParts]:
    """Return values of parts ``(B, ...)`` by kind, arcs first, as one vector an item; below ``least`` they are 0."""
    result = []
    for name, value in zip(_names(kinds), values, strict=True):
        flat = value.flatten(1).numpy()
        item, cell = np.nonzero(np.abs(flat) > least)
        result.append(
            WeightedParts(item, cell, item, flat[item, cell].astype(np.float32), arrays[name], name == "arcs")
        )
    return result


def _names(kinds: Sequence[PartKind]) -> list[str]:
    return ["arcs", *(kind.name for kind in kinds)]


def vector_scores(parts: Sequence[WeightedParts], scores: Sequence[Tensor], count: int) -> np.ndarray:
    """Return the inner products ``(count,)`` of vectors and weights, from the scores ``(B, ...)`` of parts."""
    total = np.zeros(count)
    for each, values in zip(parts, scores, strict=True):
        own = values.flatten(1).numpy()[each.items, each.cells] * each.coefficients
        total += np.bincount(each.vectors, own, count)
    return total
