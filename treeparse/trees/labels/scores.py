"""The label scores of a flat batch: reduced over labels, or read off at the arcs of given trees."""

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from treeparse.batch import readable_without_sync
from treeparse.trees.labels import sums
from treeparse.trees.labels.sources import LabelSource
from treeparse.trees.labels.trees import TreeMarginals
from treeparse.trees.parts import power
from treeparse.trees.randomness import uniforms

SALT = 0x6C6162656C73  # sets the random numbers for labels apart from those for trees


class FlatLabels:
    """Log weights of labels ``(B, n+1, n+1, L)`` in any dtype, float64 once they are read.

    Args:
        source: the scores; what stands where no arc is, is ignored.
        is_arc: which arcs may be in a tree, ``(B, n+1, n+1)`` bool.
    """

    def __init__(self, source: LabelSource, is_arc: Tensor) -> None:
        self.source, self.is_arc = source, is_arc
        self.count = source.shape[-1]

    @property
    def device(self) -> torch.device:
        return self.source.device

    def reduce(self, function: Callable[..., Tensor], *others: Tensor) -> Tensor:
        """A function of label scores, and of others ``(B, n+1, n+1, ...)``, by slices of heads."""
        return sums.by_heads(function, self.is_arc, [self.source], others)

    @cached_property
    @torch.enable_grad()  # a cached value must have its graph even if first used without one
    def log_sums(self) -> Tensor:
        """Log of the summed weight of every arc's labels ``(B, n+1, n+1)``."""
        known = self.source.log_sums(self.is_arc)
        return self.reduce(sums.log_sum) if known is None else known

    def best(self) -> Tensor:
        """The score of every arc's best label ``(B, n+1, n+1)``, a constant."""
        return self.reduce(lambda scores: scores.amax(-1)).detach()

    def expected_entropy(self, marginals: Tensor) -> Tensor:
        """The entropy of the labels of a random tree given its arcs ``(B,)``, from the arcs' marginals."""
        return sums.expected(sums.entropy, marginals, [self.source])

    def expected_difference(self, marginals: Tensor) -> Tensor:
        """In how many of the arcs that two random trees share their labels differ ``(B,)``, from the marginals."""
        return sums.expected(sums.difference, marginals.square(), [self.source])

    def expected_code_length(self, q: "FlatLabels", marginals: Tensor) -> Tensor:
        """The expected code length of these labels under q's scores ``(B,)``, from the arcs' marginals."""
        return sums.expected(sums.code_length, marginals, [self.source, q.source])

    def forbidden_by(self, q: "FlatLabels") -> Tensor:
        """Arcs ``(B, n+1, n+1)`` bool with a label that q forbids and these scores do not."""
        if self.source.support is not None and self.source.support == q.source.support:
            return torch.zeros_like(self.is_arc)

        def some_label(own: Tensor, other: Tensor) -> Tensor:
            return ((own > -torch.inf) & (other == -torch.inf)).any(-1)

        return sums.by_heads(some_label, self.is_arc, [self.source, q.source])

    def power(self, order: float) -> Tensor:
        """Log of the summed label weights to a power ``(B, n+1, n+1)``."""
        return self.reduce(lambda scores: sums.log_sum(power(scores, order)))

    def log_probs(self) -> Tensor:
        """Log probabilities of all labels given their arcs ``(B, n+1, n+1, L)``, float64 constants."""
        return self.reduce(sums.log_probs).detach()

    def log_probs_of_trees(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Log probabilities ``(S, B)`` of trees' labels given their arcs, from ``(S, B, n+1)`` both.

        Words without a head count nothing.
        """
        return self.log_probs_of_arcs(heads, labels).sum(-1)

    def log_probs_of_arcs(self, heads: Tensor, labels: Tensor) -> Tensor:
        """The same of each arc by itself ``(S, B, n+1)``; 0 where there is no head."""
        places = heads.clamp(0, heads.shape[-1] - 1).unsqueeze(2)
        totals = self.log_sums.expand(len(heads), *self.log_sums.shape).gather(2, places).squeeze(2)
        values = self.of_labeled_trees(heads, labels) - torch.where(heads >= 0, totals, 0.0)
        return torch.where(heads >= 0, values, 0.0)

    def tree_marginals(self, marginals: Tensor, heads: Tensor, labels: Tensor, label_power: float) -> TreeMarginals:
        """Return the marginals of the arcs, and of the labelled arcs, of trees ``(S, B, n+1)``: constants.

        Args:
            marginals: of all arcs ``(B, n+1, n+1)``.
            heads: heads of the trees.
            labels: labels of the trees.
            label_power: P(label | arc) is taken to this power and normalised.
        """
        index = heads.clamp(0, heads.shape[-1] - 1).unsqueeze(2)
        values = marginals.expand(len(heads), *marginals.shape).gather(2, index).squeeze(2)
        arcs = torch.where((heads >= 0) & (heads < heads.shape[-1]), values, 0.0)
        known = (arcs > 0) & (labels >= 0) & (labels < self.count)
        log_probs = self._log_probs_to_power(torch.where(known, heads, -1), labels, label_power)
        return TreeMarginals(arcs, torch.where(known, arcs * log_probs.exp(), 0.0))

    def _log_probs_to_power(self, heads: Tensor, labels: Tensor, power: float) -> Tensor:
        """Return log probabilities ``(S, B, n+1)`` of labels given their arcs, after a power of the label weights."""
        if power == 1:
            return self.log_probs_of_arcs(heads, labels).detach()
        chosen = labels.clamp(0, self.count - 1).unsqueeze(-1)
        trees = zip(heads, chosen, strict=True)  # one at a time, because the scores of all labels are in memory
        rows = [sums.log_probs(self.of_trees(tree) * power).gather(-1, label).squeeze(-1) for tree, label in trees]
        return torch.stack(rows).detach()

    def of_items(self, items: Tensor) -> "FlatLabels":
        """The scores of some items ``(I,)``, in order."""
        if len(items) == len(self.is_arc):
            return self
        return FlatLabels(self.source.of_items(items), self.is_arc[items])

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """The scores of arcs ``(A, L)``."""
        return self.source.at(item, head, dependent).to(torch.float64)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        """The score of one label each of arcs ``(A,)``."""
        return self.source.at_labels(item, head, dependent, label).to(torch.float64)

    def of_trees(self, heads: Tensor) -> Tensor:
        """The scores ``(B, n+1, L)`` of the arcs of one tree an item ``(B, n+1)``; 0 at what is no word."""
        found = self.source.at(*_arcs_of(heads.unsqueeze(0))).unflatten(0, heads.shape)
        return sums.real_scores(heads >= 0, found)

    def of_labeled_trees(self, heads: Tensor, labels: Tensor) -> Tensor:
        """The scores of labelled trees' arcs, ``(S, B, n+1)`` all three; 0 at what is no word."""
        chosen = labels.clamp(0, self.count - 1).flatten()
        found = self.source.at_labels(*_arcs_of(heads), chosen).reshape(heads.shape)
        return torch.where(heads >= 0, found, 0.0).to(torch.float64)

    def sorted_of(self, item: Tensor, head: Tensor, dependent: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and labels of arcs ``(A, L)``, best first; of equal labels the lowest first. Constants."""
        return self.at(item, head, dependent).detach().sort(dim=-1, descending=True, stable=True)

    def sample_of_trees(self, heads: Tensor, seeds: Tensor) -> Tensor:
        """A label for every word of trees ``(S, B, n+1)``, drawn given its arc, by a seed an item ``(B,)``.

        Labels are drawn where the scores are, the same ones on any device but where a draw falls within rounding of
        the border between two; nothing waits for a device.
        """
        step = max(1, sums.SLICE // (max(heads[0].numel(), 1) * self.count)) if len(heads) else 1
        numbers = uniforms(seeds, len(heads), heads.shape[-1], salt=SALT, device=heads.device).transpose(0, 1)
        parts = zip(heads.split(step), numbers.split(step), strict=True)
        return torch.cat([self._draw_labels(*part) for part in parts]) if len(heads) else heads.clone()

    def _draw_labels(self, heads: Tensor, numbers: Tensor) -> Tensor:
        """``sample_of_trees`` for so many trees that their label scores fit in memory; numbers ``(S, B, n+1)``."""
        item, head, node = _arcs_of(heads)
        if readable_without_sync(heads):  # most arcs are in many trees: their labels' scores are looked up once
            size = heads.shape[-1]
            arcs, which = ((item * size + head) * size + node).unique(return_inverse=True)
            bounds = self._bounds(arcs // (size * size), arcs // size % size, arcs % size)[which]
        else:
            bounds = self._bounds(item, head, node)
        last = (bounds < bounds[:, -1:]).sum(-1)  # the last possible label, should rounding lead past it
        chosen = (bounds <= (numbers.flatten() * bounds[:, -1]).unsqueeze(-1)).sum(-1)
        return torch.where(heads >= 0, torch.minimum(chosen, last).reshape(heads.shape), -1)

    def _bounds(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """The summed probabilities of the labels of arcs up to each of them ``(A, L)``."""
        return sums.log_probs(self.at(item, head, dependent)).exp().cumsum(-1)

    def labelings(self, trees: Tensor, item: int, words: int) -> tuple[Tensor, Tensor]:
        """All pairs of an item's trees ``(trees, n+1)`` and labels that are allowed on their arcs."""
        choices = torch.cartesian_prod(*[torch.arange(self.count)] * words).reshape(-1, words)
        labels = torch.nn.functional.pad(choices, (1, trees.shape[-1] - 1 - words), value=-1).to(trees.device)
        heads, labels = trees.repeat_interleave(len(labels), 0), labels.repeat(len(trees), 1)
        one = self.of_items(torch.tensor([item], device=self.device))
        allowed = (one.of_labeled_trees(heads.unsqueeze(1), labels.unsqueeze(1)) > -torch.inf).all(-1).squeeze(1)
        return heads[allowed], labels[allowed]


def _arcs_of(heads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Item, head and dependent of every arc of trees ``(S, B, n+1)``.

    Those of what is no word, too: batches then come in few shapes, for which the CPU's kernels are compiled.
    """
    size = heads.shape[-1]
    item = torch.arange(heads.shape[1], device=heads.device).unsqueeze(-1)
    node = torch.arange(size, device=heads.device)
    item, node = (place.expand(heads.shape).flatten() for place in (item, node))
    return item, heads.clamp(0, size - 1).flatten(), node
