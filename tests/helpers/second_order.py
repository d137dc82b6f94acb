"""Sums over projective trees that score siblings and grandparents, too, by enumeration."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from helpers.oracles import Array, all_trees
from helpers.ranking import tree_keys
from numpy.typing import NDArray
from torch import Tensor

Part = tuple[int, int, int]


def siblings_of(heads: Sequence[int]) -> Iterator[Part]:
    """Head, dependent and next dependent towards the head, or the head, of every word; ``heads`` of words 1 to n."""
    for dependent, head in enumerate(heads, 1):
        step = 1 if head < dependent else -1
        before = [node for node in range(head + step, dependent, step) if heads[node - 1] == head]
        yield head, dependent, before[-1] if before else head


def grandparents_of(heads: Sequence[int]) -> Iterator[Part]:
    """Head, dependent and head of the head of every word whose head is a word."""
    return ((head, word, heads[head - 1]) for word, head in enumerate(heads, 1) if head > 0)


@dataclass(frozen=True)
class Sums:
    """Sums of an item: the log partition, and of arcs and of other kinds what their names say."""

    log_partition: float
    marginals: list[Array]
    log_marginals: list[Array]
    product: list[Array]


def enumerated(parts: Sequence[Array], vectors: Sequence[Array], single_root: bool, kinds: Sequence = ()) -> Sums:
    """All sums under scores of arcs and of the parts that functions of ``kinds`` list."""
    trees = all_trees(len(parts[0]) - 1, single_root, projective=True)
    columns = [columns_of(parts, heads, kinds) for heads in trees.tolist()]
    flat, vector = (np.concatenate([part.ravel() for part in each]) for each in (parts, vectors))
    has_part = np.zeros((len(trees), len(flat)), bool)
    for row, used in zip(has_part, columns, strict=True):
        row[used] = True
    totals = np.array([flat[used].sum() for used in columns])
    log_z = np.logaddexp.reduce(totals)
    if log_z == -np.inf:
        empty = [np.zeros_like(part) for part in parts]
        return Sums(log_z, empty, [np.full_like(part, -np.inf) for part in parts], empty)
    log_probs = totals - log_z
    probs = np.exp(totals - totals.max())
    probs /= probs.sum()
    values = np.array([vector[used].sum() for used in columns])
    with np.errstate(invalid="ignore"):
        logs = np.array([np.logaddexp.reduce(log_probs[row], initial=-np.inf) for row in has_part.T])
    results = probs @ has_part, logs, (probs * (values - probs @ values)) @ has_part
    return Sums(log_z, *(split(result, parts) for result in results))


def columns_of(parts: Sequence[Array], heads: Sequence[int], kinds: Sequence) -> NDArray[np.int64]:
    """The parts of a tree, as indices into all scores in one row."""
    arcs = [(head, word) for word, head in enumerate(heads, 1)]
    begin, result = 0, []
    for part, used in zip(parts, [arcs, *(kind(heads) for kind in kinds)], strict=True):
        result += [begin + int(np.ravel_multi_index(index, part.shape)) for index in used]
        begin += part.size
    return np.array(result)


@cache
def siblings_of_trees(words: int, single_root: bool) -> NDArray[np.int64]:
    """The parts ``(T, 2n)`` of all trees, crossing arcs included: indices into scores of arcs and siblings in a row."""
    shapes = [np.empty((words + 1,) * axes) for axes in (2, 3)]
    return np.array([columns_of(shapes, heads, [siblings_of]) for heads in all_trees(words, single_root).tolist()])


def split(row: Array, parts: Sequence[Array]) -> list[Array]:
    """Cut a row of values of all parts into the arrays of each kind."""
    ends = np.cumsum([part.size for part in parts])
    return [values.reshape(part.shape) for values, part in zip(np.split(row, ends[:-1]), parts, strict=True)]


def random_scores(words: int, *batch: int, seed: int, kinds: int = 1, ties: str = "random") -> list[Tensor]:
    """Scores of arcs and of some other kinds of part; tied ones are small whole numbers."""
    shapes = [(*batch, *(words + 1,) * axes) for axes in (2, *[3] * kinds)]
    stream = torch.Generator().manual_seed(seed)
    if ties == "tied":
        return [torch.randint(0, 3, shape, generator=stream).double() for shape in shapes]
    if ties == "equal":
        return [torch.ones(shape, dtype=torch.float64) for shape in shapes]
    return [torch.randn(shape, generator=stream, dtype=torch.float64) for shape in shapes]


def ranked(scores: Sequence[Tensor], single_root: bool, kinds: Sequence) -> tuple[Tensor, Tensor]:
    """All trees ``(trees, n+1)`` of an item, best first by score and key, and their scores."""
    arrays = [part.numpy() for part in scores]
    trees = all_trees(len(arrays[0]) - 1, single_root, projective=True)
    flat = np.concatenate([part.ravel() for part in arrays])
    totals = np.array([flat[columns_of(arrays, heads, kinds)].sum() for heads in trees.tolist()])
    order = np.lexsort((-tree_keys(trees), -totals))
    order = order[totals[order] > -np.inf]
    heads = torch.nn.functional.pad(torch.from_numpy(trees[order]), (1, 0), value=-1)
    return heads, torch.from_numpy(totals[order])
