"""The distributions over trees that score arcs alone."""

from typing import get_args

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees import families
from treeparse.trees.crf import TreeCRF
from treeparse.trees.families import Backend, Family
from treeparse.trees.families.arc_families import Nonprojective, Projective

BACKENDS = get_args(Backend)


class NonProjectiveCRF(TreeCRF):
    """A distribution over all spanning trees below the root ([MTT]); arguments as in ``TreeCRF``, and a backend.

    Sums take O(n^3) by elimination ([GTH]) and are right for small and large scores; the best tree takes O(n^2).

    ``TreeCRF`` has the rules for derivatives: call ``backward`` once for each distribution.

    Args:
        scores: ``(*batch, n+1, n+1)`` log weights of arcs, -inf or from -1e6 to 1e6.
        lengths: ``(*batch,)`` numbers of words; all ``n`` if None.
        single_root: whether exactly one word hangs from the root.
        backend: "numba", the compiled kernels for CPU memory; "torch", whose sums stay on the scores' device; "cuda",
            kernels for CUDA devices; None takes the fastest backend for the scores' device.
        validate_args: whether NaN, +inf and too large scores and items without a tree raise; torch's default if None.
    """

    tree_family = Nonprojective

    def __init__(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        single_root: bool = True,
        backend: Backend | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if backend is not None and backend not in BACKENDS:
            names = ", ".join(map(repr, BACKENDS))
            raise TreeparseError(f"Unknown backend {backend!r}. Backends: {names}; None takes the fastest.")
        self.backend: Backend | None = backend
        super().__init__(scores, lengths, single_root=single_root, validate_args=validate_args)

    @classmethod
    def make_family(cls, device: torch.device, single_root: bool, option: str = "") -> Family:
        return families.nonprojective(device, single_root=single_root, backend="torch" if option else None)

    @property
    def family(self) -> Family:  # pyright: ignore[reportIncompatibleMethodOverride]
        return families.nonprojective(self.scores.device, single_root=self.single_root, backend=self.backend)


class ProjectiveCRF(TreeCRF):
    """A distribution over the projective trees: all words between the ends of an arc descend from its head.

    Node 0 is left of all words, so no arc may cross an arc from the root. Sums take O(n^3) by inside and outside passes
    over Eisner's chart and are right for small and large scores; the best tree takes O(n^3) too. CUDA kernels compute
    sums, best trees and samples on the device; everything else runs on the CPU.

    ``TreeCRF`` has the arguments and the rules for derivatives: call ``backward`` once for each distribution.
    """

    tree_family = Projective

    @classmethod
    def make_family(cls, device: torch.device, single_root: bool, option: str = "") -> Family:
        return families.projective(device, single_root=single_root)
