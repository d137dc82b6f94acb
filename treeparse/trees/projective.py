"""The distribution over dependency trees without crossing arcs."""

from typing import ClassVar

from torch import Tensor

from treeparse.trees import functions
from treeparse.trees.base import TreeCRF
from treeparse.trees.functions import KBest, Primitives


class ProjectiveCRF(TreeCRF):
    """A distribution over the projective trees: all words between the ends of an arc descend from its head.

    Node 0 stands left of all words, so no arc may cross one from the root. Arguments are those of ``TreeCRF``. Sums
    take O(n^3) by inside and outside passes over Eisner's chart and are right at any score scale; the best tree takes
    O(n^3) too. All of it is computed in CPU memory, to which CUDA tensors are copied, and comes back to their device.
    The rules for derivatives are those of ``TreeCRF``: one ``backward`` a distribution, no ``torch.func``.
    """

    projective: ClassVar[bool] = True

    @property
    def _primitives(self) -> Primitives:
        return functions.projective_primitives(single_root=self.single_root)

    def _log_marginals_of(self, scores: Tensor, lengths: Tensor) -> Tensor:
        return functions.log_marginals(scores, lengths, single_root=self.single_root, projective=True)

    def _best_trees_of(self, scores: Tensor, lengths: Tensor) -> Tensor:
        return functions.best_trees(scores, lengths, single_root=self.single_root, projective=True)

    def _k_best(self, scores: Tensor, lengths: Tensor) -> KBest:
        return functions.k_best(scores, lengths, single_root=self.single_root, projective=True)

    def _are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return functions.are_trees(heads, lengths, single_root=self.single_root, projective=True)
