"""The distribution over dependency trees without crossing arcs."""

from functools import cached_property

from treeparse.trees import families
from treeparse.trees.crf import TreeCRF
from treeparse.trees.families import Family


class ProjectiveCRF(TreeCRF):
    """A distribution over the projective trees: all words between the ends of an arc descend from its head.

    Node 0 stands left of all words, so no arc may cross one from the root. Arguments are those of ``TreeCRF``. Sums
    take O(n^3) by inside and outside passes over Eisner's chart and are right at any score scale; the best tree takes
    O(n^3) too. CUDA tensors have kernels of their own; what these do not do is done in CPU memory.
    The rules for derivatives are those of ``TreeCRF``: one ``backward`` a distribution, no ``torch.func``.
    """

    @cached_property
    def family(self) -> Family:  # pyright: ignore[reportIncompatibleMethodOverride]
        return families.projective(self.scores.device, single_root=self.single_root)
