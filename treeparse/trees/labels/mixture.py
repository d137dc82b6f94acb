"""Mixtures of distributions over labelled trees."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Size, Tensor

from treeparse.errors import TreeparseError
from treeparse.lazy import cached_property
from treeparse.names import Decoder
from treeparse.trees.checks import BROADCASTING, fits
from treeparse.trees.labels import sums
from treeparse.trees.labels.crf import LabeledCRF
from treeparse.trees.labels.sources import LabelSource, at_label
from treeparse.trees.labels.trees import LabeledPair, LabeledTree, TreeMarginals
from treeparse.trees.parts import Parts
from treeparse.trees.randomness import Generators, item_seeds, uniforms
from treeparse.trees.tree_lists import DistinctLabeledTrees

SALT = 0x6D697874757265  # gives the draws of components another stream than the draws of trees


class Mixture:
    """``P(tree) = sum_m w_m P_m(tree)``: draw one of several distributions, then a labelled tree from it.

    The support has every tree that a component allows. A tree's log probability is not a sum over its arcs, so a
    mixture has no log partition, best tree or temperature. Log probabilities, samples, marginals, which are the mean of
    the components' marginals, and the tree of the highest expected LAS are exact (Kuncoro et al. 2016).

    Args:
        components: distributions over the same labelled trees, as ``check_alike`` requires.
        log_weights: ``(M, *batch)`` of the components, in nats up to a constant an item; dimensions of size 1
            broadcast, and None gives all components the same weight.

    Attributes:
        shape: ``(*batch, n+1, n+1, L)``, one number a labelled arc.
        device: the device of the components.

    Raises:
        TreeparseError: as ``check_alike`` does, and for weights of another shape.
    """

    shape: Size
    device: torch.device

    def __init__(self, components: Sequence[LabeledCRF], log_weights: Tensor | None = None) -> None:
        self.components: tuple[LabeledCRF, ...] = check_alike(components)
        first = self.components[0]
        self.shape, self.device = first.shape, first.device
        shape = (len(self.components), *first.batch_shape)
        weights = first.scores.new_zeros(shape) if log_weights is None else log_weights
        if not fits(tuple(weights.shape), shape):
            raise TreeparseError(
                f"The log weights of a mixture must have the shape (components, *batch), here {shape}, got "
                f"{tuple(weights.shape)}: {BROADCASTING}."
            )
        self.log_weights: Tensor = weights.double().expand(shape).log_softmax(0)

    def as_crf(self, purpose: str) -> LabeledCRF:
        """Raise, because a tree's log probability is not a sum over its arcs; ``purpose``, a plural, begins the error.

        Raises:
            TreeparseError: always.
        """
        raise TreeparseError(
            f"{purpose} need a tree's log probability to be a sum over its arcs, got a mixture, as of models combined "
            "by marginals: combine them by scores or log_probs."
        )

    def conditioned(self, condition: Callable[[LabeledCRF], LabeledCRF]) -> "Mixture":
        """Return the mixture given that the tree is in the support of ``condition`` of its components.

        ``condition`` may forbid trees and must not change the scores of the others. A component's weight is multiplied
        by the probability of the trees that remain.
        """
        return self._with_trees_of([condition(p) for p in self.components])

    def _with_trees_of(self, components: Sequence[LabeledCRF]) -> "Mixture":
        """Return the mixture of components with other supports, where common trees keep their scores."""
        pairs = zip(components, self.components, strict=True)
        shifts = torch.stack([some.log_partition - every.log_partition for some, every in pairs])
        return Mixture(components, self.log_weights + shifts)

    def for_decoder(self, decoder: Decoder) -> "Mixture":
        """Return the mixture over the trees among which a decoder searches.

        A component's weight is multiplied by the ratio of the weights of its new and its old trees.
        """
        components = [p.for_decoder(decoder) for p in self.components]
        return self if components[0] is self.components[0] else self._with_trees_of(components)

    def decode(self, decoder: Decoder) -> LabeledTree:
        """Return the tree of the highest expected LAS among those that a decoder searches, whichever the decoder."""
        return self.expected.for_decoder(decoder).mode

    @property
    def _weights(self) -> Tensor:
        """The components' weights for each item of the flat batch ``(M, B)``."""
        return self.log_weights.exp().reshape(len(self.components), -1)

    @cached_property
    def expected(self) -> LabeledCRF:
        """The distribution, a constant, where a tree scores its expected number of words with right head and label.

        The scores of labelled arcs are the mixture's marginals, so its best tree has the highest expected LAS.
        """
        first = self.components[0]
        weights = self._weights.unsqueeze(-1).unsqueeze(-1)
        flats = [p.arcs.flat for p in self.components]
        marginals = [weight * flat.marginals.detach() for weight, flat in zip(weights, flats, strict=True)]
        possible = torch.stack([flat.arcs > -torch.inf for flat in flats]).any(0)
        arcs = torch.where(possible, torch.stack(marginals).sum(0), -torch.inf)
        others = zip(*(p.base.parts.neutral().others for p in self.components), strict=True)
        allowed = (torch.stack(scores).amax(0) for scores in others)
        base = first.base.with_scores(Parts((arcs.reshape(first.scores.shape), *allowed)))
        return LabeledCRF(base, MixtureLabels([p.labels.source for p in self.components], marginals))

    @cached_property
    def marginals(self) -> Tensor:
        """The probability of every labelled arc ``(*batch, n+1, n+1, L)``."""
        weights = self.log_weights.exp().reshape(*self.log_weights.shape, 1, 1, 1)
        return torch.stack([weight * p.marginals for weight, p in zip(weights, self.components, strict=True)]).sum(0)

    def minimum_risk(self) -> LabeledTree:
        """Return heads and labels ``(*batch, n+1)`` of the labelled tree with the highest expected LAS ([Exp] §6.1).

        Each of its arcs is in a tree of some component. If components forbid different arcs, the tree may be in the
        support of none.
        """
        return self.expected.mode

    def log_prob(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return log probabilities ``(*sample, *batch)`` of labelled trees ``(*sample, *batch, n+1)``, -inf for others.

        Arguments are as for ``LabeledCRF.log_prob``.
        """
        values = torch.stack([p.log_prob(value, labels) for p in self.components])
        samples = [1] * (values.dim() - self.log_weights.dim())
        weights = self.log_weights.reshape(len(values), *samples, *self.log_weights.shape[1:])
        return (values + weights).logsumexp(0)

    def log_prob_of_scored(self, heads: Tensor, labels: Tensor, scores: Tensor) -> Tensor:
        """Return ``log_prob``, because the score of a tree does not determine its probability."""
        return self.log_prob(heads, labels)

    def score(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return a tree's expected number of words with right head and label; -inf for no tree."""
        return self.expected.score(value, labels)

    def sample(self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None) -> LabeledTree:
        """Draw exact, independent samples: heads and labels ``(*sample, *batch, n+1)``; generators as for ``TreeCRF``.

        Each component draws the full number of samples, and each result takes one component's sample.
        """
        shape = Size(sample_shape)
        seeds = item_seeds(generator, self.log_weights[0].numel())
        chosen = self._choices(seeds, shape.numel()).reshape(1, *shape, *self.log_weights.shape[1:], 1)
        heads, labels = zip(*(p.sample(shape, generator=generator) for p in self.components), strict=True)
        pairs = (torch.stack(trees) for trees in (heads, labels))
        return LabeledTree(*(trees.take_along_dim(chosen, 0).squeeze(0) for trees in pairs))

    def _choices(self, seeds: Tensor, count: int) -> Tensor:
        """Draw the component of each sample ``(count, B)``."""
        numbers = uniforms(seeds, count, 1, salt=SALT, device=self.log_weights.device).squeeze(-1).T
        bounds = self._weights.cumsum(0).unsqueeze(1)
        last = (bounds < bounds[-1:]).sum(0)  # the last possible component, because rounding may lead past it
        return torch.minimum((bounds <= numbers * bounds[-1]).sum(0), last)

    def sample_without_replacement(self, k: int, *, generator: Generators = None) -> DistinctLabeledTrees:
        """Draw different labelled trees: heads, labels ``(k, *batch, n+1)``, log probabilities and keys, in order.

        Pairs of a component and a tree are drawn without replacement, k of each component; a later pair of the same
        tree is dropped. The greatest key of a tree's pairs has the law of the tree's own key. Arguments and results are
        as for ``TreeCRF``.
        """
        lists = [p.sample_without_replacement(k, generator=generator) for p in self.components]
        rows = torch.cat([torch.cat(drawn[:2], -1) for drawn in lists])
        keys = torch.cat([drawn.keys + weights for drawn, weights in zip(lists, self.log_weights, strict=True)])
        indices = _first_of_each(rows, keys, k)
        missing, indices = indices < 0, indices.clamp_min(0)
        rows = rows.take_along_dim(indices.unsqueeze(-1), 0).masked_fill(missing.unsqueeze(-1), -1)
        heads, labels = rows.chunk(2, -1)
        values = self.log_prob(heads, labels), keys.take_along_dim(indices, 0)
        return DistinctLabeledTrees(heads, labels, *(value.masked_fill(missing, -torch.inf) for value in values))

    def arc_marginals(self) -> Tensor:
        """Return the probability of every arc, whatever its label, ``(B, n+1, n+1)``: float64 constants."""
        weights = self._weights.unsqueeze(-1).unsqueeze(-1)
        return torch.stack([w * p.arc_marginals() for w, p in zip(weights, self.components, strict=True)]).sum(0)

    def tree_marginals(self, heads: Tensor, labels: Tensor, label_powers: Sequence[float] = (1.0,)) -> TreeMarginals:
        """Return the marginals of the arcs, and of the labelled arcs, of trees ``(*sample, *batch, n+1)``: constants.

        Arguments are as for ``LabeledCRF.tree_marginals``, with one power for each component or one for all.
        """
        weights = self.log_weights.exp().unsqueeze(-1)
        powers = label_powers if len(label_powers) > 1 else [*label_powers] * len(self.components)
        pairs = zip(self.components, powers, strict=True)
        columns = zip(*(p.tree_marginals(heads, labels, (power,)) for p, power in pairs), strict=True)
        means = (torch.stack([w * each for w, each in zip(weights, part, strict=True)]).sum(0) for part in columns)
        return TreeMarginals(*means)

    def entropy(self) -> None:
        """Return None, because no sum over arcs gives the entropy of a mixture."""

    def expected_gradient(self) -> None:
        """Return None, because a mixture has no scores of arcs to take a gradient in."""


class MixtureLabels:
    """The marginals of labelled arcs under a mixture minus the marginals of their arcs, at most 0; constants.

    -inf for a label that no component allows on an arc.

    Args:
        sources: the label scores of the components.
        marginals: ``(B, n+1, n+1)`` for each component, the arcs' marginals times the component's weight.
    """

    sources: tuple[LabelSource, ...]
    marginals: tuple[Tensor, ...]
    shape: Size
    device: torch.device

    dtype: torch.dtype = torch.float64
    bound: float | None = 0.0
    support = None
    requires_grad = False

    def __init__(self, sources: Sequence[LabelSource], marginals: Sequence[Tensor]) -> None:
        self.sources, self.marginals = tuple(sources), tuple(marginals)
        self.shape, self.device = sources[0].shape, sources[0].device
        self.resolution: float = max(source.resolution for source in sources)

    def from_heads(self, first: int, last: int) -> Tensor:
        return self._mixed(
            lambda source: source.from_heads(first, last), [marginals[:, first:last] for marginals in self.marginals]
        )

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.at(item, head, dependent)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._mixed(
            lambda source: source.at(item, head, dependent),
            [marginals[item, head, dependent] for marginals in self.marginals],
        )

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return at_label(self.at(item, head, dependent), label)

    def log_sums(self, arcs: Tensor) -> None:
        return None

    def of_items(self, items: Tensor) -> "MixtureLabels":
        return MixtureLabels(
            [source.of_items(items) for source in self.sources], [marginals[items] for marginals in self.marginals]
        )

    def _mixed(self, scores_of: Callable[[LabelSource], Tensor], marginals: Sequence[Tensor]) -> Tensor:
        """Mix the sources' probabilities of the labels of some arcs, whose weighted marginals are ``marginals``."""
        probs, possible = torch.zeros((), device=self.device), torch.zeros((), dtype=torch.bool, device=self.device)
        for source, weights in zip(self.sources, marginals, strict=True):
            log_probs = sums.log_probs(scores_of(source).detach().double())
            probs = probs + weights.unsqueeze(-1) * log_probs.exp()
            possible = possible | (log_probs > -torch.inf)
        arcs = torch.stack(list(marginals)).sum(0).unsqueeze(-1)
        return torch.where(possible, (probs - arcs).clamp_max(0.0), -torch.inf)


def check_alike(distributions: Sequence[LabeledCRF]) -> tuple[LabeledCRF, ...]:
    """Return the distributions; raise unless they are one or more over the same labelled trees.

    They must have the same kind of trees, with one root or many, batch shape, lengths and number of labels.
    """
    if not distributions:
        raise TreeparseError("To combine distributions, one or more are needed, got none.")
    first, *others = distributions
    for p in others:
        first.comparable(p)
        if p.kind_of_trees != first.kind_of_trees:
            raise TreeparseError(
                "Distributions to combine must be over the same trees, got different trees, "
                f"{first.kind_of_trees} and {p.kind_of_trees}."
            )
    return tuple(distributions)


def _first_of_each(rows: Tensor, keys: Tensor, k: int) -> Tensor:
    """Return indices ``(k, *batch)`` of the first k different rows ``(N, *batch, R)`` by descending key, then -1."""
    items = keys.shape[1:].numel()
    indices = torch.full((k, items), -1, device=keys.device)
    orders = keys.reshape(len(keys), items).sort(dim=0, descending=True, stable=True).indices
    counts = (keys > -torch.inf).sum(0).flatten().tolist()
    rows = rows.reshape(len(rows), items, rows.shape[-1])
    for item, count in enumerate(counts):
        order = orders[:count, item]
        _, first = np.unique(rows[order, item].cpu().numpy(), axis=0, return_index=True)
        ranks = torch.from_numpy(np.sort(first)[:k]).to(order.device)
        indices[: len(ranks), item] = order[ranks]
    return indices.reshape(k, *keys.shape[1:])
