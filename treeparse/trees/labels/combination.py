"""Several distributions over labelled trees as one: their product, or their mixture."""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Size, Tensor

from treeparse.errors import NoTreeError, TreeparseError, name_among
from treeparse.lazy import cached_property
from treeparse.names import COMBINATIONS, Combination, Decoder
from treeparse.trees.checks import BROADCASTING, fits
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.labels import label_sums
from treeparse.trees.labels.labeled_crf import LabeledCRF
from treeparse.trees.labels.sources import Arcs, ChangedLabels, LabelSource
from treeparse.trees.parts import Parts
from treeparse.trees.randomness import Generators, item_seeds, uniforms
from treeparse.trees.tree_lists import DrawnLabeledTrees, LabeledPair, LabeledTree, TreeMarginals

SALT = 0x6D697874757265  # gives the draws of components another stream than the draws of trees


class Mixture(TreeDistribution):
    """``P(tree) = sum_m w_m P_m(tree)``: draw one of several distributions, then a labelled tree from it.

    The support has every tree that a component allows. A tree's log probability is not a sum over its arcs, so a
    mixture has no log partition, entropy, divergence, best tree or temperature: these raise. Log probabilities,
    samples, marginals and other expectations, which are means of the components' own, and the tree of the highest
    expected LAS are exact (Kuncoro et al. 2016).

    Args:
        components: distributions over the same labelled trees, as ``check_alike`` requires.
        log_weights: ``(M, *batch)`` of the components, in nats up to a constant an item; dimensions of size 1
            broadcast, and None gives all components the same weight.

    Raises:
        TreeparseError: as ``check_alike`` does, and for weights of another shape.
    """

    has_enumerate_support = False
    has_labels = True

    def __init__(self, components: Sequence[LabeledCRF], log_weights: Tensor | None = None) -> None:
        self.components: tuple[LabeledCRF, ...] = check_alike(components)
        first = self.components[0]
        self.lengths = first.lengths
        super().__init__(first.batch_shape, first.event_shape)
        shape = (len(self.components), *first.batch_shape)
        weights = first.scores.new_zeros(shape) if log_weights is None else log_weights
        if not fits(tuple(weights.shape), shape):
            raise TreeparseError(
                f"The log weights of a mixture must have the shape (components, *batch), here {shape}, got "
                f"{tuple(weights.shape)}: {BROADCASTING}."
            )
        self.log_weights: Tensor = weights.double().expand(shape).log_softmax(0)

    @property
    def shape(self) -> Size:
        """``(*batch, n+1, n+1, L)``, one number a labelled arc."""
        return self.components[0].shape

    @property
    def dtype(self) -> torch.dtype:
        return self.components[0].dtype

    @property
    def kind_of_trees(self) -> str:
        return self.components[0].kind_of_trees

    @property
    def has_sums(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.components))})"

    def __getitem__(self, index: Any) -> "Mixture":
        weights = self.log_weights.reshape(len(self.components), -1)[:, self._positions(index)]
        return Mixture([p[index] for p in self.components], weights)

    def to(self, device: torch.device | str) -> "Mixture":
        return Mixture([p.to(device) for p in self.components], self.log_weights.to(device))

    def expand(self, batch_shape: Any, _instance: Any = None) -> "Mixture":
        """Add leading batch dimensions; memory is shared."""
        shape = self._expanded(batch_shape)
        added = [None] * (len(shape) - len(self.batch_shape))
        return Mixture([p.expand(shape) for p in self.components], self.log_weights[(slice(None), *added)])

    @property
    def batched(self) -> NoReturn:
        """Raise, because a mixture has no sums over all trees."""
        raise _lacking("sums over all trees, such as a log partition, an entropy or a divergence")

    @property
    def mode(self) -> NoReturn:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Raise, because no algorithm finds the best tree of a mixture; ``minimum_risk`` has a formula."""
        raise _lacking("best tree")

    def topk(self, k: int) -> NoReturn:
        """Raise, as ``mode`` does."""
        raise _lacking("list of the best trees")

    def comparable(self, q: TreeDistribution) -> NoReturn:
        """Raise, because a divergence is a sum over all trees."""
        raise _lacking("divergence from another distribution")

    def given(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> "Mixture":
        """Condition on heads and labels, as ``LabeledCRF.given``.

        A component's weight is multiplied by the probability of the trees that remain.
        """
        return self._with_trees_of([p.given(value, labels) for p in self.components])

    def within(self, mask: Tensor) -> "Mixture":
        """Restrict to the trees whose arcs all lie in a mask ``(*batch, n+1, n+1)`` bool; weights as for ``given``."""
        return self._with_trees_of([p.within(mask) for p in self.components])

    def _with_trees_of(self, components: Sequence[LabeledCRF]) -> "Mixture":
        """Return the mixture of components with other supports, where common trees keep their scores.

        A component without a tree has no weight then.

        Raises:
            NoTreeError: no component has a tree of an item.
        """
        found = [*map(_allowing_no_tree, components)]
        pairs = zip(found, self.components, strict=True)
        shifts = [new.log_partition - torch.nan_to_num(old.log_partition, neginf=0.0) for new, old in pairs]
        weights = self.log_weights + torch.stack(shifts)
        if found[0] is not components[0] and bool((weights == -torch.inf).all(0).any()):
            _ = components[0].log_partition  # raises
        return Mixture(found, weights)

    def for_decoder(self, decoder: Decoder) -> "Mixture":
        """Return the mixture over the trees among which a decoder searches.

        A component's weight is multiplied by the ratio of the weights of its new and its old trees.
        """
        components = [p.for_decoder(decoder) for p in self.components]
        return self if components[0] is self.components[0] else self._with_trees_of(components)

    def decode(self, decoder: Decoder) -> LabeledTree:
        """Return the tree of the highest expected LAS among those that a decoder searches, whichever the decoder."""
        return self.expected.for_decoder(decoder).mode

    def _weights(self, axes: int) -> Tensor:
        """The components' weights ``(M, *batch, 1, ...)``, with ``axes`` dimensions of size 1 at the end."""
        return self.log_weights.exp().reshape(*self.log_weights.shape, *[1] * axes)

    def _mean(self, values: Iterable[Tensor], axes: int) -> Tensor:
        """Return the mean of the components' values, which have ``axes`` dimensions after the batch's."""
        pairs = zip(self._weights(axes), values, strict=True)
        return torch.stack([weight * value.double() for weight, value in pairs]).sum(0)

    @cached_property
    def expected(self) -> LabeledCRF:
        """The distribution, a constant, where a tree scores its expected number of words with right head and label.

        The scores of labelled arcs are the mixture's marginals, so its best tree has the highest expected LAS.
        """
        first = self.components[0]
        batches = [p.arcs.batched for p in self.components]
        weights = self._weights(0).reshape(len(self.components), -1, 1, 1)
        marginals = [weight * trees.marginals.detach() for weight, trees in zip(weights, batches, strict=True)]
        possible = torch.stack([trees.arcs > -torch.inf for trees in batches]).any(0)
        arcs = torch.where(possible, torch.stack(marginals).sum(0), -torch.inf)
        others = zip(*(p.base.parts.neutral().others for p in self.components), strict=True)
        allowed = (torch.stack(scores).amax(0) for scores in others)
        base = first.base.with_scores(Parts((arcs.reshape(first.scores.shape), *allowed)))
        return LabeledCRF(base, mixture_labels([p.labels.source for p in self.components], marginals))

    @cached_property
    def marginals(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The probability of every labelled arc ``(*batch, n+1, n+1, L)``."""
        return self._round(self._mean((p.marginals for p in self.components), 3))

    def expectation(self, r: Tensor | Parts) -> Tensor:
        """Return expected sums of values of labelled arcs, as ``LabeledCRF.expectation``."""
        values = [p.expectation(r) for p in self.components]
        return self._round(self._mean(values, values[0].dim() - len(self.batch_shape)))

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
        values = torch.stack([p.log_prob(value, labels).double() for p in self.components])
        samples = [1] * (values.dim() - self.log_weights.dim())
        weights = self.log_weights.reshape(len(values), *samples, *self.log_weights.shape[1:])
        return self._round((values + weights).logsumexp(0))

    def log_prob_of_scored(self, heads: Tensor, labels: Tensor, scores: Tensor) -> Tensor:
        """Return ``log_prob``, because the score of a tree does not determine its probability."""
        return self.log_prob(heads, labels)

    def score(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return a tree's expected number of words with right head and label; -inf for no tree."""
        return self._round(self.expected.score(value, labels))

    def _in_support(self, value: LabeledPair) -> Tensor:
        return self.log_prob(value) > -torch.inf

    def sample(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None
    ) -> LabeledTree:
        """Draw exact, independent samples: heads and labels ``(*sample, *batch, n+1)``; generators as for ``TreeCRF``.

        Each component draws the full number of samples, and each result takes one component's sample.
        """
        shape = Size(sample_shape)
        seeds = item_seeds(generator, self.batch_shape.numel())
        chosen = self._choices(seeds, shape.numel()).reshape(1, *shape, *self.batch_shape, 1)
        heads, labels = zip(*(p.sample(shape, generator=generator) for p in self.components), strict=True)
        pairs = (torch.stack(trees) for trees in (heads, labels))
        return LabeledTree(*(trees.take_along_dim(chosen, 0).squeeze(0) for trees in pairs))

    def _choices(self, seeds: Tensor, count: int) -> Tensor:
        """Draw the component of each sample ``(count, B)``."""
        numbers = uniforms(seeds, count, 1, salt=SALT, device=self.device).squeeze(-1).T
        bounds = self._weights(0).reshape(len(self.components), 1, -1).cumsum(0)
        last = (bounds < bounds[-1:]).sum(0)  # the last possible component, because rounding may lead past it
        return torch.minimum((bounds <= numbers * bounds[-1]).sum(0), last)

    def sample_without_replacement(self, k: int, *, generator: Generators = None) -> DrawnLabeledTrees:
        """Draw different labelled trees: heads, labels ``(k, *batch, n+1)``, log probabilities and keys, in order.

        Pairs of a component and a tree are drawn without replacement, k of each component; a later pair of the same
        tree is dropped. The greatest key of a tree's pairs has the law of the tree's own key. Arguments and results are
        as for ``LabeledCRF``.
        """
        lists = [p.sample_without_replacement(k, generator=generator) for p in self.components]
        rows = torch.cat([torch.cat(drawn[:2], -1) for drawn in lists])
        keys = torch.cat(
            [drawn.keys.double() + weights for drawn, weights in zip(lists, self.log_weights, strict=True)]
        )
        indices = _first_of_each(rows, keys, k)
        missing, indices = indices < 0, indices.clamp_min(0)
        rows = rows.take_along_dim(indices.unsqueeze(-1), 0).masked_fill(missing.unsqueeze(-1), -1)
        heads, labels = rows.chunk(2, -1)
        values = self.log_prob(heads, labels), self._round(keys.take_along_dim(indices, 0))
        return DrawnLabeledTrees(heads, labels, *(value.masked_fill(missing, -torch.inf) for value in values))

    def arc_marginals(self) -> Tensor:
        """Return the probability of every arc, whatever its label, ``(*batch, n+1, n+1)``: float64 constants."""
        return self._mean((p.arc_marginals() for p in self.components), 2)

    def tree_marginals(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> TreeMarginals:
        """Return the marginals of the arcs, and of the labelled arcs, of trees, as ``LabeledCRF.tree_marginals``."""
        columns = zip(*(p.tree_marginals(value, labels) for p in self.components), strict=True)
        return TreeMarginals(*(self._mean(part, 1) for part in columns))

    def expected_uas(self, value: Tensor | LabeledPair) -> Tensor:
        """Return the expected share ``(*batch,)`` of right heads, as ``LabeledCRF.expected_uas``."""
        return self._round(self._mean((p.expected_uas(value) for p in self.components), 0))

    def expected_las(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return the expected share ``(*batch,)`` of right heads and labels, as ``LabeledCRF.expected_las``."""
        return self._round(self._mean((p.expected_las(value, labels) for p in self.components), 0))

    def risk(self, value: Tensor | LabeledPair, labels: Tensor | None = None) -> Tensor:
        """Return the expected share ``(*batch,)`` of words with a wrong head or label, 1 - ``expected_las``."""
        return self._round(self._mean((p.risk(value, labels) for p in self.components), 0))


def _allowing_no_tree(p: LabeledCRF) -> LabeledCRF:
    """Return a distribution or, if an item of it has no tree, the same one without validated arguments."""
    try:
        _ = p.log_partition
    except NoTreeError:
        base = p.base.with_scores(p.base.parts, validate_args=False)
        return LabeledCRF(base, p.label_scores, validate_args=False)
    return p


def _lacking(what: str) -> TreeparseError:
    return TreeparseError(
        f"A mixture has no {what}, because a tree's log probability is not a sum over its arcs. It has log_prob, "
        "sample, sample_without_replacement, marginals, expectation, risk and minimum_risk; models combined by scores "
        "or log_probs have everything."
    )


def mixture_labels(sources: Sequence[LabelSource], marginals: Sequence[Tensor]) -> ChangedLabels:
    """Return the marginals of labelled arcs under a mixture minus the marginals of their arcs, at most 0; constants.

    -inf for a label that no component allows on an arc.

    Args:
        sources: the label scores of the components.
        marginals: ``(B, n+1, n+1)`` for each component, the arcs' marginals times the component's weight.
    """

    def mixed(arcs: Arcs, *scores: Tensor) -> Tensor:
        weights = torch.stack([part[arcs] for part in marginals]).unsqueeze(-1)
        log_probs = torch.stack([label_sums.log_probs(part.detach().double()) for part in scores])
        mean = ((weights * log_probs.exp()).sum(0) - weights.sum(0)).clamp_max(0.0)
        return torch.where((log_probs > -torch.inf).any(0), mean, -torch.inf)

    return ChangedLabels(sources, mixed, dtype=torch.float64, bound=0.0, requires_grad=False)


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


LabeledDistribution = LabeledCRF | Mixture


def combined(distributions: Sequence[LabeledCRF], how: Combination) -> LabeledDistribution:
    """Combine distributions over the same labelled trees into one.

    - "scores": ``product``, the normalised geometric mean;
    - "log_probs": ``product_of_arcs``, from log probabilities of arcs instead of scores;
    - "marginals": a ``Mixture``, the arithmetic mean.

    Raises:
        TreeparseError: for another name, and as ``check_alike`` does.
    """
    how = name_among(how, COMBINATIONS, f"Distributions cannot be combined by {how!r:.60}")
    if how == "marginals":
        return Mixture(distributions)
    return product(distributions) if how == "scores" else product_of_arcs(distributions)


def product(distributions: Sequence[LabeledCRF]) -> LabeledCRF:
    """Return the distribution of the mean scores: ``P(tree)`` is proportional to ``prod_m P_m(tree)^(1/M)``.

    A single distribution is returned as it is. A tree that one distribution forbids is forbidden.
    """
    first, *others = check_alike(distributions)
    if not others:
        return first
    scores = Parts.mean([p.base.parts.to(torch.float64) for p in distributions])
    return LabeledCRF(first.base.with_scores(scores), label_mean([p.labels.source for p in distributions]))


def product_of_arcs(distributions: Sequence[LabeledCRF]) -> LabeledCRF:
    """Return the distribution whose labelled arcs score their mean log marginal.

    ``score(h -> d, l) = mean_m (log P_m(h -> d) + log P_m(l | h -> d))``, -inf where a term is. The marginals of arcs
    are constants for autograd. Unlike ``product``, it changes a single distribution too.
    """
    first = check_alike(distributions)[0]
    parts = Parts.mean([p.base.parts.to(torch.float64) for p in distributions]).neutral()
    logs = [p.arcs.batched.in_batch_shape(p.arcs.batched.log_marginals) for p in distributions]
    scores = parts.with_arcs(torch.stack(logs).mean(0))
    labels = label_mean([label_log_probs(p.labels.source) for p in distributions])
    return LabeledCRF(first.base.with_scores(scores), labels)


def label_log_probs(source: LabelSource) -> ChangedLabels:
    """Return log probabilities of labels given their arcs, in float64."""
    attributes = {"dtype": torch.float64, "bound": 0.0, "support": source.support}
    return ChangedLabels([source], lambda _, scores: label_sums.log_probs(scores.double()), **attributes)


def label_mean(sources: Sequence[LabelSource]) -> ChangedLabels:
    """Return the mean of several sources' label scores, in float64; -inf for a label that one of them forbids."""
    bounds = [source.bound for source in sources if source.bound is not None]
    bound = sum(bounds) / len(sources) if len(bounds) == len(sources) else None
    supports = tuple(source.support for source in sources)
    support = None if None in supports else supports

    def mean(_: Arcs, *scores: Tensor) -> Tensor:
        return reduce(torch.add, (part.double() for part in scores)) / len(scores)

    return ChangedLabels(sources, mean, dtype=torch.float64, bound=bound, support=support)
