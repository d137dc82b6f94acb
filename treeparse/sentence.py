"""Sentences, and checks of their head lists. Imports no torch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from treeparse.errors import TreeparseError

ROOT_LABEL = "root"
EMPTY = "_"
INTO_CYCLE = "lead into a cycle, never to the root"  # ends the problem of a tree with a cycle


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of one sentence and, where they are known, their tags and tree.

    Every tuple has one entry a word (the root is not a word). ``heads`` are as in CoNLL-U: 0 is the root, word ``j`` is
    ``j`` counted from 1; -1 is an unknown head. A missing tag or label is ``"_"``. ``allowed`` lists the possible heads
    of each word; ``()`` allows any head. ``misc`` has the last column of CoNLL-U. ``treebank`` is the name of the
    treebank whose annotation the sentence has, or is to get; None if it is unknown.
    """

    forms: tuple[str, ...]
    upos: tuple[str, ...] | None = None
    xpos: tuple[str, ...] | None = None
    feats: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None
    labels: tuple[str, ...] | None = None
    allowed: tuple[tuple[int, ...], ...] | None = None
    misc: tuple[str, ...] | None = None
    treebank: str | None = None

    def __post_init__(self) -> None:
        for name in ("forms", "upos", "xpos", "feats", "heads", "labels", "allowed", "misc"):
            values = getattr(self, name)
            if isinstance(values, str):  # whose letters would be the words
                raise TreeparseError(f"The {name} of a sentence are the string {values!r:.50}, not a tuple of strings.")
            if values is not None and len(values) != len(self.forms):
                raise TreeparseError(f"A sentence of {len(self.forms)} words came with {len(values)} {name}.")

    def __len__(self) -> int:
        return len(self.forms)

    def to(self, *_: object, **__: object) -> Self:
        """Return the sentence itself: training loops call this for all that is in a batch, to move it to a device."""
        return self

    def with_tree(self, heads: Sequence[int], labels: Sequence[str]) -> Self:
        """Return the sentence with another tree."""
        return replace(self, heads=tuple(heads), labels=tuple(labels), allowed=None)

    def without_tree(self) -> Self:
        """Return the sentence without heads, labels and possible heads."""
        return replace(self, heads=None, labels=None, allowed=None)


def missing_labels(sentences: Iterable[Sentence]) -> str | None:
    """Return a clause about the words that have a head and no label; None if every word with a head has a label."""
    pairs = (pair for s in sentences for pair in zip(s.heads or (), s.labels or (EMPTY,) * len(s), strict=False))
    labels = [label for head, label in pairs if head >= 0]
    missing = labels.count(EMPTY)
    if not missing:
        return None
    return f"{missing:,} of {len(labels):,} words with a head have no label (DEPREL is _)"


def unreached_words(heads: Sequence[int]) -> list[int]:
    """Return the words (from 1) whose heads lead into a cycle instead of to the root; heads as in CoNLL-U.

    A word of unknown head, -1, and its descendants are in no cycle.
    """
    order = _preorder(heads)
    return [] if len(order) == len(heads) + 1 else sorted({*range(len(heads) + 1)}.difference(order))


def _preorder(heads: Sequence[int]) -> list[int]:
    """Return the nodes that descend from the root, in pre-order; words of unknown head count as its children."""
    children: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for word, head in enumerate(heads, 1):
        children[max(head, 0)].append(word)
    order, stack = [], [0]
    while stack:
        order.append(node := stack.pop())
        stack.extend(children[node])
    return order


def tree_problem(heads: Sequence[int], *, single_root: bool = True, partial: bool = False) -> str | None:
    """Return, as a sentence, why a head list (as in CoNLL-U) is no dependency tree; None if it is one.

    With ``partial`` a head of -1 is unknown, and the other heads must be part of some tree.
    """
    count = len(heads)
    partial = partial and -1 in heads
    for word, head in enumerate(heads, 1):
        if not -partial <= head <= count:
            return f"the head of word {word} must be from 0 to {count}, got {head}"
    roots = [word for word, head in enumerate(heads, 1) if head == 0]
    if not roots and not partial:
        return "no word hangs from the root (HEAD 0)"
    if single_root and len(roots) > 1:
        return f"words {', '.join(map(str, roots))} all hang from the root, but a tree has one root"
    cyclic = unreached_words(heads)
    if cyclic:
        return f"the heads of words {', '.join(map(str, cyclic))} {INTO_CYCLE}"
    return None


def nonprojective_words(heads: Sequence[int]) -> list[int]:
    """Return the words (from 1) with a non-projective arc: some word below the arc is no descendant of the head.

    Heads as in CoNLL-U; more than one root is allowed.

    Raises:
        TreeparseError: the heads are no tree.
    """
    if problem := tree_problem(heads, single_root=False):
        raise TreeparseError(f"only a tree has non-projective arcs: {problem}")
    order = _preorder(heads)
    first, last = [0] * len(order), [0] * len(order)  # the index in pre-order of each node, and of its last descendant
    for index, node in enumerate(order):
        first[node] = last[node] = index
    for node in reversed(order[1:]):
        head = heads[node - 1]
        last[head] = max(last[head], last[node])
    crossing = []
    for dependent, head in enumerate(heads, 1):
        between = first[min(head, dependent) + 1 : max(head, dependent)]
        if between and not first[head] <= min(between) <= max(between) <= last[head]:
            crossing.append(dependent)
    return crossing
