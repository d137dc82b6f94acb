"""The names of samplers, and draws without replacement by the sampler of a name."""

from collections.abc import Sequence
from typing import get_args

from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.families.arrays import floats, integers, seed_bits, tensors
from treeparse.trees.families.distinct import DrawKernels, sample_distinct
from treeparse.trees.families.family import DistinctMethod, DistinctTrees, LabelDraws, Method

METHODS = (None, *get_args(Method))  # in the order of the kernels' numbers; None takes the fastest


def draw_on_cpu(
    kernels: DrawKernels,
    scores: Tensor,
    lengths: Tensor,
    seeds: Tensor,
    count: int,
    *,
    method: DistinctMethod,
    labels: LabelDraws | None,
) -> DistinctTrees:
    """Draw trees without replacement by "repeat" or "trie"."""
    arguments = floats(scores), integers(lengths), seed_bits(seeds), count
    if method == "trie":
        trees = kernels.trie(*arguments, label_logs=None if labels is None else floats(labels.log_probs()))
    else:
        trees = sample_distinct(kernels, *arguments, labels=labels)
    return DistinctTrees(*tensors(trees, scores.device))


def check_method(method: str | None, *, single_root: bool) -> None:
    """Raise for an unknown sampler of non-projective trees, or one for another number of roots."""
    _check_name(method, METHODS[1:])
    if single_root and method == "wilson":
        raise TreeparseError("The sampler 'wilson' draws trees with any number of roots; use 'wilson_marginal'.")
    if not single_root and method == "wilson_marginal":
        raise TreeparseError(f"The sampler {method!r} draws trees with a single root; use 'wilson'.")


def check_projective_method(method: str | None) -> None:
    """Raise for any sampler, because projective trees have only one."""
    if method is not None:
        raise TreeparseError(f"Projective trees have one sampler, got {method!r}: leave the sampler out.")


def check_distinct_method(method: str | None, *, crossing: bool) -> None:
    """Raise for an unknown sampler without replacement, or one that does not draw these trees."""
    _check_name(method, get_args(DistinctMethod))
    if not crossing and method == "beam":
        raise TreeparseError("The sampler 'beam' does not draw projective trees; use 'repeat' or 'trie'.")


def _check_name(method: str | None, names: Sequence[str | None]) -> None:
    if method is not None and method not in names:
        raise TreeparseError(f"Unknown sampler {method!r}. Samplers: {', '.join(map(repr, names))}.")
