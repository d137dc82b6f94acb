"""What is drawn of a sentence: its words, its arcs, and how they differ from those of a tree of reference."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """How an arc stands to the reference; the value is the class of its drawing, empty for an arc as it is there."""

    SAME = ""
    HEAD = "tp-other-head"  # another head
    LABEL = "tp-other-label"  # the same head under another label


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree to draw: words, and of each its head as in CoNLL-U (0 is the root, -1 no arc) and its label.

    ``tags`` stand below the words; ``"_"`` stands for none.

    Raises:
        ValueError: the columns differ in length, or a head is no node.
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]
    tags: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        count = len(self.words)
        for name, column in (("heads", self.heads), ("labels", self.labels), ("tags", self.tags)):
            if column is not None and len(column) != count:
                raise ValueError(f"A tree of {count} words came with {len(column)} {name}.")
        for word, head in enumerate(self.heads, 1):
            if not -1 <= head <= count or head == word:
                raise ValueError(f"Word {word} has head {head}: a head is another word, from 1 to {count}, 0 or -1.")


@dataclass(frozen=True, slots=True)
class Arc:
    """An arc with its label; words are counted from 1, the head 0 is the root. ``note`` says more than is drawn."""

    head: int
    dependent: int
    label: str
    mark: Mark = Mark.SAME
    note: str = ""

    @property
    def is_root(self) -> bool:
        return self.head == 0

    @property
    def left(self) -> int:
        """The word at its left end, in the order of words; of the root's arc the word it leads to."""
        return self.dependent if self.is_root else min(self.head, self.dependent)

    @property
    def right(self) -> int:
        return max(self.head, self.dependent)

    @property
    def length(self) -> int:
        """How many words it spans, less one; 0 of the root's arc."""
        return self.right - self.left


def arcs_of(tree: Tree, reference: Tree | None = None) -> list[Arc]:
    """The arcs of a tree by their dependents, marked where ``reference``, a tree of the same words, has others.

    Raises:
        ValueError: the reference has other words.
    """
    if reference is not None and reference.words != tree.words:
        raise ValueError("The tree of reference has other words than the tree that is drawn.")
    arcs = []
    for dependent, (head, label) in enumerate(zip(tree.heads, tree.labels, strict=True), 1):
        if head >= 0:
            mark = _mark(tree, reference, dependent)
            note = _described(tree, dependent)
            if mark and reference is not None:
                note += f" instead of {_described(reference, dependent)}"
            arcs.append(Arc(head, dependent, label, mark, note))
    return arcs


def count_marks(arcs: Sequence[Arc]) -> tuple[int, int]:
    """How many arcs have another head, and how many another label alone."""
    marks = [arc.mark for arc in arcs]
    return marks.count(Mark.HEAD), marks.count(Mark.LABEL)


def _mark(tree: Tree, reference: Tree | None, dependent: int) -> Mark:
    place = dependent - 1
    if reference is None:
        return Mark.SAME
    if tree.heads[place] != reference.heads[place]:
        return Mark.HEAD
    return Mark.SAME if tree.labels[place] == reference.labels[place] else Mark.LABEL


def _described(tree: Tree, dependent: int) -> str:
    head = tree.heads[dependent - 1]
    if head < 0:
        return f"no head for {tree.words[dependent - 1]}"
    above = tree.words[head - 1] if head else "root"
    return f"{above} → {tree.words[dependent - 1]}: {tree.labels[dependent - 1]}"
