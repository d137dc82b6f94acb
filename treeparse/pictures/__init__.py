"""Pictures of trees, of lists of trees and of marginals, as SVG and as HTML pages, from plain strings and numbers.

``tree_svg`` draws a tree, ``page`` makes a page of many pictures.
"""

from collections.abc import Sequence
from html import escape

from treeparse.pictures.layout import MultiwordToken, Tree
from treeparse.pictures.plots import draw_marginals
from treeparse.pictures.svg import document, stacked, standalone
from treeparse.pictures.tree import draw_tree

__all__ = [
    "MultiwordToken",
    "Tree",
    "draw_tree",
]

WIDTH = 900.0  # pixels of a picture among the cells
MOST_WORDS = 60  # of a heat map: more take long to draw and tell nothing


def tree_svg(
    words: Sequence[str],
    heads: Sequence[int],
    labels: Sequence[str],
    tags: Sequence[str] | None = None,
    *,
    tokens: Sequence[tuple[int, int, str]] = (),
    wrap: float | None = None,
) -> str:
    """Return a tree as an SVG file, a complete XML document, light or dark as the reader prefers.

    Args:
        words: the words.
        heads: the head of each word, as in CoNLL-U: 0 is the root; -1 draws no arc.
        labels: the label of each word.
        tags: the tag of each word, drawn below it; None or ``"_"`` draws none.
        tokens: the multiword tokens, drawn below their words: the first word, from 1, the last one, and the form.
        wrap: the width in pixels at which rows end; None is one row.

    Raises:
        ValueError: if the columns differ in length, a head is not another word, 0 or -1, or a token spans other words.
    """
    multiword = tuple(MultiwordToken(*token) for token in tokens)
    tree = Tree(tuple(words), tuple(heads), tuple(labels), None if tags is None else tuple(tags), multiword)
    return document(draw_tree(tree, wrap=wrap))


def tree_in_notebook(tree: Tree) -> str:
    """Return a tree in rows that fit between cells."""
    return standalone(draw_tree(tree, wrap=WIDTH))


def list_in_notebook(trees: Sequence[Tree], captions: Sequence[str]) -> str:
    """Return trees of a sentence, one below the other with captions."""
    drawings = [draw_tree(tree, wrap=WIDTH) for tree in trees]
    return standalone(stacked(drawings, captions, " ".join(trees[0].words) if trees else ""))


def distribution_in_notebook(text: str, marginals: Sequence[Sequence[Sequence[float]]], more: int) -> str:
    """Return a text, the probabilities of arcs ``[head][dependent]`` of sentences, and the number of further ones.

    Numbers stand for the words.
    """
    parts = [f"<pre>{escape(text)}</pre>"]
    for rows in marginals:
        words = len(rows) - 1
        if words <= MOST_WORDS:
            parts.append(standalone(draw_marginals([str(word) for word in range(1, words + 1)], rows)))
        else:
            parts.append(f"<p>a sentence of {words:,} words</p>")
    return "".join([*parts, f"<p>and {more:,} more</p>" if more else ""])
