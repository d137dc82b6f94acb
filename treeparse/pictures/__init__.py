"""Pictures of trees, of lists of trees and of marginals, as SVG and as HTML pages; plain strings in, plain strings out.

:func:`tree_svg` is a tree's picture, :func:`~treeparse.pictures.page.page` a page of many.
"""

from collections.abc import Sequence

from treeparse.pictures.arcs import Tree as Tree
from treeparse.pictures.svg import document, standalone
from treeparse.pictures.tree import draw_tree as draw_tree

NOTEBOOK_WIDTH = 900.0  # pixels of a picture among the cells of a notebook


def tree_svg(
    words: Sequence[str],
    heads: Sequence[int],
    labels: Sequence[str],
    tags: Sequence[str] | None = None,
    *,
    wrap: float | None = None,
) -> str:
    """A tree as an SVG file, valid XML by itself, light or dark as the reader prefers.

    Args:
        words: the words.
        heads: of each word, as in CoNLL-U: 0 is the root; -1 draws no arc.
        labels: of each word.
        tags: of each word, drawn below it; None or ``"_"`` is none.
        wrap: the width in pixels at which rows end; None is one row.

    Raises:
        ValueError: the columns differ in length, or a head is no other word, 0 or -1.
    """
    return document(draw_tree(_tree(words, heads, labels, tags), wrap=wrap))


def notebook_svg(
    words: Sequence[str], heads: Sequence[int], labels: Sequence[str], tags: Sequence[str] | None = None
) -> str:
    """A tree as notebooks show it: an ``svg`` element with its style, in rows that fit between the cells."""
    return standalone(draw_tree(_tree(words, heads, labels, tags), wrap=NOTEBOOK_WIDTH))


def _tree(words: Sequence[str], heads: Sequence[int], labels: Sequence[str], tags: Sequence[str] | None) -> Tree:
    return Tree(tuple(words), tuple(heads), tuple(labels), None if tags is None else tuple(tags))
