"""Draw trees in growing rounds. The draws of an item do not depend on other items or on the number of rounds."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from treeparse.trees import LabeledCRF

FIRST_ROUND = 16  # trees of an item; rounds double
LONGEST_ROUND = 1024

Row = tuple[list[int], list[int]]  # heads and labels of the nodes of one tree, with padding


class IndependentDraws:
    """Draw independent trees.

    Args:
        p: the distribution of each item of a flat batch.
        generators: one for each item.
    """

    def __init__(self, p: LabeledCRF, generators: Sequence[Generator]) -> None:
        self._p, self._generators, self._size = p, generators, FIRST_ROUND

    def next_round(self, items: Sequence[int]) -> list[list[Row]]:
        """Draw more trees of some items, all of which took part in the previous rounds."""
        heads, labels = _some(self._p, items).sample((self._size,), generator=[self._generators[i] for i in items])
        self._size = min(2 * self._size, LONGEST_ROUND)
        return _rows(heads.transpose(0, 1), labels.transpose(0, 1))


class DistinctDraws:
    """Draw trees without replacement: each round draws the trees of the previous one again, and more.

    Args:
        p: the distribution of each item of a flat batch.
        generators: new generators of items, always in the same state.
        most: the greatest number of trees of an item.
    """

    def __init__(self, p: LabeledCRF, generators: Callable[[Sequence[int]], list[Generator]], most: int) -> None:
        self._p, self._generators, self._most = p, generators, most
        self._drawn, self._size = 0, min(FIRST_ROUND, most)

    def next_round(self, items: Sequence[int]) -> list[list[Row]]:
        """Draw more trees of some items; none if the items have no more."""
        if self._drawn == self._most:
            return [[] for _ in items]
        lists = _some(self._p, items).sample_without_replacement(self._size, generator=self._generators(items))
        new = [part[:, self._drawn :] for part in lists[:2]]
        self._drawn, self._size = self._size, min(2 * self._size, self._most)
        return _rows(*new)


def _some(p: LabeledCRF, items: Sequence[int]) -> LabeledCRF:
    return p if len(items) == len(p.scores) else p.of_items(torch.tensor(items, device=p.scores.device))


def _rows(heads: Tensor, labels: Tensor) -> list[list[Row]]:
    """The trees of each item, from heads and labels ``(I, T, n+1)``, without the padding trees of -1."""
    counts = (heads[..., 1] >= 0).sum(-1).tolist()
    return [
        list(zip(some[:count], others[:count], strict=True))
        for count, some, others in zip(counts, heads.tolist(), labels.tolist(), strict=True)
    ]
