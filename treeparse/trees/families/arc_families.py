"""Families of trees by compiled kernels, or in torch; and two that score arcs alone: all trees, and projective ones.

Families of trees with further kinds of part are in ``treeparse.trees.families.second_order``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.best import arborescence, eisner
from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest
from treeparse.kernels.lists.projective_lists import ProjectiveKBest
from treeparse.kernels.samples import nonprojective_samples as sampling
from treeparse.kernels.samples import projective_samples, without_replacement
from treeparse.kernels.sums import conditionals, elimination, hessian, inside_outside
from treeparse.trees.families import dense
from treeparse.trees.families.beam import Reach, sample_by_beam
from treeparse.trees.families.distinct import DrawKernels, sample_distinct
from treeparse.trees.families.family import DistinctMethod, DistinctTrees, Family, KBest, LabelDraws, Method, Tensors
from treeparse.trees.families.padded_arrays import floats, integers, run, seed_bits

METHODS = (None, *get_args(Method))  # in the order of the kernels' numbers; None takes the fastest


class KernelFunctions(NamedTuple):
    """Functions of the scores of all parts or of heads ``(B, n+1)``, and of lengths ``(B,)``, all on one device.

    Values of parts are one result a kind, arcs first.
    """

    log_partition: Callable[..., Any]
    log_partition_and_marginals: Callable[..., Any]
    hessian_vector_product: Callable[..., Any]
    log_marginals: Callable[..., Any]
    best_trees: Callable[..., Any]
    are_trees: Callable[..., Any]
    sample: Callable[..., Any]  # of seeds ``(B,)`` and the number of trees too


@dataclass(frozen=True)
class KernelFamily(Family):
    """Trees by functions of their own, here compiled kernels on the CPU; other tensors are copied there and back.

    Attributes:
        functions: the functions that compute values; here compiled kernels.
        drawing: the ``DrawKernels``, which take the options ``single_root`` and ``threads`` too.
        list_of_best: the lazy list of the best trees.
        reach: as for ``sample_by_beam``.
    """

    single_root: bool
    functions: ClassVar[KernelFunctions]
    drawing: ClassVar[tuple[Callable[..., Any], ...]]
    list_of_best: ClassVar[Callable[..., KBest]]

    @property
    def reach(self) -> Reach | None:
        return None

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call one of the functions; its results are on the device of the first argument."""
        return run(function, *arguments, single_root=self.single_root, **options)

    def log_partition(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return self.call(self.functions.log_partition, *parts, lengths)

    def sums(self, parts: Tensors, lengths: Tensor) -> Tensors:
        return self.call(self.functions.log_partition_and_marginals, *parts, lengths)

    def hessian_vector_product(self, parts: Tensors, lengths: Tensor, vectors: Tensors) -> Tensors:
        products = self.call(self.functions.hessian_vector_product, *parts, lengths, *vectors)
        return (products,) if isinstance(products, Tensor) else products

    def log_marginals(self, parts: Tensors, lengths: Tensor) -> Tensors:
        logs = self.call(self.functions.log_marginals, *parts, lengths)
        return (logs,) if isinstance(logs, Tensor) else logs

    def best_trees(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return self.call(self.functions.best_trees, *parts, lengths)

    def are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        return self.call(self.functions.are_trees, heads, lengths)

    def k_best(self, parts: Tensors, lengths: Tensor) -> KBest:
        """Return the lazy list of the best trees: in CPU memory, because a list grows one tree after another."""
        return self.list_of_best(*map(floats, parts), integers(lengths), single_root=self.single_root)

    def sample(
        self, parts: Tensors, lengths: Tensor, seeds: Tensor, count: int, method: Method | None = None
    ) -> Tensor:
        self._check_method(method)
        options = {} if method is None else {"method": method}
        return self.call(self.functions.sample, *parts, lengths, seeds, count, **options)

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
        """Draw different trees; None takes "beam" for crossing arcs on a device, and "repeat" otherwise.

        "repeat" and "trie" run on the CPU, because each round needs a device sync.
        """
        self._check_distinct_method(method)
        arcs, *others = parts
        beam_is_faster = self.crossing and (self.reach is not None or arcs.device.type != "cpu")
        method = method or ("beam" if beam_is_faster else "repeat")
        logs = None if labels is None or method == "repeat" else labels.log_probs()
        if method == "beam":
            options = {"single_root": self.single_root, "label_logs": logs, "reach": self.reach}
            return sample_by_beam(arcs, lengths, seeds, count, **options)
        bound = {"single_root": self.single_root, "threads": torch.get_num_threads()}
        sample, log_partition, trie = (partial(kernel, **bound) for kernel in self.drawing)
        kernels = DrawKernels(sample, log_partition, trie, self.part_kinds)
        arguments = floats(arcs), integers(lengths), seed_bits(seeds), count
        parts_besides = tuple(map(floats, others))
        if method == "trie":
            trees = kernels.trie(*arguments, others=parts_besides, label_logs=None if logs is None else floats(logs))
        else:
            trees = sample_distinct(kernels, *arguments, labels=labels, others=parts_besides)
        return DistinctTrees(*(torch.from_numpy(part).to(arcs.device) for part in trees))

    def _check_method(self, method: str | None) -> None:
        """Raise for an unknown sampler, or one that does not draw these trees."""
        if not self.crossing and method is not None:
            raise TreeparseError(f"Projective trees have one sampler, got {method!r}: leave the sampler out.")
        _check_name(method, METHODS[1:])
        if self.single_root and method == "wilson":
            raise TreeparseError("The sampler 'wilson' draws trees with any number of roots; use 'wilson_marginal'.")
        if not self.single_root and method == "wilson_marginal":
            raise TreeparseError(f"The sampler {method!r} draws trees with a single root; use 'wilson'.")

    def _check_distinct_method(self, method: str | None) -> None:
        """Raise for an unknown sampler without replacement, or one that does not draw these trees."""
        _check_name(method, get_args(DistinctMethod))
        if not self.crossing and method == "beam":
            raise TreeparseError("The sampler 'beam' does not draw projective trees; use 'repeat' or 'trie'.")


def _check_name(method: str | None, names: tuple[str | None, ...]) -> None:
    if method is not None and method not in names:
        raise TreeparseError(f"Unknown sampler {method!r:.60}. Samplers: {', '.join(map(repr, names))}.")


def _sample(
    scores: FloatArray,
    lengths: IntArray,
    seeds: np.ndarray,
    count: int,
    *,
    method: Method | None = None,
    **options: Any,
) -> IntArray:
    number = METHODS.index(method)
    heads, _ = sampling.sample_trees(scores, lengths, seeds.view(np.uint64), count, method=number, **options)
    return heads


@dataclass(frozen=True)
class Nonprojective(KernelFamily):
    """Sums by elimination in O(n^3), best trees in O(n^2)."""

    crossing: ClassVar[bool] = True
    name: ClassVar[str] = "nonprojective"
    description: ClassVar[str] = "all trees"
    functions: ClassVar[KernelFunctions] = KernelFunctions(
        log_partition=elimination.log_partition,
        log_partition_and_marginals=elimination.log_partition_and_marginals,
        hessian_vector_product=hessian.hessian_vector_product,
        log_marginals=conditionals.log_marginals,
        best_trees=arborescence.best_trees,
        are_trees=arborescence.are_trees,
        sample=_sample,
    )
    drawing: ClassVar[tuple[Callable[..., Any], ...]] = (
        _sample,
        elimination.log_partition,
        without_replacement.sample_distinct_trees,
    )
    list_of_best: ClassVar[Callable[..., KBest]] = NonprojectiveKBest


@dataclass(frozen=True)
class NonprojectiveInTorch(Nonprojective):
    """Sums in torch operations on the scores' device, whichever it is; everything else by the CPU's kernels."""

    @property
    def option(self) -> str:
        return "torch"

    def log_partition(self, parts: Tensors, lengths: Tensor) -> Tensor:
        return dense.log_partition(parts[0], lengths, single_root=self.single_root)

    def sums(self, parts: Tensors, lengths: Tensor) -> Tensors:
        return dense.log_partition_and_marginals(parts[0], lengths, single_root=self.single_root)

    def hessian_vector_product(self, parts: Tensors, lengths: Tensor, vectors: Tensors) -> Tensors:
        return (dense.hessian_vector_product(parts[0], lengths, vectors[0], single_root=self.single_root),)


@dataclass(frozen=True)
class Projective(KernelFamily):
    """Sums and best trees in O(n^3) over Eisner's chart."""

    crossing: ClassVar[bool] = False
    name: ClassVar[str] = "projective"
    description: ClassVar[str] = "trees without crossing arcs"
    functions: ClassVar[KernelFunctions] = KernelFunctions(
        log_partition=inside_outside.log_partition,
        log_partition_and_marginals=inside_outside.log_partition_and_marginals,
        hessian_vector_product=inside_outside.hessian_vector_product,
        log_marginals=inside_outside.log_marginals,
        best_trees=eisner.best_trees,
        are_trees=eisner.are_projective_trees,
        sample=projective_samples.sample_trees,
    )
    drawing: ClassVar[tuple[Callable[..., Any], ...]] = (
        projective_samples.sample_trees,
        inside_outside.log_partition,
        partial(without_replacement.sample_distinct_trees, projective=True),
    )
    list_of_best: ClassVar[Callable[..., KBest]] = ProjectiveKBest
