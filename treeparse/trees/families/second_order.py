"""Dependency trees that score parts of several arcs, by the compiled kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.kernels import FloatArray
from treeparse.kernels.best import nonprojective_siblings, second_order_trees
from treeparse.kernels.best.arborescence import are_trees
from treeparse.kernels.lists.projective_lists import ProjectiveKBest
from treeparse.trees.families.arc_families import KernelFamily, KernelFunctions, Projective
from treeparse.trees.families.family import Family, KBest, Tensors
from treeparse.trees.families.padded_arrays import integers, run
from treeparse.trees.parts import PartKind


class Siblings(PartKind):
    """``scores[..., head, dependent, sibling]``: the next dependent of the head between the two, or the head for none.

    Dependents on either side of a head are separate: every one has the next one towards the head as its sibling.
    """

    name = "siblings"

    def shape(self, nodes: int) -> tuple[int, ...]:
        return nodes, nodes, nodes

    def mask(self, lengths: Tensor, nodes: int) -> Tensor:
        head, dependent, sibling = _nodes_of_triples(nodes, lengths.device)
        is_between = (torch.minimum(head, dependent) < sibling) & (sibling < torch.maximum(head, dependent))
        is_part = (dependent > 0) & (head != dependent) & (is_between | (sibling == head))
        return is_part & (torch.maximum(head, dependent) <= lengths[:, None, None, None])

    def of_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        nodes = heads.shape[-1]
        node = torch.arange(nodes, device=heads.device)
        is_word = (node > 0) & (node <= lengths.unsqueeze(-1))
        heads = torch.where(is_word, heads, -1)
        head, dependent = heads.unsqueeze(-1), node.unsqueeze(-1)
        has_same_head = (head == heads.unsqueeze(-2)) & (head >= 0)
        before = has_same_head & (node > head) & (node < dependent)
        after = has_same_head & (node < head) & (node > dependent)
        last_before = torch.where(before, node, -1).amax(-1)
        first_after = torch.where(after, node, nodes).amin(-1)
        sibling = torch.where(last_before >= 0, last_before, torch.where(first_after < nodes, first_after, heads))
        return torch.where(is_word, (heads * nodes + node) * nodes + sibling, -1)


class Grandparents(PartKind):
    """``scores[..., head, dependent, grandparent]``: the head of the head, of projective trees; node 0 has none."""

    name = "grandparents"

    def shape(self, nodes: int) -> tuple[int, ...]:
        return nodes, nodes, nodes

    def mask(self, lengths: Tensor, nodes: int) -> Tensor:
        head, dependent, grandparent = _nodes_of_triples(nodes, lengths.device)
        first, last = torch.minimum(head, dependent), torch.maximum(head, dependent)
        is_part = (first > 0) & (head != dependent) & ((grandparent < first) | (grandparent > last))
        return is_part & (torch.maximum(last, grandparent) <= lengths[:, None, None, None])

    def of_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        nodes = heads.shape[-1]
        node = torch.arange(nodes, device=heads.device)
        is_part = (node > 0) & (node <= lengths.unsqueeze(-1)) & (heads > 0)
        grandparents = heads.gather(-1, heads.clamp(0, nodes - 1))
        return torch.where(is_part & (grandparents >= 0), (heads * nodes + node) * nodes + grandparents, -1)


def _nodes_of_triples(nodes: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return the nodes of every triple, ``(n+1, 1, 1)``, ``(n+1, 1)`` and ``(n+1,)``."""
    node = torch.arange(nodes, device=device)
    return node[:, None, None], node[:, None], node


SIBLINGS, GRANDPARENTS = Siblings(), Grandparents()  # one object each, so that families are seen to share them


def _list(arcs: FloatArray, *others: Any, single_root: bool) -> KBest:
    """Begin the list of the best trees by scores of arcs and of other parts, and lengths."""
    *parts, lengths = others
    return ProjectiveKBest(arcs, lengths, others=tuple(parts), single_root=single_root)


class _ProjectiveParts(KernelFamily):
    """What both share: kernels of best trees read the other parts of chosen items in place."""

    crossing: ClassVar[bool] = False
    functions: ClassVar[KernelFunctions] = Projective.functions._replace(best_trees=second_order_trees.best_trees)
    drawing: ClassVar[tuple[Callable[..., Any], ...]] = Projective.drawing
    list_of_best: ClassVar[Callable[..., KBest]] = staticmethod(_list)

    def best_trees_of_items(self, arcs: Tensor, others: Tensors, lengths: Tensor, items: Tensor) -> Tensor:
        return self.call(self.functions.best_trees, arcs, *others, lengths, items=integers(items))


@dataclass(frozen=True)
class ProjectiveSiblings(_ProjectiveParts):
    """Sums and best trees in O(n^3) by spans whose last dependent is known."""

    name: ClassVar[str] = "sibling"
    description: ClassVar[str] = "trees without crossing arcs, by arcs and pairs of neighbouring dependents"
    part_kinds: ClassVar[tuple[PartKind, ...]] = (SIBLINGS,)


@dataclass(frozen=True)
class ProjectiveGrandparents(_ProjectiveParts):
    """Sums and best trees in O(n^4) by the same spans, whose head's head is known, too."""

    name: ClassVar[str] = "second-order"
    description: ClassVar[str] = (
        "trees without crossing arcs, by arcs, pairs of neighbouring dependents and heads of heads"
    )
    part_kinds: ClassVar[tuple[PartKind, ...]] = (SIBLINGS, GRANDPARENTS)


@dataclass(frozen=True)
class NonprojectiveSiblings(Family):
    """Best trees by branch and bound, exact on the CPU; there are no sums, which are NP-hard (McDonald and Satta 2007).

    Samples and lists of trees need sums or the like, so that they are lacking, too.

    Attributes:
        limit: the largest number of branches that ``best_trees`` searches for an item; None for no limit.
    """

    single_root: bool
    limit: int | None = None
    has_sums: ClassVar[bool] = False
    crossing: ClassVar[bool] = True
    name: ClassVar[str] = "nonprojective sibling"
    description: ClassVar[str] = "all trees, by arcs and pairs of neighbouring dependents"
    part_kinds: ClassVar[tuple[PartKind, ...]] = (SIBLINGS,)

    @property
    def option(self) -> str:
        return "" if self.limit is None else str(self.limit)

    def sums(self, parts: Tensors, lengths: Tensor) -> Tensors:
        raise TreeparseError(
            "Sums over nonprojective sibling trees are NP-hard, so that they have neither log partition nor "
            "probabilities, marginals or entropies. Take SiblingCRF (model.trees: siblings), whose trees have no "
            "crossing arcs, or mean_field(), which approximates them."
        )

    def best_trees(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return self.best_trees_with_bounds(parts, lengths, self.limit)[0]

    def best_trees_of_items(self, arcs: Tensor, others: Tensors, lengths: Tensor, items: Tensor) -> Tensor:
        options = {"single_root": self.single_root, "items": integers(items), "limit": self.limit}
        return run(nonprojective_siblings.best_trees_with_bounds, arcs, *others, lengths, **options)[0]

    def best_trees_with_bounds(self, parts: Tensors, lengths: Tensor, limit: int | None) -> Tensors:
        """Return heads ``(B, n+1)``, scores, upper bounds, and whether trees are known to be the best ones ``(B,)``."""
        options = {"single_root": self.single_root, "limit": limit}
        return run(nonprojective_siblings.best_trees_with_bounds, *parts, lengths, **options)[:4]

    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return run(are_trees, heads, lengths, single_root=self.single_root)
