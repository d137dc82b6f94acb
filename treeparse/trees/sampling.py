"""Samples of a distribution over unlabelled trees, and where their randomness comes from."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Generator, Size, Tensor

from treeparse.core import TreeparseError
from treeparse.trees.best import BestTrees

Generators = Generator | Sequence[Generator] | None


class SampledTrees(BestTrees):
    """The part of a distribution over unlabelled trees that draws them."""

    @abstractmethod
    def _sample_of(self, scores: Tensor, lengths: Tensor, seeds: np.ndarray, count: int, **options: Any) -> Tensor:
        """Heads ``(B, count, n+1)`` of trees drawn with replacement, by a seed an item; -1 where there is none."""

    def sample(self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Heads ``(*sample, *batch, n+1)`` of exact, independent samples.

        One seed an item is drawn from ``generator``, torch's default one if None; or from one generator an item, in the
        order of the flat batch: then an item's samples do not depend on its batch. Fewer samples by an equal generator
        are the first of more.
        """
        return self._sample_by(item_seeds(generator, self.batch_shape.numel()), Size(sample_shape))

    def _sample_by(self, seeds: np.ndarray, shape: Size, **options: Any) -> Tensor:
        """The samples of seeds ``(B,)`` uint64."""
        scores, lengths = self._flat
        heads = self._sample_of(scores.detach(), lengths, seeds, shape.numel(), **options)
        if heads.numel():
            self._require_trees(lambda: heads[:, 0, 1] >= 0)
        return heads.transpose(0, 1).reshape(shape + self.scores.shape[:-1])


def item_seeds(generator: Generators, items: int) -> np.ndarray:
    """One uint64 seed an item ``(items,)``, drawn from a generator on its device, or from a list of one an item.

    Raises:
        TreeparseError: for a list of another length.
    """
    if generator is None or isinstance(generator, Generator):
        return _draw_seeds(generator, items)
    if len(generator) != items:
        raise TreeparseError(
            f"There are {len(generator)} generators for {items} batch items: give one, or one for each item."
        )
    return np.concatenate([_draw_seeds(own, 1) for own in generator]) if items else np.empty(0, np.uint64)


def _draw_seeds(generator: Generator | None, count: int) -> np.ndarray:
    device = "cpu" if generator is None else generator.device
    seeds = torch.randint(-(2**63), 2**63 - 1, (count,), generator=generator, device=device)
    return seeds.cpu().numpy().view(np.uint64)
