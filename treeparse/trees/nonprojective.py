"""The distribution over all dependency trees, crossing arcs included."""

from collections.abc import Sequence
from functools import cached_property
from typing import Self

from torch import Size, Tensor

from treeparse.trees import functions
from treeparse.trees.base import TreeCRF
from treeparse.trees.functions import Backend, KBest, Primitives
from treeparse.trees.samplers import Sampler, check_sampler
from treeparse.trees.sampling import Generators, item_seeds


class NonProjectiveCRF(TreeCRF):
    """A distribution over all spanning trees below the root ([MTT]); arguments as in ``TreeCRF``, and where to compute.

    Sums take O(n^3) by elimination ([GTH]) and are right at any score scale; the best tree takes O(n^2).

    Values share one graph: add the terms of a loss up and call ``backward`` once a distribution. Log partitions and
    ``log_prob`` are differentiable twice, marginals and what is made of them (expectations, entropies, risks,
    divergences) once, by ``torch.autograd``; ``torch.vmap`` and the transforms of ``torch.func`` raise.

    Args:
        scores: ``(*batch, n+1, n+1)`` log weights of arcs, -inf or from -1e12 to 1e12.
        lengths: ``(*batch,)`` numbers of words; all ``n`` if None.
        single_root: whether exactly one word hangs from the root.
        backend: "numba", the compiled kernels for CPU memory, or "torch", which stays on the scores' device; None takes
            the kernels for CPU tensors and torch for others.
        validate_args: whether NaN, +inf and too large scores and items without a tree raise; torch's default if None.
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

    def sample(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        sample_shape: Size | Sequence[int] = (),
        *,
        generator: Generators = None,
        method: Sampler | None = None,
    ) -> Tensor:
        """Heads ``(*sample, *batch, n+1)`` of exact, independent samples, whichever the method.

        ``method`` is "expansion", which takes O(n^3) once and O(n^2) a tree whatever the scores; "wilson" (any number
        of roots) or "wilson_marginal" and "wilson_reject" (a single one), random walks, which are faster on flat scores
        ([Samp]; [Unb]); or "colbourn", word by word ([Samp]). None takes what is fast. Generators are as for every
        distribution: one, or one for each item.
        """
        check_sampler(method, single_root=self.single_root)
        return self._sample_by(item_seeds(generator, self.batch_shape.numel()), Size(sample_shape), sampler=method)

    def _are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return functions.are_trees(heads, lengths, single_root=self.single_root)
