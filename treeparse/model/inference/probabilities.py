"""Add probabilities of arcs, entropies, expected gradients and sets of heads to parses."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat

import torch
from torch import Tensor

from treeparse.data.parses import Parse
from treeparse.model.inference.lists import TreeLists
from treeparse.trees import LabeledDistribution, Mixture


def with_probabilities(
    p: LabeledDistribution, trees: TreeLists, lists: Sequence[Sequence[Parse]], label_powers: Sequence[float] = (1.0,)
) -> list[list[Parse]]:
    """Add the marginals of arcs and labelled arcs, and the entropy, to the parses of a batch.

    Args:
        p: the distribution of all trees.
        trees: heads and labels of the parses.
        lists: the parses of each sentence, one for each tree.
        label_powers: the power of P(label | arc) of each model, as in `Mixture.tree_marginals`.
    """
    marginals = p.tree_marginals(trees.heads, trees.labels, label_powers=label_powers)
    arcs, labeled = (part.clamp_max(1.0).transpose(0, 1).tolist() for part in marginals)
    entropies = repeat(None, len(lists)) if isinstance(p, Mixture) else p.entropy().clamp_min(0.0).tolist()
    return [
        [
            replace(parse, arc_probs=_of_words(arcs, parse), label_probs=_of_words(labels, parse), entropy=entropy)
            for parse, arcs, labels in zip(parses, *rows, strict=False)  # padding has no parses
        ]
        for parses, entropy, *rows in zip(lists, entropies, arcs, labeled, strict=True)
    ]


def with_expected_gradients(p: LabeledDistribution, lists: Sequence[Sequence[Parse]]) -> list[list[Parse]]:
    """Add the expected squared length of the gradient to the parses of a batch; a mixture has none."""
    if isinstance(p, Mixture):
        return [[*parses] for parses in lists]
    lengths = p.expected_gradient().clamp_min(0.0).tolist()
    return [
        [replace(parse, expected_gradient=length) for parse in parses]
        for parses, length in zip(lists, lengths, strict=True)
    ]


def with_head_sets(p: LabeledDistribution, threshold: float, lists: Sequence[Sequence[Parse]]) -> list[list[Parse]]:
    """Add to each word the set of heads whose probability is at least the threshold, and the parse's own head."""
    marginals = p.arc_marginals().transpose(1, 2).cpu()
    return [
        [replace(parse, head_sets=_head_sets(parse, rows >= threshold)) for parse in parses]
        for parses, rows in zip(lists, marginals, strict=True)
    ]


def _head_sets(parse: Parse, chosen: Tensor) -> tuple[tuple[int, ...], ...]:
    """The sets of a boolean matrix ``(n+1, n+1)`` whose rows are dependents."""
    size = len(parse.tokens) + 1
    is_head = chosen[:size, :size] & ~torch.eye(size, dtype=torch.bool)
    is_head[torch.arange(1, size), torch.tensor(parse.heads)] = True
    return tuple(tuple(row.nonzero().flatten().tolist()) for row in is_head[1:])


def _of_words(probs: Sequence[float], parse: Parse) -> tuple[float, ...]:
    """The values of the words, from those of all nodes."""
    return tuple(probs[1 : len(parse.tokens) + 1])
