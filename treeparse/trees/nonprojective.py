"""The distribution over all dependency trees, crossing arcs included."""

from functools import cached_property
from typing import Self

from torch import Tensor

from treeparse.trees import functions
from treeparse.trees.base import TreeCRF
from treeparse.trees.functions import Backend, KBest, Primitives


class NonProjectiveCRF(TreeCRF):
    """A distribution over all spanning trees below the root ([MTT]); arguments as in ``TreeCRF``, and where to compute.

    Sums take O(n^3) by elimination ([GTH]) and are right at any score scale; the best tree takes O(n^2).

    Args:
        scores: ``(*batch, n+1, n+1)`` log weights of arcs.
        lengths: ``(*batch,)`` numbers of words; all ``n`` if None.
        single_root: whether exactly one word hangs from the root.
        backend: "numba", the compiled kernels for CPU memory, or "torch", which stays on the scores' device; None takes
            the kernels for CPU tensors and torch for others.
        validate_args: whether NaN and +inf scores and items without a tree raise; torch's default if None.
    """

    def __init__(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        single_root: bool = True,
        backend: Backend | None = None,
        validate_args: bool | None = None,
    ) -> None:
        functions.check_backend(backend)
        self.backend: Backend | None = backend
        super().__init__(scores, lengths, single_root=single_root, validate_args=validate_args)

    def with_scores(self, scores: Tensor, lengths: Tensor | None = None) -> Self:
        result = super().with_scores(scores, lengths)
        result.backend = self.backend
        return result

    @cached_property
    def _primitives(self) -> Primitives:  # pyright: ignore[reportIncompatibleMethodOverride]
        return functions.nonprojective_primitives(
            self.scores.device, single_root=self.single_root, backend=self.backend
        )

    def _log_marginals_of(self, scores: Tensor, lengths: Tensor) -> Tensor:
        return functions.log_marginals(scores, lengths, single_root=self.single_root)

    def _best_trees_of(self, scores: Tensor, lengths: Tensor) -> Tensor:
        return functions.best_trees(scores, lengths, single_root=self.single_root)

    def _k_best(self, scores: Tensor, lengths: Tensor) -> KBest:
        return functions.k_best(scores, lengths, single_root=self.single_root)

    def _are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return functions.are_trees(heads, lengths, single_root=self.single_root)
