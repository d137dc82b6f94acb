"""What distributions ask of a family of trees: sums, best trees, lists and draws, of flat batches.

A family says which trees there are (crossing arcs, one root or many) and how they are computed with (compiled kernels,
torch). Everything that depends on either is here behind one object; a new backend is one more of them.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.trees.parts import PartKind

Tensors = tuple[Tensor, ...]
"""Float64 values of a flat batch's parts, one tensor a kind, arcs ``(B, n+1, n+1)`` first: ``Parts``, or a tuple."""

Method = Literal["expansion", "wilson", "wilson_marginal", "wilson_reject", "colbourn"]
DistinctMethod = Literal["repeat", "trie", "beam"]


class KBest(Protocol):
    """A list of trees, best first, that grows where more are asked for; what is done is kept."""

    @property
    def heads(self) -> IntArray:
        """Heads ``(B, made, n+1)``, -1 past the number of trees."""
        ...

    @property
    def scores(self) -> FloatArray:
        """Summed scores ``(B, made)``, -inf past the number of trees."""
        ...

    def extend(self, count: int, threads: int = 1) -> None:
        """Make ``count`` trees an item, with those made before."""
        ...


class LabelDraws(Protocol):
    """What draws of labelled trees need to know of the labels of arcs."""

    @property
    def device(self) -> torch.device:
        """Where the scores are."""
        ...

    def log_probs(self) -> Tensor:
        """Log probabilities of all labels given their arcs ``(B, n+1, n+1, L)``, float64 constants."""
        ...

    def log_probs_of_trees(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Log probabilities ``(S, B)`` of trees' labels given their arcs, from ``(S, B, n+1)`` both."""
        ...

    def sample_of_trees(self, heads: Tensor, seeds: Tensor) -> Tensor:
        """A label for every word of trees ``(S, B, n+1)``, drawn given its arc, by a seed an item ``(B,)``."""
        ...

    def of_items(self, items: Tensor) -> "LabelDraws":
        """Those of some items ``(I,)``, in order."""
        ...


class DistinctTrees(NamedTuple):
    """Different trees of every item in the order in which they were drawn; past the last -1, -inf and -inf."""

    rows: Tensor  # (B, K, n+1) heads or, with labels, (B, K, 2n+2) heads and labels
    log_probs: Tensor  # (B, K)
    keys: Tensor  # (B, K) log probabilities plus Gumbel noise, descending


class Family(ABC):
    """Plain functions of float64 scores of parts and int64 lengths ``(B,)``, without autograd.

    Results are on the scores' device. Draws take one seed an item, int64 ``(B,)``, on whatever device.

    Attributes:
        single_root: whether exactly one word hangs from node 0.
        crossing: whether arcs may cross.
        kinds: the kinds of part besides arcs.
        leaves_rest: whether ``log_partition_marginals_and_rest`` may spare products with the Hessian work.
    """

    single_root: bool
    crossing: bool
    kinds: ClassVar[tuple[PartKind, ...]] = ()
    leaves_rest: ClassVar[bool] = False

    @abstractmethod
    def log_partition(self, parts: Tensors, lengths: Tensor) -> Tensor:
        """Log of the summed weight of all trees ``(B,)``; -inf where there is none."""

    @abstractmethod
    def log_partition_and_marginals(self, parts: Tensors, lengths: Tensor) -> tuple[Tensor, Tensors]:
        """The log partition, and the probability of every part; all 0 where there is no tree."""

    def log_partition_marginals_and_rest(self, parts: Tensors, lengths: Tensor) -> tuple[Tensor, Tensors, Any]:
        """The log partition, marginals, and whatever of their making ``hessian_vector_product`` can use, or None."""
        return *self.log_partition_and_marginals(parts, lengths), None

    @abstractmethod
    def hessian_vector_product(self, parts: Tensors, lengths: Tensor, vectors: Tensors, rest: Any = None) -> Tensors:
        """The Hessian of the log partition times vectors: the derivative of the marginals along them.

        ``rest`` is what sums of the same parts have left, or of the first of them where they come again in turn.
        """

    @abstractmethod
    def log_marginals(self, parts: Tensors, lengths: Tensor) -> Tensors:
        """Log probability of every part, right to relative accuracy and exact about -inf."""

    @abstractmethod
    def best_trees(self, parts: Tensors, lengths: Tensor) -> Tensor:
        """Heads of the best trees ``(B, n+1)``, -1 where there is none."""

    @abstractmethod
    def k_best(self, parts: Tensors, lengths: Tensor) -> KBest:
        """The lazy list of the best trees; it is kept in CPU memory."""

    @abstractmethod
    def sample(
        self, parts: Tensors, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None
    ) -> Tensor:
        """Heads ``(B, count, n+1)`` of trees drawn with replacement; -1 where there is none.

        Raises:
            TreeparseError: for a method that does not exist or does not draw these trees.
        """

    @abstractmethod
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
        """Different trees in the order drawn, each from all that are left; with ``labels``, different labelled trees.

        Raises:
            TreeparseError: as ``sample``.
        """

    @abstractmethod
    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        """Which head lists ``(B, n+1)`` are trees of this family, whatever their scores, ``(B,)`` bool."""
