"""The distributions over trees that score parts of several arcs."""

from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.approximate import MeanFieldCRF, mean_field
from treeparse.trees.crf import TreeCRF
from treeparse.trees.families.second_order import NonprojectiveSiblings, ProjectiveGrandparents, ProjectiveSiblings


class SiblingCRF(TreeCRF):
    """A distribution over the projective trees by the scores of arcs and of adjacent siblings ([Lec]).

    Every word has one sibling: the next dependent of its head between the two, or, for the dependent nearest to the
    head on its side, the head itself. ``part_marginals`` has the probabilities of both kinds of part. Sums and the best
    tree take O(n^3) on the CPU and are right for small and large scores.

    Args:
        scores: ``(*batch, n+1, n+1)`` log weights of arcs ``[head, dependent]``, -inf or from -1e6 to 1e6.
        siblings: ``(*batch, n+1, n+1, n+1)`` log weights ``[head, dependent, sibling]``, likewise. Entries whose
            sibling is neither between head and dependent nor the head are ignored, whatever they hold. Of 16 or 32
            bits, they are read without a copy, which is fastest.
        lengths: ``(*batch,)`` numbers of words; all ``n`` if None.
        single_root: whether exactly one word hangs from the root.
        validate_args: whether NaN, +inf and too large scores and items without a tree raise; torch's default if None.

    ``TreeCRF`` has the rules for derivatives: call ``backward`` once for each distribution.
    """

    tree_family = ProjectiveSiblings

    def __init__(
        self,
        scores: Tensor,
        siblings: Tensor,
        lengths: Tensor | None = None,
        *,
        single_root: bool = True,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(scores, lengths, others=(siblings,), single_root=single_root, validate_args=validate_args)


class SecondOrderCRF(TreeCRF):
    """A distribution over the projective trees by the scores of arcs, of siblings and of grandparents ([Lec]).

    To the parts of ``SiblingCRF`` it adds one for every word whose head is a word: the head of that head. Sums and the
    best tree take O(n^4) on the CPU, in memory of O(n^3), and are right for small and large scores.

    Args:
        scores: as in ``SiblingCRF``, like ``siblings``, ``lengths``, ``single_root`` and ``validate_args``.
        siblings: ``(*batch, n+1, n+1, n+1)``.
        grandparents: ``(*batch, n+1, n+1, n+1)`` log weights ``[head, dependent, grandparent]``. Entries of head 0, and
            those whose grandparent is one of the two or between them, are ignored, whatever they hold.
        lengths: ``(*batch,)``.
        single_root: whether exactly one word hangs from the root.
        validate_args: torch's default if None.
    """

    tree_family = ProjectiveGrandparents

    def __init__(
        self,
        scores: Tensor,
        siblings: Tensor,
        grandparents: Tensor,
        lengths: Tensor | None = None,
        *,
        single_root: bool = True,
        validate_args: bool | None = None,
    ) -> None:
        others = siblings, grandparents
        super().__init__(scores, lengths, others=others, single_root=single_root, validate_args=validate_args)


class BoundedMode(NamedTuple):
    """Trees, and how far they may be from the best ones."""

    heads: Tensor  # (*batch, n+1) of the best tree found, -1 if none was found
    scores: Tensor  # (*batch,) of these trees, -inf if none was found
    bounds: Tensor  # (*batch,) no tree scores more
    certified: Tensor  # (*batch,) bool: whether the tree is known to be the best one, but for rounding


class NonProjectiveSiblingCRF(TreeCRF):
    """Scores of arcs and adjacent siblings over all trees, crossing arcs included: exact best trees, without sums.

    The best tree is NP-hard to find in the worst case. Branch and bound over dual decomposition (Koo et al. 2010) finds
    it, with a certificate, in a fraction of a millisecond for most sentences of a trained parser. Of several best trees
    it may be any, but always the same one. Sums, and what needs them, raise an error: ``mean_field`` approximates them.

    Args:
        scores: as in ``SiblingCRF``, like ``lengths``, ``single_root`` and ``validate_args``.
        siblings: ``(*batch, n+1, n+1, n+1)`` log weights ``[head, dependent, sibling]``, as in ``SiblingCRF``.
        lengths: ``(*batch,)``.
        single_root: whether exactly one word hangs from the root.
        limit: the largest number of branches that ``mode`` searches for an item; None for no limit, so that ``mode``
            is exact. See ``mode_with_bound``.
        validate_args: torch's default if None.
    """

    tree_family = NonprojectiveSiblings
    search_limits = (1, 20)  # a trained parser needs fewer branches than 20, a new one may need any number

    def __init__(
        self,
        scores: Tensor,
        siblings: Tensor,
        lengths: Tensor | None = None,
        *,
        single_root: bool = True,
        limit: int | None = None,
        validate_args: bool | None = None,
    ) -> None:
        _check_limit(limit)
        self.limit = limit
        super().__init__(scores, lengths, others=(siblings,), single_root=single_root, validate_args=validate_args)

    @classmethod
    def make_family(cls, device: torch.device, single_root: bool, option: str = "") -> NonprojectiveSiblings:
        return NonprojectiveSiblings(single_root, int(option) if option else None)

    @property
    def family(self) -> NonprojectiveSiblings:  # pyright: ignore[reportIncompatibleMethodOverride]
        return NonprojectiveSiblings(self.single_root, self.limit)

    def mode_with_bound(self, limit: int | None = None) -> BoundedMode:
        """Search for the best trees, and stop after ``limit`` branches an item: each is up to 200 rounds of O(n^3).

        ``limit=1`` is the fastest. Without a limit all trees are certified, but for that the search has no end in sight
        where scores are hostile. Scores and bounds are constants: ``p.score(result.heads)`` has a gradient.

        Raises:
            TreeparseError: unless the limit is None or an integer, 1 or more.
            NoTreeError: for an item that is known to have no tree, if arguments are validated.
        """
        batched = self.batched
        _check_limit(limit)
        batched.check_values()
        heads, scores, bounds, certified = self.family.best_trees_with_bounds(
            batched.original_parts, batched.lengths, limit
        )
        batched.require(bounds > -torch.inf)
        scores, bounds = self._round(batched.in_batch_shape(scores)), self._round(batched.in_batch_shape(bounds))
        return BoundedMode(batched.in_batch_shape(heads), scores, bounds, batched.in_batch_shape(certified))

    def mean_field(self, rounds: int = 3) -> MeanFieldCRF:
        """Approximate this distribution by one that scores arcs alone, differentiable once in all scores.

        Marginals are near the true ones where siblings matter less than arcs; with scores of 0 they are right.

        Args:
            rounds: the number of damped rounds, each as costly as marginals; 0 leaves siblings out.

        Raises:
            TreeparseError: for a negative number of rounds.
        """
        if rounds < 0:
            raise TreeparseError(f"The number of rounds must be 0 or more, got {rounds}.")
        batched = self.batched
        arguments = batched.arcs, batched.original_parts[1], batched.lengths
        p = mean_field(*arguments, single_root=self.single_root, rounds=rounds, validate_args=batched.validate)
        return p if len(self.batch_shape) == 1 else p.with_scores(batched.in_batch_shape(p.scores), self.lengths)


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise TreeparseError(f"A limit must be a number of branches, 1 or more, or None, got {limit!r}.")
