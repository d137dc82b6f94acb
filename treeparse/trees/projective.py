"""The distribution over dependency trees without crossing arcs."""

from functools import cached_property

from treeparse.trees import families
from treeparse.trees.crf import TreeCRF
from treeparse.trees.families import Family


class ProjectiveCRF(TreeCRF):
    """A distribution over the projective trees: all words between the ends of an arc descend from its head.

    Node 0 is left of all words, so no arc may cross an arc from the root. ``TreeCRF`` documents the arguments and the
    rules for derivatives: one ``backward`` a distribution, no ``torch.func``. Sums take O(n^3) by inside and outside
    passes over Eisner's chart and are right at any score scale; the best tree takes O(n^3) too. CUDA kernels compute
    sums, best trees and samples on the device; everything else runs on the CPU.
    """

    @cached_property
    def family(self) -> Family:  # pyright: ignore[reportIncompatibleMethodOverride]
        return families.projective(self.scores.device, single_root=self.single_root)
