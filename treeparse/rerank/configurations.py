"""Trees of a list as sets of local configurations; a configuration that trees share is computed once."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

T = TypeVar("T", bound=Hashable)


class Configuration(NamedTuple):
    """A node of a tree with its head, its dependents and the words below it.

    ``left`` and ``right`` are the dependents on either side with their labels, nearest to the node first.
    ``first``, ``last`` and ``size`` are of the subtree: its outermost words and how many it has. The root, node 0, has
    the head -1 and the label "".
    """

    node: int
    head: int
    label: str
    left: tuple[tuple[int, str], ...]
    right: tuple[tuple[int, str], ...]
    first: int
    last: int
    size: int


def configurations(heads: Sequence[int], labels: Sequence[str]) -> list[Configuration]:
    """Return the configurations of a tree, by node; heads as in CoNLL-U."""
    dependents = dependents_of(heads)
    heads, labels = (-1, *heads), ("", *labels)
    first, last, size = [*range(len(heads))], [*range(len(heads))], [1] * len(heads)
    for node in post_order(dependents)[:-1]:
        head = heads[node]
        first[head], last[head] = min(first[head], first[node]), max(last[head], last[node])
        size[head] += size[node]
    result = []
    for node, own in enumerate(dependents):
        pairs = [(each, labels[each]) for each in own]
        left = tuple(pair for pair in reversed(pairs) if pair[0] < node)
        right = tuple(pair for pair in pairs if pair[0] > node)
        result.append(Configuration(node, heads[node], labels[node], left, right, first[node], last[node], size[node]))
    return result


def dependents_of(heads: Sequence[int]) -> list[list[int]]:
    """Return the dependents of each node, node 0 first, in the order of the sentence."""
    dependents: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for word, head in enumerate(heads, 1):
        dependents[head].append(word)
    return dependents


def post_order(dependents: Sequence[Sequence[int]]) -> list[int]:
    """Return the nodes of a tree in post-order."""
    order = [0]
    for node in order:  # the loop appends to the list
        order.extend(dependents[node])
    return order[::-1]


def differing(trees: Sequence[Sequence[T]]) -> tuple[list[T], list[tuple[int, int]]]:
    """Return the different parts that not all trees have, and pairs ``(tree, part)`` of indices of the parts of trees.

    A tree has a part at most once.
    """
    counts = Counter(part for parts in trees for part in parts)
    distinctive = [part for part, count in counts.items() if count < len(trees)]
    indices = {part: index for index, part in enumerate(distinctive)}
    members = [(tree, indices[part]) for tree, parts in enumerate(trees) for part in parts if part in indices]
    return distinctive, members


def columns(rows: Sequence[tuple[int, ...]], width: int) -> Tensor:
    """Return rows of indices, each ``width`` long, as columns ``(width, rows)``."""
    return torch.tensor(rows, dtype=torch.int64).reshape(-1, width).T


def shifted(parts: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Turn indices within each part into indices within all parts, which are concatenated."""
    starts = torch.tensor([0, *sizes[:-1]]).cumsum(0)
    return torch.cat([part + start for part, start in zip(parts, starts, strict=True)], -1)
