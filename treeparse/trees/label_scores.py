"""The label scores of a flat batch: reduced over labels, or read off at the arcs of given trees."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from treeparse.kernels.random import uniforms
from treeparse.trees import label_sums
from treeparse.trees.expectations import power

SALT = 0x6C6162656C73  # sets the random numbers for labels apart from those for trees


class LabelScores:
    """Log weights of labels ``(B, n+1, n+1, L)`` in any dtype, float64 once they are read.

    Args:
        values: the scores; what stands where no arc is, is ignored.
        is_arc: where arcs are, ``(B, n+1, n+1)`` bool.
    """

    def __init__(self, values: Tensor, is_arc: Tensor) -> None:
        self.values, self.is_arc = values, is_arc
        self.count = values.shape[-1]

    def reduce(self, function: Callable[..., Tensor], *others: Tensor) -> Tensor:
        """A function of label scores, and of others ``(B, n+1, n+1, ...)``, by slices of heads."""
        return label_sums.by_heads(function, self.is_arc, [self.values], others)

    @cached_property
    @torch.enable_grad()  # a cached value must have its graph even if first used without one
    def log_sums(self) -> Tensor:
        """Log of the summed weight of every arc's labels ``(B, n+1, n+1)``."""
        return self.reduce(label_sums.log_sum)

    def code_length(self, q: "LabelScores") -> Tensor:
        """Expected code length of every arc's label under q's scores ``(B, n+1, n+1)``."""
        return label_sums.by_heads(label_sums.code_length, self.is_arc, [self.values, q.values])

    def forbidden_by(self, q: "LabelScores") -> Tensor:
        """Arcs ``(B, n+1, n+1)`` bool with a label that q forbids and these scores do not."""
        return self.is_arc & ((self.values > -torch.inf) & (q.values == -torch.inf)).any(-1)

    def power(self, order: float) -> Tensor:
        """Log of the summed label weights to a power ``(B, n+1, n+1)``."""
        return self.reduce(lambda scores: label_sums.log_sum(power(scores, order)))

    def log_probs(self) -> Tensor:
        """Log probabilities of all labels given their arcs ``(B, n+1, n+1, L)``, float64 constants."""
        return self.reduce(label_sums.log_probs).detach()

    def log_probs_of_trees(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Log probabilities ``(S, B)`` of trees' labels given their arcs, from ``(S, B, n+1)`` both; constants."""
        places = heads.clamp_min(0).unsqueeze(2)
        sums = self.log_sums.detach().expand(len(heads), *self.log_sums.shape).gather(2, places).squeeze(2)
        return (self.of_labeled_trees(heads, labels).detach() - torch.where(heads >= 0, sums, 0.0)).sum(-1)

    def of_items(self, items: np.ndarray) -> "LabelScores":
        """The scores of some items ``(I,)``, in order."""
        return self if len(items) == len(self.values) else LabelScores(self.values[items], self.is_arc[items])

    def of_trees(self, heads: Tensor) -> Tensor:
        """The scores ``(B, n+1, L)`` of the arcs of one tree an item ``(B, n+1)``; 0 at what is no word."""
        places = heads.clamp_min(0)[:, None, :, None].expand(-1, 1, -1, self.count)
        return label_sums.real_scores(heads >= 0, self.values.gather(1, places).squeeze(1))

    def sorted_of(self, item: Tensor, head: Tensor, dependent: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and labels of arcs ``(A, L)``, best first; of equal labels the lowest first. Constants."""
        scores = self.values.detach()[item, head, dependent]
        return scores.to(torch.float64).sort(dim=-1, descending=True, stable=True)

    def of_labeled_trees(self, heads: Tensor, labels: Tensor) -> Tensor:
        """The scores of labelled trees' arcs, ``(S, B, n+1)`` all three; 0 at what is no word."""
        size = heads.shape[-1]
        arcs = heads.clamp(0, size - 1) * size + torch.arange(size, device=heads.device)
        places = (arcs * self.count + labels.clamp(0, self.count - 1)).transpose(0, 1)
        found = self.values.flatten(1).gather(1, places.flatten(1)).reshape(places.shape).transpose(0, 1)
        return torch.where(heads >= 0, found, 0.0).to(torch.float64)

    def sample_of_trees(self, heads: Tensor, seeds: np.ndarray) -> Tensor:
        """A label for every word of trees ``(S, B, n+1)``, drawn given its arc, by a seed an item ``(B,)`` uint64."""
        step = max(1, label_sums.SLICE // (max(heads[0].numel(), 1) * self.count)) if len(heads) else 1
        draws = uniforms(seeds, len(heads), heads.shape[-1], salt=SALT)
        numbers = torch.from_numpy(draws).to(heads.device).transpose(0, 1)
        parts = zip(heads.split(step), numbers.split(step), strict=True)
        return torch.cat([self._draw_labels(*part) for part in parts]) if len(heads) else heads.clone()

    def _draw_labels(self, heads: Tensor, numbers: Tensor) -> Tensor:
        """``sample_of_trees`` for so many trees that their label scores fit in memory; numbers ``(S, B, n+1)``."""
        samples, items, size = heads.shape
        arcs = heads.clamp_min(0) * size + torch.arange(size, device=heads.device)
        arcs = arcs.transpose(0, 1).reshape(items, samples * size)
        found = self.values.flatten(1, 2).gather(1, arcs.unsqueeze(-1).expand(-1, -1, self.count))
        scores = found.reshape(items, samples, size, self.count).transpose(0, 1)
        bounds = label_sums.log_probs(label_sums.real_scores(heads >= 0, scores)).exp().cumsum(-1)
        chosen = (bounds <= numbers.unsqueeze(-1) * bounds[..., -1:]).sum(-1)
        last = (bounds < bounds[..., -1:]).sum(-1)  # the last possible one, should rounding lead past it
        return torch.where(heads >= 0, torch.minimum(chosen, last), -1)

    def labelings(self, trees: Tensor, item: int, words: int) -> tuple[Tensor, Tensor]:
        """All pairs of an item's trees ``(trees, n+1)`` and labels that are allowed on their arcs."""
        choices = torch.cartesian_prod(*[torch.arange(self.count)] * words).reshape(-1, words)
        labels = torch.nn.functional.pad(choices, (1, trees.shape[-1] - 1 - words), value=-1).to(trees.device)
        heads, labels = trees.repeat_interleave(len(labels), 0), labels.repeat(len(trees), 1)
        one = LabelScores(self.values[item : item + 1], self.is_arc[item : item + 1])
        allowed = (one.of_labeled_trees(heads.unsqueeze(1), labels.unsqueeze(1)) > -torch.inf).all(-1).squeeze(1)
        return heads[allowed], labels[allowed]
