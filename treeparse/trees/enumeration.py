"""All trees of a few words."""

import torch
from torch import Tensor

from treeparse.errors import TreeparseError

MAX_ENUMERATED_WORDS = 7


def check_enumerable(words: int) -> None:
    """Raise for so many words that there are too many trees."""
    if words > MAX_ENUMERATED_WORDS:
        raise TreeparseError(
            f"The support can be enumerated for up to {MAX_ENUMERATED_WORDS} words, but there are {words}."
        )


def head_lists(length: Tensor, size: int) -> Tensor:
    """All lists of heads of the first ``length`` ``(1,)`` words ``(lists, size)``, trees or not; -1 at padding.

    The order is by head of word 1, then of word 2, and so on.
    """
    words = int(length)
    choices = [[head for head in range(words + 1) if head != word] for word in range(1, words + 1)]
    grid = torch.cartesian_prod(*map(torch.tensor, choices)).reshape(-1, words)
    return torch.nn.functional.pad(grid, (1, size - 1 - words), value=-1).to(length.device)
