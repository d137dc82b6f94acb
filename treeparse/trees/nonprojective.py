"""The distribution over all dependency trees, crossing arcs included."""

from torch import Tensor

from treeparse.trees import functions
from treeparse.trees.base import TreeCRF


class NonProjectiveCRF(TreeCRF):
    """A distribution over all spanning trees below the root ([MTT]); arguments as in ``TreeCRF``.

    Sums take O(n^3) by elimination ([GTH]) and are right at any score scale; the best tree takes O(n^2).
    """

    def _log_partition_of(self, scores: Tensor, lengths: Tensor) -> Tensor:
        return functions.log_partition(scores, lengths, single_root=self.single_root)

    def _marginals_of(self, scores: Tensor, lengths: Tensor) -> Tensor:
        return functions.marginals(scores, lengths, single_root=self.single_root)

    def _best_trees_of(self, scores: Tensor, lengths: Tensor) -> Tensor:
        return functions.best_trees(scores, lengths, single_root=self.single_root)

    def _are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return functions.are_trees(heads, lengths, single_root=self.single_root)
