"""Samples of a distribution over unlabelled trees, and where their randomness comes from."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Generator, Size, Tensor

from treeparse.core import TreeparseError
from treeparse.trees import samplers
from treeparse.trees.best import BestTrees
from treeparse.trees.checks import check_count
from treeparse.trees.label_scores import LabelScores
from treeparse.trees.samplers import DistinctSampler, Family, Sampler

Generators = Generator | Sequence[Generator] | None


class SampledTrees(BestTrees):
    """The part of a distribution over unlabelled trees that draws them."""

    projective: ClassVar[bool] = False
    single_root: bool

    def sample(self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Heads ``(*sample, *batch, n+1)`` of exact, independent samples.

        One seed an item is drawn from ``generator``, torch's default one if None; or from one generator an item, in the
        order of the flat batch: then an item's samples do not depend on its batch. Fewer samples by an equal generator
        are the first of more.
        """
        return self._sample_by(item_seeds(generator, self.batch_shape.numel()), Size(sample_shape))

    def sample_without_replacement(
        self, k: int, *, generator: Generators = None, method: DistinctSampler | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Different trees in the order drawn, each from all that are left: heads, log probabilities and keys.

        Keys are the log probabilities of all trees plus independent Gumbel noise, and the trees those of the k largest:
        what estimators without replacement need (``treeparse.trees.estimators``; Kool et al. 2019, *Stochastic beams
        and where to find them*). An item with fewer than k trees has each of them once; its probabilities then sum
        to 1.

        Args:
            k: the number of trees an item.
            generator: as for ``sample``.
            method: "repeat" draws with replacement and drops repeats, until they dominate; "trie" keeps what remains
                under every prefix ([Unb] §5); "beam" is a stochastic beam search on the scores' device, for
                non-projective trees. All have the same law, but not the same trees for a seed. None takes "repeat" on
                the CPU and for projective trees, otherwise "beam".

        Returns:
            Heads ``(*batch, k, n+1)``, log probabilities ``(*batch, k)`` in nats, and keys ``(*batch, k)``, which
            descend. Past the number of trees heads are -1, log probabilities and keys -inf.

        Raises:
            TreeparseError: unless k is a whole number, 1 or more; for a method that does not exist.
        """
        seeds = item_seeds(generator, self.batch_shape.numel())
        heads, log_probs, keys = self._sample_distinct_by(seeds, k, method)
        return heads, self._round(log_probs), self._round(keys)

    def _sample_by(self, seeds: np.ndarray, shape: Size, sampler: Sampler | None = None) -> Tensor:
        """The samples of seeds ``(B,)`` uint64."""
        heads = samplers.sample_trees(self._family, *self._flat, seeds, shape.numel(), sampler)
        if heads.numel():
            self._require_trees(lambda: heads[:, 0, 1] >= 0)
        return heads.transpose(0, 1).reshape(shape + self.scores.shape[:-1])

    def _sample_distinct_by(
        self, seeds: np.ndarray, k: int, method: DistinctSampler | None, labels: LabelScores | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rows ``(*batch, k, n+1)`` or, with labels, ``(*batch, k, 2n+2)``, log probabilities and keys."""
        samplers.check_distinct_sampler(method, projective=self.projective)
        scores, _ = self._shifted_scores  # differences of large scores keep their digits
        arguments = scores.detach(), self._sums.lengths, seeds, check_count(k)
        rows, log_probs, keys = samplers.sample_distinct_trees(self._family, *arguments, sampler=method, labels=labels)
        self._require_trees(lambda: rows[:, 0, 1] >= 0)
        batch = self.batch_shape
        return tuple(part.reshape(batch + part.shape[1:]) for part in (rows, log_probs, keys))  # pyright: ignore

    @property
    def _family(self) -> Family:
        return Family(self.single_root, self.projective)


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
