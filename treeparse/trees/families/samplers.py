"""The names of the samplers, and draws without replacement of any family by the method of that name."""

from collections.abc import Sequence
from typing import get_args

from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.families.arrays import floats, integers, seed_bits, tensors
from treeparse.trees.families.distinct import DrawKernels, sample_distinct
from treeparse.trees.families.family import DistinctMethod, DistinctTrees, LabelDraws, Method

METHODS = (None, *get_args(Method))  # in the order of the kernels' numbers; None takes what is fast


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
    """Trees drawn without replacement by "repeat" or "trie"."""
    arguments = floats(scores), integers(lengths), seed_bits(seeds), count
    if method == "trie":
        found = kernels.trie(*arguments, label_logs=None if labels is None else floats(labels.log_probs()))
    else:
        found = sample_distinct(kernels, *arguments, labels=labels)
    return DistinctTrees(*tensors(found, scores.device))


def check_method(method: str | None, *, single_root: bool) -> None:
    """Raise for a sampler of non-projective trees that does not exist, or draws trees with another number of roots."""
    _check_name(method, METHODS[1:])
    if single_root and method == "wilson":
        raise TreeparseError("Wilson's sampler draws trees with any number of roots: choose 'wilson_marginal'.")
    if not single_root and method in ("wilson_marginal", "wilson_reject"):
        raise TreeparseError(f"The sampler {method!r} draws trees with a single root: choose 'wilson'.")


def check_projective_method(method: str | None) -> None:
    """Raise for any sampler of projective trees that is named."""
    if method is not None:
        raise TreeparseError(f"Projective trees are drawn in one way: leave out the sampler {method!r}.")


def check_distinct_method(method: str | None, *, crossing: bool) -> None:
    """Raise for a sampler without replacement that does not exist, or not for these trees."""
    _check_name(method, get_args(DistinctMethod))
    if not crossing and method == "beam":
        raise TreeparseError("The sampler 'beam' does not draw projective trees: choose 'repeat' or 'trie'.")


def _check_name(method: str | None, names: Sequence[str | None]) -> None:
    if method is not None and method not in names:
        raise TreeparseError(f"There is no sampler {method!r}: choose one of {', '.join(map(repr, names))}.")
