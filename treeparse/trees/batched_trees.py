"""The trees of a batch of one batch dimension: sums, best trees and draws, in float64, before rounding."""

from collections.abc import Iterable
from functools import reduce
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch import Size, Tensor

from treeparse.batch import has_values, is_plain
from treeparse.errors import TreeparseError
from treeparse.lazy import cached_property, graph_property
from treeparse.trees.arc_conflicts import allow_conflict, are_both_of_root, cross
from treeparse.trees.checks import arc_mask, no_tree_error
from treeparse.trees.families import DistinctMethod, Family, KBest, LabelDraws, Method, Tensors
from treeparse.trees.families.padded_arrays import kernel_dtype
from treeparse.trees.look_ups import OPERATORS, gather
from treeparse.trees.operators import call, hessian_vector_products, name_of, sums
from treeparse.trees.part_values import PartValues, bilinear_form, join_values, read_values
from treeparse.trees.parts import Parts, scores_of_parts

REQUIRES_GRAD = attrgetter("requires_grad")
NOT_TRACED = (
    "Lists of trees and draws without replacement (topk, best_first, enumerate_support, sample_without_replacement, "
    "mode_with_bound) are not traced by torch.func and torch.export, because their steps depend on the scores' values: "
    "call them outside of what is traced. Instead of torch.vmap, make vmap's dimension a batch dimension of the "
    "distribution, and call them on the whole batch."
)


class BatchedTrees:
    """The trees of a family under scores of their parts; a distribution rounds and reshapes the results.

    Values are computed once and share one graph. ``B`` is the number of items in all batch dimensions; results
    ``(*batch, ...)`` have the batch's own shape.

    Args:
        family: the family, which defines the trees and computes sums, best trees and draws.
        scores: log weights of parts, ``(*batch, n+1, n+1)`` of arcs first, any floating dtype.
        lengths: int64 ``(*batch,)``.
        validate: whether items without a tree raise.
        plain: whether the scores are plain tensors, if it is known.
    """

    def __init__(
        self,
        family: Family,
        scores: Iterable[Tensor],
        lengths: Tensor,
        *,
        validate: bool,
        plain: bool | None = None,
    ) -> None:
        self.family, self.validate = family, validate
        self.shape: Size = lengths.shape
        parts: list[Tensor] = []
        with torch.enable_grad():  # cached values must have their graph even if first used without one
            for part in scores:
                part = part.to(kernel_dtype(part.dtype) if parts else torch.float64)
                parts.append(part if lengths.dim() == 1 else part.reshape(-1, *part.shape[lengths.dim() :]))
        self.original_parts: Parts = Parts(parts)
        self.arcs: Tensor = self.original_parts[0]
        self.is_plain: bool = is_plain(self.arcs) if plain is None else plain
        self.can_read: bool = self.is_plain and self.arcs.device.type == "cpu"  # values, without a device sync
        self.lengths: Tensor = lengths.reshape(-1)

    def with_parts(self, parts: Parts, *, validate: bool | None = None) -> "BatchedTrees":
        """Return the same trees under other scores of all parts ``(B, ...)``; ``validate`` stays if None."""
        validate = self.validate if validate is None else validate
        return BatchedTrees(
            self.family, parts.map(self.in_batch_shape), self.in_batch_shape(self.lengths), validate=validate
        )

    def in_batch_shape(self, value: Tensor) -> Tensor:
        """Reshape a value ``(B, ...)`` to ``(*batch, ...)``."""
        return value if len(self.shape) == 1 else value.reshape(self.shape + value.shape[1:])

    def samples_of(self, trees: Tensor) -> Tensor:
        """Reshape heads or labels of trees ``(*sample, *batch, n+1)`` to ``(S, B, n+1)``."""
        samples = trees.shape[: trees.dim() - 1 - len(self.shape)].numel()
        return trees.reshape(samples, len(self.lengths), trees.shape[-1])

    @graph_property
    def parts(self) -> Parts:
        """The scores ``(B, ...)`` of all parts in float64.

        In ``original_parts``, parts other than arcs are float32 where they came in a dtype so short, because converting
        so many takes longer than most sums. Functions without differences of large numbers take ``original_parts``.
        """
        return self.original_parts.to(torch.float64)

    @cached_property
    def is_arc(self) -> Tensor:
        """The entries ``(B, n+1, n+1)`` bool that are arcs; other entries are ignored."""
        return arc_mask(self.lengths, self.arcs.shape[-1])

    @graph_property
    def sums(self) -> Tensors:
        """Log partition ``(B,)`` and marginals of every kind of part, in float64."""
        is_converted = any(part.dtype != torch.float64 for part in self.original_parts)
        return sums(self.family, self.parts, self.lengths, plain=self.is_plain) if is_converted else self.original_sums

    @graph_property
    def original_sums(self) -> Tensors:
        """The same, where marginals have the dtype of the original scores; log partitions are the same."""
        return sums(self.family, self.original_parts, self.lengths, plain=self.is_plain)

    @graph_property
    def log_partition(self) -> Tensor:
        """Log partition ``(*batch,)``, unrounded, because losses are small differences of large sums."""
        if torch.compiler.is_compiling():
            names = name_of(self.family), self.family.single_root
            result = OPERATORS.log_partition(tuple(self.original_parts), self.lengths, *names)
        elif (
            self.is_plain and not any(map(REQUIRES_GRAD, self.original_parts)) and "original_sums" not in self.__dict__
        ):
            result = self.family.log_partition(self.original_parts, self.lengths)
        else:
            result = self.original_sums[0]
        if self.validate:
            self.require(result > -torch.inf)
        return result if len(self.shape) == 1 else self.in_batch_shape(result)

    @cached_property
    def part_marginals(self) -> Parts:
        """The probability of every part ``(B, ...)``."""
        return self._marginals_of(self.sums)

    @cached_property
    def part_marginals_as_given(self) -> Parts:
        """The same, in the dtype in which scores are given."""
        return self._marginals_of(self.original_sums)

    def _marginals_of(self, sums: Tensors) -> Parts:
        if self.validate and self.is_plain:
            self.require(sums[0] > -torch.inf)
        return Parts(sums[1:])

    @cached_property
    def part_log_marginals(self) -> Parts:
        """Log probability of every part ``(B, ...)``, a constant; -inf exactly where no tree has the part."""
        result = Parts(self._constants("log_marginals", self.parts, self.lengths))
        if self.validate:
            self.require((result[0] > -torch.inf).flatten(1).any(1) | (self.lengths == 0))
        return result

    def _constants(self, method: str, parts: Parts | Tensor, *others: Any) -> Any:
        """Call a method of the family without a graph; by its operator for scores that are not plain tensors."""
        if self.is_plain:
            return getattr(self.family, method)(parts, *others)
        return call(method, self.family, parts, *others)

    @property
    def marginals(self) -> Tensor:
        """The probability of every arc ``(B, n+1, n+1)``."""
        return self.part_marginals_as_given[0]

    @property
    def log_marginals(self) -> Tensor:
        """Log probability of every arc ``(B, n+1, n+1)``, a constant; -inf exactly where no tree has the arc."""
        return self.part_log_marginals[0]

    def minus_inf_without_tree(self, value: Tensor) -> Tensor:
        """Replace a value ``(*batch,)`` by -inf for items without a tree."""
        return torch.where(self.log_partition > -torch.inf, value, -torch.inf)

    @graph_property
    def entropy(self) -> Tensor:
        """Entropy ``(*batch,)``."""
        return self.minus_inf_without_tree(self._expected_code_length(self))

    def cross_entropy(self, q: "BatchedTrees") -> Tensor:
        """Return ``-E_p[log q]`` ``(*batch,)``; +inf where q forbids a tree of p."""
        forbidden = self.in_batch_shape(self._allows_more(q))
        return self.minus_inf_without_tree(torch.where(forbidden, torch.inf, self._expected_code_length(q)))

    def _expected_code_length(self, q: "BatchedTrees") -> Tensor:
        """Return ``-E_p[log q]`` over trees that q allows.

        It is the difference of a log partition and an expected score, where the best arc of every column has score 0.
        """
        shifted, best = q.shifted_parts
        return (
            q.log_partition
            - self.in_batch_shape(best.sum(-1))
            - self.in_batch_shape(shifted.expected(self.part_marginals))
        )

    @graph_property
    def shifted_parts(self) -> tuple[Parts, Tensor]:
        """Scores with the best arc of every column at 0, so that differences lose no digits; and what these had."""
        return self.parts.shifted(self.is_arc)

    def _allows_more(self, q: "BatchedTrees") -> Tensor:
        """Tell which items ``(B,)`` have a tree that q forbids."""
        result = q.log_partition.reshape(-1) == -torch.inf
        forbidden = self.is_arc & (self.arcs > -torch.inf) & (q.arcs == -torch.inf)
        result = result | self.allows_some(forbidden)
        for kind, mask in enumerate(self.other_masks[: len(q.parts) - 1], 1):
            forbidden = mask & (self.parts[kind] > -torch.inf) & (q.parts[kind] == -torch.inf)
            result = result | self.allows_some(forbidden, kind)
        family, constants = self.family, (self.family, self.parts.detach(), self.lengths)
        if family.crossing and not q.family.crossing:
            result = result | allow_conflict(*constants, self.log_marginals > -torch.inf, cross)
        if q.family.single_root and not family.single_root:
            if not family.crossing or family.part_kinds:
                return result | allow_conflict(*constants, self.log_marginals > -torch.inf, are_both_of_root)
            # Two words that the root may head can hang from it both: cutting their arcs makes no cycle.
            result = result | ((self.is_arc & (self.arcs > -torch.inf))[:, 0].sum(-1) > 1)
        return result

    @cached_property
    def other_masks(self) -> list[Tensor]:
        """For every kind of part but arcs, the entries ``(B, ...)`` bool that are parts; all others are ignored."""
        return [kind.mask(self.lengths, self.arcs.shape[-1]) for kind in self.family.part_kinds]

    def allows_some(self, parts: Tensor, kind: int = 0) -> Tensor:
        """Tell which items ``(B,)`` have a tree with one of some parts ``(B, ...)`` bool of a kind, by default arcs."""
        if self.can_read and not bool(parts.any()):  # the usual case, without log marginals
            return parts.flatten(1).any(-1)
        return (parts & (self.part_log_marginals[kind] > -torch.inf)).flatten(1).any(-1)

    def expected_gradient(self) -> Tensor:
        """Return the trace of the parts' covariance ``(*batch,)``; a part is 1 if the tree has it, else 0."""
        return self.in_batch_shape(self.part_marginals.map(lambda marginals: marginals * (1 - marginals)).total())

    def log_power_sum(self, order: float) -> Tensor:
        """Return the log of the sum of all trees' probabilities to a power ``(*batch,)``."""
        shifted, best = self.shifted_parts
        raised = self.with_parts(shifted.power(order)).log_partition
        return raised - order * (self.log_partition - self.in_batch_shape(best.sum(-1)))

    def expectation(self, r: Tensor | Parts) -> Tensor:
        """Return expected sums of values of parts: ``(*batch, n+1, n+1, R) -> (*batch, R)``; a tensor is for arcs."""
        result = self.expectation_of(self._part_values(r))
        return result.reshape(self.shape + self._columns(r))

    def covariance(self, r: Tensor | Parts, s: Tensor | Parts) -> Tensor:
        """Return the covariance ``(*batch, R, S)`` of two sums of values of parts."""
        result = self.covariance_of(self._part_values(r), self._part_values(s))
        return result.reshape(self.shape + self._columns(r) + self._columns(s))

    def score_variance(self) -> Tensor:
        """Return the variance of a tree's score ``(*batch,)``."""
        shifted, _ = self.shifted_parts
        shifted = shifted.map(lambda part: self.in_batch_shape(torch.where(part > -torch.inf, part, 0.0)))
        return self.covariance(shifted, shifted)

    def _columns(self, values: Tensor | Parts) -> Size:
        """``(R,)``, or ``()`` where values of parts lack this axis."""
        arcs = values[0] if isinstance(values, Parts) else values
        return arcs.shape[len(self.shape) + 2 :]

    def _part_values(self, values: Tensor | Parts) -> PartValues:
        if not isinstance(values, Parts):
            return self.values_of_kind(values, 0)
        if len(values) != len(self.parts):
            raise TreeparseError(
                f"Values must have one tensor for each of the {len(self.parts)} kinds of part of these trees, got "
                f"{len(values)}; a tensor alone holds values of arcs."
            )
        return join_values([self.values_of_kind(part, kind) for kind, part in enumerate(values)])

    def values_of_kind(self, values: Tensor, kind: int) -> PartValues:
        """Return values ``(*batch, ...)`` of the parts of one kind."""
        shape = Size((*self.shape, *self.parts[kind].shape[1:]))
        return read_values(values, shape, (self.part_marginals[kind] > 0).flatten(1))

    def expectation_of(self, values: PartValues) -> Tensor:
        """Return expected sums ``(B, values.count)``."""
        return values.weighted_sums(self.part_marginals.flatten().unsqueeze(0)).squeeze(1)

    def covariance_of(self, left: PartValues, right: PartValues) -> Tensor:
        """Return covariances of sums ``(B, left.count, right.count)``."""

        def hessian_products(vectors: Tensor) -> Tensor:
            vectors = torch.nn.functional.pad(vectors, (0, self.parts.width - vectors.shape[-1]))
            products = hessian_vector_products(self.family, self.parts, self.lengths, self.parts.unflatten(vectors))
            return Parts(products).flatten(2)

        return bilinear_form(left, right, hessian_products)

    @cached_property
    def heads(self) -> Tensor:
        """Heads of the best trees ``(B, n+1)``."""
        heads = self._constants("best_trees", self.original_parts, self.lengths)
        self._require_heads(heads)
        return heads

    def best_of_items(self, items: Tensor, arcs: Tensor) -> Tensor:
        """Return heads ``(I, n+1)`` of the best trees of items ``(I,)`` under other arc scores ``(I, n+1, n+1)``."""
        return self.family.best_trees_of_items(arcs, self.original_parts.others, self.lengths[items], items)

    def k_best(self, count: int) -> KBest:
        """Return a new list of the best trees, ``count`` of them computed."""
        self.check_values()
        trees = self.family.k_best(self.original_parts, self.lengths)
        trees.extend(count, threads=torch.get_num_threads())
        self.require(torch.from_numpy(trees.scores[:, 0] > -np.inf))
        return trees

    def sample(self, seeds: Tensor, count: int, method: Method | None = None) -> Tensor:
        """Draw exact, independent samples by seeds ``(B,)``: heads ``(B, count, n+1)``."""
        heads = self._constants("sample", self.original_parts, self.lengths, seeds, count, method)
        if heads.numel():
            self._require_heads(heads[:, 0])
        return heads

    def sample_without_replacement(
        self, seeds: Tensor, count: int, method: DistinctMethod | None = None, labels: LabelDraws | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw trees: rows ``(*batch, k, n+1)``, with labels ``(*batch, k, 2n+2)``, log probabilities, keys."""
        self.check_values()
        shifted, _ = self.shifted_parts
        draw = self.family.sample_without_replacement
        rows, log_probs, keys = draw(shifted.detach(), self.lengths, seeds, count, method=method, labels=labels)
        self._require_heads(rows[:, 0])
        return self.in_batch_shape(rows), self.in_batch_shape(log_probs), self.in_batch_shape(keys)

    def scores_of(self, heads: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of head lists ``(S, B, n+1)``, and which lists are trees of finite score: ``(S, B)`` both.

        ``check_heads`` prepares the lists.
        """
        total = reduce(torch.add, [scores.sum(-1) for scores in self.part_scores_of(heads)])
        repeated = self.lengths.expand(heads.shape[:2]).reshape(-1)
        are_trees = self._constants("are_trees", heads.reshape(-1, heads.shape[-1]), repeated).reshape(total.shape)
        return total, are_trees & (total > -torch.inf)

    def part_scores_of(self, heads: Tensor) -> list[Tensor]:
        """Return the scores ``(S, B, W)`` of all parts of head lists ``(S, B, n+1)``, one tensor a kind; 0 for none."""
        items, size = self.arcs.shape[:2]
        samples = len(heads)
        position = torch.arange(size, device=self.arcs.device)
        # One row of arcs an item, all samples in it: gathering from expanded scores would expand their gradient too.
        arcs = (heads.clamp(0, size - 1) * size + position).transpose(0, 1).reshape(items, samples * size)
        values = gather(self.arcs.reshape(items, size * size), 1, arcs).reshape(items, samples, size).transpose(0, 1)
        of_arcs = torch.where(heads >= 0, values, 0.0)
        return [of_arcs, *self.other_scores_of(heads)] if self.family.part_kinds else [of_arcs]

    def other_scores_of(self, heads: Tensor) -> list[Tensor]:
        """Do ``part_scores_of`` for other parts than arcs."""
        return [
            scores_of_parts(kind, scores, heads, self.lengths)
            for kind, scores in zip(self.family.part_kinds, self.original_parts.others, strict=True)
        ]

    def check_values(self) -> None:
        """Raise if torch traces the scores, which then have no values to search by."""
        if not all(map(has_values, self.original_parts)):
            raise TreeparseError(NOT_TRACED)

    def _require_heads(self, heads: Tensor) -> None:
        """Raise as ``require`` does if one of the heads ``(B, n+1)`` is missing that each item's first word has."""
        if self.validate and bool((heads[:, 1:2] < 0).any()):  # which may be sentences without words
            self.require((heads[:, 1] >= 0) | (self.lengths == 0))

    def require(self, exist: Tensor) -> None:
        """Raise if an item has no tree, by ``(B,)`` bool; without validated arguments, do nothing."""
        if self.validate and not bool(exist.all()):
            item = self.in_batch_shape(~exist).nonzero()[0].tolist()
            scores, lengths = map(self.in_batch_shape, (self.arcs.detach(), self.lengths))
            options = {"single_root": self.family.single_root, "kinds": self.family.part_kinds}
            raise no_tree_error(scores, lengths, item, **options)
