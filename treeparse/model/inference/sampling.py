"""`SampledLists`: lists of labelled trees drawn at random."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Generator, Tensor

from treeparse.errors import TreeparseError
from treeparse.model.inference.lists import ListFinder, TreeLists, as_crf, list_length
from treeparse.model.inference.ruled import DistinctDraws, IndependentDraws, ItemList, RuledBatch, accepted_lists
from treeparse.trees import LabeledCRF, LabeledDistribution

LOWEST_TEMPERATURE = 1e-6  # below it, rounding of scores over the temperature would show in the probabilities


@dataclass(frozen=True)
class SampledLists(ListFinder):
    """Draw k labelled trees with probabilities proportional to exp(score / temperature), in the order of the draws.

    The decoder "projective" draws from projective trees, any other from all. Log probabilities are those of the draws;
    scores do not depend on the temperature.

    Attributes:
        replacement: whether a tree can be drawn again.
        seed: the seed and a sentence's index fix the sentence's trees.
        first: the index of the first sentence, or the indices of all.
        temperature: 1 draws from the model's own distribution.
    """

    replacement: bool = True
    seed: int = 0
    first: int | Sequence[int] = 0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        lowest = self.first if isinstance(self.first, int) else min(self.first, default=0)
        if min(self.seed, lowest) < 0:
            raise TreeparseError(f"The seed and the first index must be 0 or more, not {self.seed} and {lowest}.")
        if not LOWEST_TEMPERATURE <= self.temperature < math.inf:
            raise TreeparseError(
                f"The temperature must be finite and at least {LOWEST_TEMPERATURE}, got {self.temperature}: 1 draws "
                "from the model's distribution, and towards 0 only the best tree remains, which `predict` returns."
            )

    def check_for(self, sentences: int) -> None:
        if not isinstance(self.first, int) and len(self.first) != sentences:
            raise TreeparseError(
                f"{sentences} sentences came with {len(self.first)} indices: give one for each sentence."
            )

    def __call__(self, p: LabeledDistribution, indices: Sequence[int]) -> TreeLists:
        k = list_length(self.k, p, different=not self.replacement)
        p = p.for_decoder(self.decoder)
        drawn_from = p if self.temperature == 1 else self._tempered(p)
        generators = self._generators(indices)
        if self.replacement:
            trees = drawn_from.sample((k,), generator=generators)
        else:
            trees = drawn_from.sample_without_replacement(k, generator=generators)[:2]
        return self._lists(p, drawn_from, *trees)

    def ruled(self, p: LabeledCRF, indices: Sequence[int], batch: RuledBatch) -> TreeLists:
        """Draw trees until k of them satisfy the rules; the rounds do not depend on k."""
        p = p.for_decoder(self.decoder)
        drawn_from = p if self.temperature == 1 else self._tempered(p)
        most = list_length(batch.search.opened + self.k, p, different=not self.replacement)
        drawing = (
            IndependentDraws(drawn_from, self._generators(indices))
            if self.replacement
            else DistinctDraws(drawn_from, lambda items: self._generators([indices[item] for item in items]), most)
        )
        lists = accepted_lists(drawing, self.k, batch)
        trees = TreeLists.of([ItemList(rows, []) for rows in lists], p.log_partition, p.scores.shape[-1])
        return self._lists(p, drawn_from, *trees[:2])

    def _lists(
        self, p: LabeledDistribution, drawn_from: LabeledDistribution, heads: Tensor, labels: Tensor
    ) -> TreeLists:
        """Lists of the trees ``(K, B, n+1)`` drawn from ``drawn_from``, scored by ``p``."""
        scores = p.score(heads, labels)
        log_probs = drawn_from.log_prob_of_scored(heads, labels, scores / self.temperature).clamp_max(0.0)
        return TreeLists(heads, labels, scores, log_probs)

    def _generators(self, indices: Sequence[int]) -> list[Generator]:
        """Return the generator of each sentence, which depends only on the seed and the sentence's seed index."""
        first = self.first
        seed_indices = [first + index if isinstance(first, int) else first[index] for index in indices]
        sequences = [np.random.SeedSequence(self.seed, spawn_key=(index,)) for index in seed_indices]
        return [Generator().manual_seed(int(each.generate_state(1, np.uint64)[0])) for each in sequences]

    def _tempered(self, p: LabeledDistribution) -> LabeledCRF:
        """Return the distribution at the temperature."""
        return as_crf(p, f"Temperatures other than 1, here {self.temperature},").tempered(self.temperature)
