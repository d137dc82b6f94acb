"""Features of a configuration, as strings, that a model of single arcs cannot see."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self, TypeVar

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, Sentence

T = TypeVar("T", bound=Hashable)
ROOT, EDGE = "<root>", "<edge>"
COMMON = 100  # the least count of a word that is its own class
SIZES = (1, 2, 3, 4, 5, 7, 10, 15, 25)


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
    heads, labels = (-1, *heads), ("", *labels)
    dependents: list[list[int]] = [[] for _ in heads]
    for word, head in enumerate(heads[1:], 1):
        dependents[head].append(word)
    order = [0]
    for node in order:  # the loop appends to the list
        order.extend(dependents[node])
    first, last, size = [*range(len(heads))], [*range(len(heads))], [1] * len(heads)
    for node in reversed(order[1:]):
        head = heads[node]
        first[head], last[head] = min(first[head], first[node]), max(last[head], last[node])
        size[head] += size[node]
    result = []
    for node, words in enumerate(dependents):
        pairs = [(word, labels[word]) for word in words]
        left = tuple(pair for pair in reversed(pairs) if pair[0] < node)
        right = tuple(pair for pair in pairs if pair[0] > node)
        result.append(Configuration(node, heads[node], labels[node], left, right, first[node], last[node], size[node]))
    return result


def differing(trees: Sequence[Sequence[T]]) -> tuple[list[T], list[tuple[int, int]]]:
    """Return the different parts that not all trees have, and pairs ``(tree, part)`` of indices of the parts of trees.

    A tree has a part at most once.
    """
    counts = Counter(part for parts in trees for part in parts)
    distinctive = [part for part, count in counts.items() if count < len(trees)]
    indices = {part: index for index, part in enumerate(distinctive)}
    members = [(tree, indices[part]) for tree, parts in enumerate(trees) for part in parts if part in indices]
    return distinctive, members


def shifted(parts: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Turn indices within each part into indices within all parts, which are concatenated."""
    starts = torch.tensor([0, *sizes[:-1]]).cumsum(0)
    return torch.cat([part + start for part, start in zip(parts, starts, strict=True)], -1)


@dataclass(frozen=True)
class NodeNames:
    """The names of a sentence's nodes in features: by word, and by a coarser class of words.

    A frequent word names itself, a rare one is named by its shape and its last letters. The class is the UPOS; without
    tags, it is a very frequent word itself, or the shape and the last two letters of another word.
    """

    words: tuple[str, ...]
    classes: tuple[str, ...]

    @classmethod
    def of(cls, sentence: Sentence, counts: Mapping[str, int], *, upos: bool) -> Self:
        """Return the names of the nodes; ``counts`` has the frequent words, lower-cased. Raise if UPOS are missing."""
        if upos and not {*(sentence.upos or ())} - {EMPTY}:
            raise TreeparseError(
                "The reranker reads UPOS, but the list has none: use a list in CoNLL-U, because JSONL has no tags."
            )
        words, classes = [ROOT], [ROOT]
        for form in sentence.forms:
            word, kind = form.lower(), shape(form)
            words.append(word if word in counts else f"{kind}{word[-3:]}")
            classes.append(word if counts.get(word, 0) >= COMMON else f"{kind}{word[-2:]}")
        return cls(tuple(words), (ROOT, *sentence.upos) if upos and sentence.upos else tuple(classes))


def shape(form: str) -> str:
    """Return the kind of characters in a form."""
    if any(map(str.isdigit, form)):
        return "9"
    if not any(map(str.isalpha, form)):
        return "."
    return "A" if form[:1].isupper() else "a"


def size_class(size: int) -> int:
    """Return the class of a number of words; classes of larger numbers are wider."""
    return sum(size >= bound for bound in SIZES)


def features(part: Configuration, names: NodeNames) -> Iterator[str]:
    """Yield the features of a configuration; a repeated feature counts again."""
    if part.node != 0:
        yield from _own(part, names)
    yield from _valency(part, names)
    for side, dependents in (("L", part.left), ("R", part.right)):
        yield from _siblings(part, names, side, dependents)
        for dependent, label in dependents if part.node != 0 else ():
            yield from _grandparents(part, names, side, dependent, label)


def _own(part: Configuration, names: NodeNames) -> Iterator[str]:
    """Yield features of the subtree: its size, its edges and the words beside them."""
    label, side = part.label, "L" if part.node < part.head else "R"
    own, size = names.classes[part.node], size_class(part.size)
    gaps = part.last - part.first + 1 != part.size
    before, after = (
        names.classes[node] if 0 < node < len(names.classes) else EDGE for node in (part.first - 1, part.last + 1)
    )
    first, last = names.classes[part.first], names.classes[part.last]
    yield f"size {label} {side} {size}"
    yield f"size {own} {label} {size}"
    yield f"gaps {label} {gaps}"
    yield f"gaps {own} {label} {side} {gaps}"
    yield f"edges {label} {side} {first} {last}"
    yield f"around {label} {side} {before} {after}"
    yield f"last {label} {last} {after}"
    yield f"first {label} {before} {first}"
    yield f"length {label} {size_class(abs(part.head - part.node))} {size}"


def _valency(part: Configuration, names: NodeNames) -> Iterator[str]:
    """Yield features of the number of dependents, and of their labels in order."""
    label, own, word = part.label, names.classes[part.node], names.words[part.node]
    left, right = (" ".join(relation for _, relation in side) for side in (part.left, part.right))
    yield f"valency {label} {len(part.left)} {len(part.right)}"
    yield f"valency {own} {label} {len(part.left)} {len(part.right)}"
    yield f"left {label} {left}"
    yield f"right {label} {right}"
    yield f"sequence {label} {left} * {right}"
    yield f"sequence {own} {label} {left} * {right}"
    labels = sorted(relation for side in (part.left, part.right) for _, relation in side)
    frame = " ".join(relation for relation in labels if relation != "punct")
    yield f"frame {label} {frame}"
    yield f"frame {word} {frame}"
    for other, count in Counter(labels).items():
        yield f"count {own} {other} {count}"
        yield f"count {label} {other} {count}"


def _siblings(part: Configuration, names: NodeNames, side: str, dependents: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Yield features of neighbouring dependents on one side, from the node outwards, with the edges of the row."""
    label, own, word = part.label, names.classes[part.node], names.words[part.node]
    row = [(0, EDGE), *dependents, (0, EDGE)]
    for (inner, first), (outer, second) in pairwise(row):
        a, b = (names.classes[node] if node else EDGE for node in (inner, outer))
        pair = f"{side} {first} {second}"
        yield f"siblings {label} {pair}"
        yield f"siblings {own} {pair}"
        yield f"siblings {word} {pair}"
        yield f"siblings {own} {pair} {a} {b}"
        yield f"siblings {pair} {a} {b}"
        yield f"siblings {own} {side} {a} {b}"
        if inner and outer:
            yield f"siblings {pair} {names.words[inner]} {names.words[outer]}"


def _grandparents(part: Configuration, names: NodeNames, side: str, dependent: int, label: str) -> Iterator[str]:
    """Yield features of a dependent, the node and the node's head."""
    word, own, below = names.words[part.node], names.classes[part.node], names.classes[dependent]
    above = names.classes[part.head]
    chain = f"{'L' if part.node < part.head else 'R'}{side} {part.label} {label}"
    yield f"chain {chain}"
    yield f"chain {chain} {above} {below}"
    yield f"chain {chain} {own} {below}"
    yield f"chain {chain} {above} {own} {below}"
    yield f"chain {chain} {word}"
    yield f"chain {chain} {names.words[part.head]} {names.words[dependent]}"
    yield f"below {label} {part.label} {names.words[dependent]}"
