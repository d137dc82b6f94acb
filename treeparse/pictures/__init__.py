"""Pictures of trees, of lists of trees and of marginals, as SVG and as HTML pages, from plain strings and numbers.

``tree_svg`` draws a tree, ``page`` makes a page of many pictures.
"""

from collections.abc import Sequence

from treeparse.pictures.arcs import Tree
from treeparse.pictures.svg import document
from treeparse.pictures.tree import draw_tree

__all__ = [
    "Tree",
    "draw_tree",
]


def tree_svg(
    words: Sequence[str],
    heads: Sequence[int],
    labels: Sequence[str],
    tags: Sequence[str] | None = None,
    *,
    wrap: float | None = None,
) -> str:
    """Return a tree as an SVG file, a complete XML document, light or dark as the reader prefers.

    Args:
        words: the words.
        heads: the head of each word, as in CoNLL-U: 0 is the root; -1 draws no arc.
        labels: the label of each word.
        tags: the tag of each word, drawn below it; None or ``"_"`` draws none.
        wrap: the width in pixels at which rows end; None is one row.

    Raises:
        ValueError: if the columns differ in length, or a head is not another word, 0 or -1.
    """
    tree = Tree(tuple(words), tuple(heads), tuple(labels), None if tags is None else tuple(tags))
    return document(draw_tree(tree, wrap=wrap))
