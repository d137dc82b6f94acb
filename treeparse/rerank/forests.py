"""Trees of a list as sets of local configurations, and as a forest of subtrees; each shared part is computed once."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, Self, TypeVar

import torch
from torch import Tensor

from treeparse.data.parses import NBestList

LEFT, RIGHT = 0, 1
Key = tuple[int, int, tuple[int, ...]]  # a subtree: its top node, the label above it, the subtrees below
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


class Forest(NamedTuple):
    """The different subtrees of trees in post-order, and the arcs in which trees of a list differ."""

    nodes: Tensor  # (S,) top nodes of the subtrees
    labels: Tensor  # (S,) of the arcs above the subtrees
    heights: Tensor  # (S,) 0 without dependents
    edges: Tensor  # (3, E) a subtree, the subtree above it, and its neighbour towards the head, or itself if nearest
    sides: Tensor  # (E,) on which it hangs
    arcs: Tensor  # (2, A) head and the subtree that hangs from it
    members: Tensor  # (2, M) tree and arc
    trees: int

    @classmethod
    def of(cls, nbest: NBestList, label_id: Callable[[str], int]) -> Self:
        """Return the forest of a list."""
        table: dict[Key, int] = {}
        trees = [_arcs(parse.heads, [*map(label_id, parse.labels)], table) for parse in nbest.parses]
        nodes, labels = [node for node, _, _ in table], [label for _, label, _ in table]
        heights: list[int] = []
        edges: list[tuple[int, int, int]] = []
        for index, (node, _, below) in enumerate(table):
            heights.append(1 + max((heights[each] for each in below), default=-1))
            left = [each for each in reversed(below) if nodes[each] < node]
            right = [each for each in below if nodes[each] > node]
            for row in (left, right):
                edges += [(each, index, row[max(rank - 1, 0)]) for rank, each in enumerate(row)]
        arcs, members = differing(trees)
        sides = [LEFT if nodes[lower] < nodes[upper] else RIGHT for lower, upper, _ in edges]
        return cls(
            torch.tensor(nodes, dtype=torch.int64),
            torch.tensor(labels, dtype=torch.int64),
            torch.tensor(heights, dtype=torch.int64),
            columns(edges, 3),
            torch.tensor(sides, dtype=torch.int64),
            columns(arcs, 2),
            columns(members, 2),
            len(trees),
        )

    @classmethod
    def joined(cls, forests: Sequence[Self], nodes: int) -> Self:
        """Join forests; the sentences of each have ``nodes`` nodes, padding included."""
        subtrees, arcs = [len(each.nodes) for each in forests], [each.arcs.shape[1] for each in forests]
        rows, trees = [nodes] * len(forests), [each.trees for each in forests]
        heads, ends = zip(*(each.arcs for each in forests), strict=True)
        tree, arc = zip(*(each.members for each in forests), strict=True)
        return cls(
            shifted([each.nodes for each in forests], rows),
            torch.cat([each.labels for each in forests]),
            torch.cat([each.heights for each in forests]),
            shifted([each.edges for each in forests], subtrees),
            torch.cat([each.sides for each in forests]),
            torch.stack([shifted(heads, rows), shifted(ends, subtrees)]),
            torch.stack([shifted(tree, trees), shifted(arc, arcs)]),
            sum(trees),
        )


def _arcs(heads: Sequence[int], labels: Sequence[int], table: dict[Key, int]) -> list[tuple[int, int]]:
    """Return the arcs of a tree, head and subtree; add missing subtrees to the table."""
    dependents, ids, arcs = dependents_of(heads), [0] * (len(heads) + 1), []
    for node in post_order(dependents)[:-1]:
        key = (node, labels[node - 1], tuple(ids[each] for each in dependents[node]))
        ids[node] = table.setdefault(key, len(table))
        arcs.append((heads[node - 1], ids[node]))
    return arcs


def columns(rows: Sequence[tuple[int, ...]], width: int) -> Tensor:
    """Return rows of indices, each ``width`` long, as columns ``(width, rows)``."""
    return torch.tensor(rows, dtype=torch.int64).reshape(-1, width).T


def shifted(parts: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Turn indices within each part into indices within all parts, which are concatenated."""
    starts = torch.tensor([0, *sizes[:-1]]).cumsum(0)
    return torch.cat([part + start for part, start in zip(parts, starts, strict=True)], -1)
