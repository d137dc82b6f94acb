"""What notebooks show of parses, lists and distributions: ``svg`` elements with their style."""

from collections.abc import Sequence
from html import escape

from treeparse.pictures.arcs import Tree
from treeparse.pictures.matrix import draw_marginals
from treeparse.pictures.svg import stacked, standalone
from treeparse.pictures.tree import draw_tree

WIDTH = 900.0  # pixels of a picture among the cells
MOST_WORDS = 60  # of a heat map: more take long to draw and tell nothing


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
