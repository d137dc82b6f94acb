"""Probabilities of the arcs of parses, and entropies of the distributions that they are from."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat

from treeparse.data.parses import Parse
from treeparse.model.lists import TreeLists
from treeparse.trees import LabeledCRF
from treeparse.trees.mixture import Mixture
from treeparse.trees.tree_marginals import tree_marginals


def with_probabilities(
    p: LabeledCRF | Mixture, found: TreeLists, lists: Sequence[Sequence[Parse]]
) -> list[list[Parse]]:
    """The parses of a batch with the marginals of their arcs and labelled arcs, and the entropy.

    Args:
        p: the distribution of all trees.
        found: heads and labels of the parses.
        lists: the parses of each sentence, as many as there are trees.
    """
    marginals = tree_marginals(p, found.heads.transpose(0, 1), found.labels.transpose(0, 1))
    arcs, labeled = (part.clamp_max(1.0).transpose(0, 1).tolist() for part in marginals)
    entropies = repeat(None, len(lists)) if isinstance(p, Mixture) else p.entropy().clamp_min(0.0).tolist()
    return [
        [
            replace(parse, arc_probs=_of_words(arcs, parse), label_probs=_of_words(labels, parse), entropy=entropy)
            for parse, arcs, labels in zip(parses, *rows, strict=False)  # there are no parses of padding
        ]
        for parses, entropy, *rows in zip(lists, entropies, arcs, labeled, strict=True)
    ]


def _of_words(probs: Sequence[float], parse: Parse) -> tuple[float, ...]:
    """A value of each word from those of all nodes."""
    return tuple(probs[1 : len(parse.tokens) + 1])
