"""The best trees of a distribution over unlabelled trees: the best one, the K best in order, the MBR tree."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from treeparse.trees.checks import check_count
from treeparse.trees.expectations import ArcExpectations
from treeparse.trees.functions import KBest
from treeparse.trees.lists import in_order, places


class BestTrees(ArcExpectations):
    """The part of a distribution over unlabelled trees that compares trees.

    Of trees of equal score the better one is that whose arcs are shorter in sum, then that of the greater sum of fixed
    pseudo-random keys of arcs. The rule is the same for every kind of distribution, and the tree does not depend on the
    batch. Scores are equal where their sums are, rounding included.
    """

    @abstractmethod
    def _best_trees_of(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """Heads of the best trees ``(B, n+1)``."""

    @abstractmethod
    def _k_best(self, scores: Tensor, lengths: Tensor) -> KBest:
        """The lazy list of the best trees of a flat batch."""

    @cached_property
    def _heads(self) -> Tensor:
        heads = self._best_trees_of(*self._flat)
        self._require_trees(lambda: heads[:, 1] >= 0)
        return heads.reshape(self.scores.shape[:-1])

    @property
    def mode(self) -> Tensor:
        """Heads of the best tree ``(*batch, n+1)``."""
        return self._heads

    def topk(self, k: int) -> tuple[Tensor, Tensor]:
        """The k best trees: heads ``(*batch, k, n+1)`` and their unnormalised scores ``(*batch, k)``, best first.

        Exact and distinct ([KBest]; projective ones by Huang and Chiang 2005). Past the number of trees heads are -1
        and scores -inf.

        Raises:
            TreeparseError: unless k is a whole number, 1 or more.
        """
        found = self._make_best(check_count(k))
        scores, heads = in_order(found.scores[:, :k], found.heads[:, :k])
        return self._as_batch(heads), self._round(self._as_batch(scores))

    def best_first(self) -> Iterator[tuple[Tensor, Tensor]]:
        """All trees, best first, made as they are asked for: heads ``(*batch, n+1)``, scores ``(*batch,)``.

        Shorter lists are padded as in ``topk``; the iteration ends with the longest.
        """
        found = self._make_best(1)
        for place in places(found):
            yield self._as_batch(found.heads[:, place]), self._round(self._as_batch(found.scores[:, place]))

    def minimum_risk(self) -> Tensor:
        """Heads ``(*batch, n+1)`` of the tree of the support with the highest expected UAS, the MBR tree.

        That is the best tree where an arc's score is its probability ([Exp] §6.1); ties go as for ``mode``.
        """
        marginals = self._marginals.detach().reshape(self.scores.shape)
        expected = self.with_scores(torch.where(self.scores > -torch.inf, marginals, -torch.inf))
        expected._validate_args = self._validate_args
        return expected.mode

    @property
    def _flat(self) -> tuple[Tensor, Tensor]:
        """Float64 scores ``(B, n+1, n+1)`` and lengths ``(B,)``."""
        return self._sums.scores, self._sums.lengths

    def _make_best(self, count: int) -> KBest:
        """A new list of the best trees with so many of them made."""
        found = self._k_best(*self._flat)
        found.extend(count, threads=torch.get_num_threads())
        self._require_trees(lambda: torch.from_numpy(found.scores[:, 0] > -np.inf))
        return found

    def _as_batch(self, array: np.ndarray) -> Tensor:
        """An array ``(B, ...)`` of the flat batch as a tensor ``(*batch, ...)``."""
        return torch.from_numpy(array).to(self.scores.device).reshape(self.batch_shape + array.shape[1:])
