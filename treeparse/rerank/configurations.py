"""Trees of a list as sets of local configurations, most of which they have in common: each is looked at once."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T", bound=Hashable)


class Configuration(NamedTuple):
    """A node of a tree with its head, its dependents and the words below it.

    ``left`` and ``right`` are the dependents on either side, those nearest to the node first, with their labels.
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


class Spans(NamedTuple):
    """Of each node the outermost words of its subtree, and their number."""

    first: list[int]
    last: list[int]
    size: list[int]


def configurations(heads: Sequence[int], labels: Sequence[str]) -> list[Configuration]:
    """The configurations of a tree, by node; heads as in CoNLL-U."""
    dependents = dependents_of(heads)
    spans = spans_of(heads, dependents)
    heads, labels = (-1, *heads), ("", *labels)
    found = []
    for node, own in enumerate(dependents):
        pairs = [(each, labels[each]) for each in own]
        left = tuple(pair for pair in reversed(pairs) if pair[0] < node)
        right = tuple(pair for pair in pairs if pair[0] > node)
        span = spans.first[node], spans.last[node], spans.size[node]
        found.append(Configuration(node, heads[node], labels[node], left, right, *span))
    return found


def dependents_of(heads: Sequence[int]) -> list[list[int]]:
    """The dependents of each node, node 0 first, in the order of the sentence."""
    dependents: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for word, head in enumerate(heads, 1):
        dependents[head].append(word)
    return dependents


def upwards(dependents: Sequence[Sequence[int]]) -> list[int]:
    """The nodes of a tree, each behind its dependents."""
    order = [0]
    for node in order:  # which grows meanwhile
        order.extend(dependents[node])
    return order[::-1]


def spans_of(heads: Sequence[int], dependents: Sequence[Sequence[int]]) -> Spans:
    """The spans of all subtrees."""
    first, last, size = list(range(len(heads) + 1)), list(range(len(heads) + 1)), [1] * (len(heads) + 1)
    for node in upwards(dependents)[:-1]:
        head = heads[node - 1]
        first[head], last[head] = min(first[head], first[node]), max(last[head], last[node])
        size[head] += size[node]
    return Spans(first, last, size)


class Differing(NamedTuple, Generic[T]):
    """The parts in which trees differ, each once, and which tree has which: no part is in all trees."""

    parts: list[T]
    members: list[tuple[int, int]]  # (tree, part)


def differing(trees: Sequence[Sequence[T]]) -> Differing[T]:
    """The parts of trees, each of which has a part at most once, that not all of them have."""
    counts = Counter(part for parts in trees for part in parts)
    kept = [part for part, count in counts.items() if count < len(trees)]
    places = {part: place for place, part in enumerate(kept)}
    members = [(tree, places[part]) for tree, parts in enumerate(trees) for part in parts if part in places]
    return Differing(kept, members)
