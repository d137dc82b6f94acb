"""Which sampler draws, with and without replacement, and where it runs.

All draw by the same laws. With replacement the kernels choose; without, repeats are dropped on the CPU, and on other
devices a stochastic beam search keeps all tensors there.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from treeparse.core import TreeparseError
from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.samples import nonprojective as sampling
from treeparse.kernels.samples import projective as projective_sampling
from treeparse.kernels.samples import without_replacement as trie
from treeparse.trees import beam, distinct
from treeparse.trees.arrays import floats, integers
from treeparse.trees.label_scores import LabelScores

Sampler = Literal["expansion", "wilson", "wilson_marginal", "wilson_reject", "colbourn"]
DistinctSampler = Literal["repeat", "trie", "beam"]
SAMPLERS = (None, *get_args(Sampler))  # in the order of the kernels' numbers; None takes what is fast


class Family(NamedTuple):
    """Which trees are drawn."""

    single_root: bool
    projective: bool


def sample_trees(
    family: Family, scores: Tensor, lengths: Tensor, seeds: np.ndarray, count: int, sampler: Sampler | None
) -> Tensor:
    """Heads ``(B, count, n+1)`` of trees drawn with replacement, by a seed an item; -1 where there is none."""
    draw = partial(_sample_arrays, family, SAMPLERS.index(sampler))
    return torch.from_numpy(draw(floats(scores), integers(lengths), seeds, count)).to(scores.device)


def sample_distinct_trees(
    family: Family,
    scores: Tensor,
    lengths: Tensor,
    seeds: np.ndarray,
    count: int,
    *,
    sampler: DistinctSampler | None,
    labels: LabelScores | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Trees drawn without replacement, by a seed an item, in their order.

    Returns:
        Heads ``(B, count, n+1)`` or, with labels, heads and labels ``(B, count, 2n+2)``; log probabilities and keys
        ``(B, count)``, float64. Past the number of trees -1, -inf and -inf.
    """
    if sampler is None:
        sampler = "repeat" if scores.device.type == "cpu" or family.projective else "beam"
    if sampler == "beam":
        logs = None if labels is None else labels.log_probs()
        return beam.sample_trees(scores, lengths, seeds, count, single_root=family.single_root, label_logs=logs)
    arguments = floats(scores), integers(lengths), seeds, count
    options = {**family._asdict(), "threads": torch.get_num_threads()}
    if sampler == "trie":
        logs = None if labels is None else floats(labels.log_probs())
        found = trie.sample_trees(*arguments, label_logs=logs, **options)
    else:
        draw = partial(_sample_arrays, family, sampling.AUTO)
        found = distinct.sample_trees(draw, *arguments, labels=labels, **options)
    rows, log_probs, keys = (torch.from_numpy(part).to(scores.device) for part in found)
    return rows, log_probs, keys


def _sample_arrays(
    family: Family, method: int, scores: FloatArray, lengths: IntArray, seeds: np.ndarray, count: int
) -> IntArray:
    options = {"single_root": family.single_root, "threads": torch.get_num_threads()}
    if family.projective:
        return projective_sampling.sample_trees(scores, lengths, seeds, count, **options)
    heads, _ = sampling.sample_trees(scores, lengths, seeds, count, method=method, **options)
    return heads


def check_sampler(sampler: str | None, *, single_root: bool) -> None:
    """Raise for a sampler that does not exist, or draws trees with another number of roots."""
    _check_name(sampler, SAMPLERS[1:])
    if single_root and sampler == "wilson":
        raise TreeparseError("Wilson's sampler draws trees with any number of roots: choose 'wilson_marginal'.")
    if not single_root and sampler in ("wilson_marginal", "wilson_reject"):
        raise TreeparseError(f"The sampler {sampler!r} draws trees with a single root: choose 'wilson'.")


def check_distinct_sampler(sampler: str | None, *, projective: bool) -> None:
    """Raise for a sampler without replacement that does not exist, or not for these trees."""
    _check_name(sampler, get_args(DistinctSampler))
    if projective and sampler == "beam":
        raise TreeparseError("The sampler 'beam' does not draw projective trees: choose 'repeat' or 'trie'.")


def _check_name(sampler: str | None, names: Sequence[str | None]) -> None:
    if sampler is not None and sampler not in names:
        raise TreeparseError(f"There is no sampler {sampler!r}: choose one of {', '.join(map(repr, names))}.")
