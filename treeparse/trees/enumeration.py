"""All trees of a few words."""

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.families import Family

MAX_ENUMERATED_WORDS = 7


def check_enumerable(words: int) -> None:
    """Raise for so many words that there are too many trees."""
    if words > MAX_ENUMERATED_WORDS:
        raise TreeparseError(
            f"The support can be enumerated for up to {MAX_ENUMERATED_WORDS} words, but there are {words}."
        )


def trees_without_forbidden_arcs(family: Family, arcs: Tensor, length: Tensor) -> Tensor:
    """The trees ``(trees, n+1)`` of an item, given its arcs ``(n+1, n+1)`` and its number of words."""
    trees = all_trees(family, length, len(arcs))
    scores = arcs[trees.clamp(min=0), torch.arange(len(arcs), device=arcs.device)]
    return trees[((scores > -torch.inf) | (trees < 0)).all(-1)]


def all_trees(family: Family, length: Tensor, size: int) -> Tensor:
    """All trees over the first ``length`` words ``(trees, size)``, by head of word 1, then 2, ...; -1 at padding."""
    words = int(length)
    choices = [[head for head in range(words + 1) if head != word] for word in range(1, words + 1)]
    grid = torch.cartesian_prod(*map(torch.tensor, choices)).reshape(-1, words)
    heads = torch.nn.functional.pad(grid, (1, size - 1 - words), value=-1).to(length.device)
    return heads[family.are_trees(heads, length.expand(len(heads)))]
