"""The interface of a family of trees, which computes sums, best trees, lists and draws of flat batches.

A family defines its trees (crossing arcs, one root or many, kinds of part) and its backend (compiled kernels, torch,
CUDA). A distribution uses both through one object, so a new backend is a new class.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.kernels import FloatArray, IntArray
from treeparse.trees.parts import PartKind

Tensors = tuple[Tensor, ...]
"""Values of a flat batch's parts, one tensor a kind, float64 arcs ``(B, n+1, n+1)`` first: ``Parts``, or a tuple.

Other kinds are float64 or float32, and so are then their marginals and Hessian-vector products.
"""

Method = Literal["expansion", "wilson", "wilson_marginal"]
DistinctMethod = Literal["repeat", "trie", "beam"]


class KBest(Protocol):
    """A list of trees, best first, that grows on request; earlier trees stay."""

    @property
    def heads(self) -> IntArray:
        """Heads ``(B, made, n+1)``, -1 past the number of trees."""
        ...

    @property
    def scores(self) -> FloatArray:
        """Summed scores ``(B, made)``, -inf past the number of trees."""
        ...

    def extend(self, count: int, threads: int = 1) -> None:
        """Make the list ``count`` trees an item long; trees made before count too."""
        ...


class LabelDraws(Protocol):
    """The methods of ``BatchedLabels``, documented there, that draws of labelled trees need."""

    @property
    def device(self) -> torch.device: ...

    def log_probs(self) -> Tensor: ...

    def log_probs_of_trees(self, heads: Tensor, labels: Tensor) -> Tensor: ...

    def sample_of_trees(self, heads: Tensor, seeds: Tensor) -> Tensor: ...

    def of_items(self, items: Tensor) -> "LabelDraws": ...


class DistinctTrees(NamedTuple):
    """Different trees of every item in the order in which they were drawn; past the last -1, -inf and -inf."""

    rows: Tensor  # (B, K, n+1) heads or, with labels, (B, K, 2n+2) heads and labels
    log_probs: Tensor  # (B, K)
    keys: Tensor  # (B, K) log probabilities plus Gumbel noise, descending


@dataclass(frozen=True)
class Family(ABC):
    """Plain functions of scores of parts and int64 lengths ``(B,)``, without autograd.

    Results are on the scores' device. Draws take one seed an item, int64 ``(B,)``, on any device.

    Every family has the abstract methods and ``part_kinds``: sums, best trees, membership, and the parts of a tree,
    from which its score follows. All other methods are capabilities: a family without one inherits a method that
    raises an error, which names the families that have it.

    Attributes:
        single_root: whether exactly one word hangs from node 0.
        crossing: whether arcs may cross.
        name: what error messages call these trees.
        part_kinds: the kinds of part besides arcs.
        description: completes "probabilities of ..." in a model card.
        has_sums: whether log partition and marginals are computed; without them both raise, as a search alone is.
        option: what tells the family from others of its name, for operators; "" for nothing.
    """

    single_root: bool
    crossing: ClassVar[bool]
    name: ClassVar[str]
    description: ClassVar[str] = "trees"
    part_kinds: ClassVar[tuple[PartKind, ...]] = ()
    has_sums: ClassVar[bool] = True

    @property
    def option(self) -> str:
        return ""

    @abstractmethod
    def sums(self, parts: Tensors, lengths: Tensor) -> Tensors:
        """Return the log partition ``(B,)`` and the probabilities of each kind of part; -inf and 0 without a tree."""

    @abstractmethod
    def best_trees(self, parts: Tensors, lengths: Tensor) -> Tensor:
        """Return heads of the best trees ``(B, n+1)``, -1 where there is none."""

    def best_trees_of_items(self, arcs: Tensor, others: Tensors, lengths: Tensor, items: Tensor) -> Tensor:
        """Return heads ``(I, n+1)`` of the best trees of items ``(I,)`` of a batch, under other scores of arcs.

        ``arcs`` are ``(I, n+1, n+1)``, ``lengths`` ``(I,)``, and the scores of other kinds of part the whole batch's.
        """
        return self.best_trees((arcs, *(part[items] for part in others)), lengths)

    @abstractmethod
    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        """Tell which head lists ``(B, n+1)`` are trees of this family, whatever their scores: ``(B,)`` bool."""

    def log_partition(self, parts: Tensors, lengths: Tensor) -> Tensor:
        """Return the log of the summed weight of all trees ``(B,)``; -inf where there is none."""
        return self.sums(parts, lengths)[0]

    def hessian_vector_product(self, parts: Tensors, lengths: Tensor, vectors: Tensors) -> Tensors:
        """Multiply the Hessian of the log partition by vectors: the derivative of the marginals along them."""
        raise self._lacking(Family.hessian_vector_product, "Derivatives of marginals, entropies, and covariances")

    def log_marginals(self, parts: Tensors, lengths: Tensor) -> Tensors:
        """Return the log probability of every part, right to relative accuracy and exact about -inf."""
        raise self._lacking(Family.log_marginals, "Log marginals, and exact tests of what a distribution allows,")

    def k_best(self, parts: Tensors, lengths: Tensor) -> KBest:
        """Return the lazy list of the best trees, in CPU memory."""
        raise self._lacking(Family.k_best, "Lists of the k best trees")

    def sample(
        self, parts: Tensors, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None
    ) -> Tensor:
        """Draw trees with replacement: heads ``(B, count, n+1)``, -1 where there is none.

        Raises:
            TreeparseError: for a method that does not exist or does not draw these trees.
        """
        raise self._lacking(Family.sample, "Samples")

    def sample_without_replacement(
        self,
        parts: Tensors,
        lengths: Tensor,
        seeds: Tensor,
        count: int,
        *,
        method: DistinctMethod | None = None,
        labels: LabelDraws | None = None,
    ) -> DistinctTrees:
        """Draw different trees in order, each from all that are left; with ``labels``, different labelled trees.

        Raises:
            TreeparseError: as ``sample``.
        """
        raise self._lacking(Family.sample_without_replacement, "Samples without replacement")

    def _lacking(self, capability: Callable[..., Any], what: str) -> TreeparseError:
        name = capability.__name__
        able = sorted({family.name for family in _families(Family) if getattr(family, name) is not capability})
        return TreeparseError(
            f"{what} are not implemented for {self.name} trees. Trees that have them: {', '.join(able)}."
        )


def _families(base: type[Family]) -> Iterator[type[Family]]:
    """All named classes of families below a class."""
    for family in base.__subclasses__():
        if hasattr(family, "name"):
            yield family
        yield from _families(family)
