"""The words and arcs of a sentence to draw, and how arcs differ from a reference tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """How an arc differs from the reference; the value is the CSS class, empty for an equal arc."""

    SAME = ""
    HEAD = "tp-other-head"  # another head
    LABEL = "tp-other-label"  # the same head under another label


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree to draw: words, their heads as in CoNLL-U (0 is the root, -1 no arc) and their labels.

    ``tags`` are drawn below the words; ``"_"`` draws none.

    Raises:
        ValueError: if the columns differ in length, or a head is not a node.
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]
    tags: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        count = len(self.words)
        for name, column in (("heads", self.heads), ("labels", self.labels), ("tags", self.tags)):
            if column is not None and len(column) != count:
                raise ValueError(f"A tree of {count} words needs {count} {name}, got {len(column)}.")
        for word, head in enumerate(self.heads, 1):
            if not -1 <= head <= count or head == word:
                raise ValueError(
                    f"The head of word {word} must be another word, from 1 to {count}, 0 or -1, got {head}."
                )


@dataclass(frozen=True, slots=True)
class Arc:
    """An arc with its label; words are counted from 1, the head 0 is the root. ``note`` is the tooltip."""

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
        """The word at the left end, in sentence order; for the root's arc, its dependent."""
        return self.dependent if self.is_root else min(self.head, self.dependent)

    @property
    def right(self) -> int:
        return max(self.head, self.dependent)

    @property
    def length(self) -> int:
        """The distance of its ends in words; 0 for the root's arc."""
        return self.right - self.left


def arcs_of(tree: Tree, reference: Tree | None = None) -> list[Arc]:
    """Return the arcs of a tree by dependent, marked where ``reference``, a tree of the same words, differs.

    Raises:
        ValueError: if the reference has other words.
    """
    if reference is not None and reference.words != tree.words:
        raise ValueError("The reference tree must have the words of the drawn tree, got other words.")
    reference = reference or tree
    arcs = []
    for dependent, (head, label) in enumerate(zip(tree.heads, tree.labels, strict=True), 1):
        if head >= 0:
            mark, note = Mark.SAME, _described(tree, dependent)
            if head != reference.heads[dependent - 1]:
                mark = Mark.HEAD
            elif label != reference.labels[dependent - 1]:
                mark = Mark.LABEL
            if mark:
                note += f" instead of {_described(reference, dependent)}"
            arcs.append(Arc(head, dependent, label, mark, note))
    return arcs


def count_marks(arcs: Sequence[Arc]) -> tuple[int, int]:
    """Return how many arcs have another head, and how many only another label."""
    marks = [arc.mark for arc in arcs]
    return marks.count(Mark.HEAD), marks.count(Mark.LABEL)


def _described(tree: Tree, dependent: int) -> str:
    head = tree.heads[dependent - 1]
    if head < 0:
        return f"no head for {tree.words[dependent - 1]}"
    above = tree.words[head - 1] if head else "root"
    return f"{above} → {tree.words[dependent - 1]}: {tree.labels[dependent - 1]}"
