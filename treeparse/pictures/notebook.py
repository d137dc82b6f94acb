"""What notebooks show of parses, lists and distributions: ``svg`` elements with their style."""

from collections.abc import Sequence
from html import escape

from treeparse.pictures.arcs import Tree
from treeparse.pictures.matrix import draw_marginals
from treeparse.pictures.svg import Drawing, stacked, standalone
from treeparse.pictures.tree import draw_tree

WIDTH = 900.0  # pixels of a picture among the cells
MOST_WORDS = 60  # of a heat map: more take long to draw and tell nothing


def tree_in_notebook(
    words: Sequence[str], heads: Sequence[int], labels: Sequence[str], tags: Sequence[str] | None = None
) -> str:
    """Return a tree in rows that fit between cells."""
    return standalone(_drawn(words, heads, labels, tags))


def list_in_notebook(
    words: Sequence[str], trees: Sequence[tuple[Sequence[int], Sequence[str]]], captions: Sequence[str]
) -> str:
    """Return the trees of a sentence, pairs of heads and labels, one below the other with captions."""
    drawings = [_drawn(words, heads, labels, None) for heads, labels in trees]
    return standalone(stacked(drawings, captions, " ".join(words)))


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


def _drawn(words: Sequence[str], heads: Sequence[int], labels: Sequence[str], tags: Sequence[str] | None) -> Drawing:
    tree = Tree(tuple(words), tuple(heads), tuple(labels), None if tags is None else tuple(tags))
    return draw_tree(tree, wrap=WIDTH)
