"""The distributions over trees that score parts of several arcs."""

from functools import cached_property
from typing import ClassVar

from torch import Tensor

from treeparse.trees.crf import TreeCRF
from treeparse.trees.families import Family
from treeparse.trees.families.second_order import ProjectiveGrandparents, ProjectiveSiblings
from treeparse.trees.parts import PartKind


class SiblingCRF(TreeCRF):
    """A distribution over the projective trees by the scores of arcs and of adjacent siblings ([Lec]).

    Every word has one sibling: the next dependent of its head between the two, or, for the dependent nearest to the
    head on its side, the head itself. ``part_marginals`` has the probabilities of both kinds of part. Sums and the best
    tree take O(n^3) on the CPU and are right at any score scale.

    Args:
        scores: ``(*batch, n+1, n+1)`` log weights of arcs ``[head, dependent]``, -inf or from -1e12 to 1e12.
        siblings: ``(*batch, n+1, n+1, n+1)`` log weights ``[head, dependent, sibling]``, likewise. Entries whose
            sibling is neither between head and dependent nor the head are ignored, whatever they hold. Of 16 or 32
            bits, they are read without a copy, which is fastest.
        lengths: ``(*batch,)`` numbers of words; all ``n`` if None.
        single_root: whether exactly one word hangs from the root.
        validate_args: whether NaN, +inf and too large scores and items without a tree raise; torch's default if None.

    ``TreeCRF`` has the rules for derivatives: call ``backward`` once for each distribution; ``torch.func`` raises.
    """

    kinds: ClassVar[tuple[PartKind, ...]] = ProjectiveSiblings.kinds

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

    @cached_property
    def family(self) -> Family:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ProjectiveSiblings(self.single_root)


class SecondOrderCRF(TreeCRF):
    """A distribution over the projective trees by the scores of arcs, of siblings and of grandparents ([Lec]).

    To the parts of ``SiblingCRF`` it adds one for every word whose head is a word: the head of that head. Sums and the
    best tree take O(n^4) on the CPU, in memory of O(n^3), and are right at any score scale.

    Args:
        scores: as in ``SiblingCRF``, like ``siblings``, ``lengths``, ``single_root`` and ``validate_args``.
        siblings: ``(*batch, n+1, n+1, n+1)``.
        grandparents: ``(*batch, n+1, n+1, n+1)`` log weights ``[head, dependent, grandparent]``. Entries of head 0, and
            those whose grandparent is one of the two or between them, are ignored, whatever they hold.
        lengths: ``(*batch,)``.
        single_root: whether exactly one word hangs from the root.
        validate_args: torch's default if None.
    """

    kinds: ClassVar[tuple[PartKind, ...]] = ProjectiveGrandparents.kinds

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

    @cached_property
    def family(self) -> Family:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ProjectiveGrandparents(self.single_root)
