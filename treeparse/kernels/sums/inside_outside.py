"""Sums over projective trees with scores of arcs, siblings and grandparents: plain weights, and logs where these fail.

The parts of trees are arcs, whose scores are ``(B, n+1, n+1)`` [head, dependent] in float64; siblings, whose scores are
``(B, n+1, n+1, n+1)`` [head, dependent, the dependent before, or the head]; and grandparents, whose scores are
``(B, n+1, n+1, n+1)`` [head, dependent, the head's head]. Every function takes one, two or three of them, in this
order, then lengths ``(B,)``. Siblings and grandparents are both float32 or both float64.
"""

from typing import Any

import numpy as np

from treeparse.kernels import AnyFloatArray, FloatArray, IntArray
from treeparse.kernels.spans import ARCS, GRANDPARENTS
from treeparse.kernels.sums import charts, grandparent_charts, spans_in_logs
from treeparse.kernels.threads import run_batch

PRECISE = -660.0  # of the log of a marginal times Z after scaling: underflow has lost less than 1e-18 of it
LOWEST_SCORE = -1e300  # instead of -inf, whose difference to itself is no number
Parts = tuple[AnyFloatArray, ...]


def log_partition(*parts_and_lengths: Any, single_root: bool, threads: int = 1) -> FloatArray:
    """Return the log of the summed weight of all projective trees ``(B,)``, -inf without a tree."""
    *parts, lengths = parts_and_lengths
    results = tuple(part[:0] for part in parts)
    return _fill(tuple(parts), lengths, results, single_root=single_root, threads=threads)


def log_partition_and_marginals(*parts_and_lengths: Any, single_root: bool, threads: int = 1) -> tuple[Any, ...]:
    """Return the log partition ``(B,)`` and the probabilities of all parts, 0 without a tree."""
    *parts, lengths = parts_and_lengths
    results = tuple(map(np.zeros_like, parts))
    return _fill(tuple(parts), lengths, results, single_root=single_root, threads=threads), *results


def log_marginals(*parts_and_lengths: Any, single_root: bool, threads: int = 1) -> Any:
    """Return the log probabilities of all parts in nats, a tuple unless there are arcs alone.

    They are -inf exactly where no tree has the part, and right to relative accuracy however improbable it is: the error
    of a logarithm is about 1e-15 times the summed largest magnitudes of the words' scores.
    """
    *parts, lengths = parts_and_lengths
    results = tuple(np.full_like(part, -np.inf) for part in parts)
    log_z, items = np.empty(len(lengths)), np.arange(len(lengths))
    if len(parts) == ARCS:
        items = _logs_of_plain(parts[0], lengths, results[0], single_root=single_root, threads=threads)
    spans_in_logs.sum_items(tuple(parts), lengths, items, log_z, results, single_root=single_root, threads=threads)
    return results if len(results) > ARCS else results[0]


def _logs_of_plain(scores: FloatArray, lengths: IntArray, logs: FloatArray, **options: Any) -> IntArray:
    """Store log marginals where plain weights are as precise; return the items ``(I,)`` where they are not."""
    log_z, marginals = log_partition_and_marginals(scores, lengths, **options)
    nodes = np.arange(scores.shape[1])
    is_node = nodes <= lengths[:, None]
    arcs = is_node[:, :, None] & is_node[:, None] & (nodes > 0) & (nodes[:, None] != nodes) & (scores > -np.inf)
    weights = np.where(arcs, scores, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        tops = np.maximum(weights.max(1), LOWEST_SCORE)
        log_sums = tops + np.log(np.exp(weights - tops[:, None]).sum(1))
        shared = log_z - np.where(is_node & (nodes > 0), log_sums, 0.0).sum(1)
        of_arcs = np.log(np.minimum(marginals, 1.0))
        is_precise = np.where(arcs, of_arcs, 0.0).min((1, 2), initial=0.0) + np.minimum(shared, 0.0) > PRECISE
    logs[is_precise] = np.where(arcs, of_arcs, -np.inf)[is_precise]
    return (~is_precise).nonzero()[0]


def hessian_vector_product(*parts_lengths_and_vectors: Any, single_root: bool, threads: int = 1) -> Any:
    """Return the Hessian of the log partition in all scores times vectors, a tuple unless there are arcs alone.

    Vectors follow the lengths and have the shapes of the parts, as have the results. Ignored entries, forbidden parts
    and items without a tree have 0, whatever the vectors hold there.
    """
    order = len(parts_lengths_and_vectors) // 2
    parts, lengths, given = (
        parts_lengths_and_vectors[:order],
        parts_lengths_and_vectors[order],
        parts_lengths_and_vectors[order + 1 :],
    )
    vectors = tuple(vector.astype(part.dtype, copy=False) for part, vector in zip(parts, given, strict=True))
    results = tuple(map(np.zeros_like, parts))
    _fill(parts, lengths, results, vectors, single_root=single_root, threads=threads)
    return results if order > ARCS else results[0]


def _fill(
    parts: Parts, lengths: IntArray, results: Parts, vectors: Parts = (), *, single_root: bool, threads: int
) -> FloatArray:
    """Store marginals where the results have room for them, or products with vectors; return log partitions."""
    log_z, nothing = np.empty(len(lengths)), (None,) * (len(parts) == ARCS)
    kernels, steps = (grandparent_charts, 2) if len(parts) == GRANDPARENTS else (charts, 5)
    kernel = kernels.multiply if vectors else kernels.sum_trees
    scores = (*parts, *nothing, *vectors, *nothing) if vectors else (*parts, *nothing)
    arguments = lengths, *scores, single_root, log_z, *results, *nothing
    run_batch(kernel, lambda n: steps * n ** max(1 + len(parts), 3), *arguments, threads=threads)
    items = np.isnan(log_z).nonzero()[0]
    if len(items) > 0:
        wanted = results if len(results[0]) > 0 else ()
        options = {"single_root": single_root, "threads": threads}
        spans_in_logs.sum_items(parts, lengths, items, log_z, wanted, vectors, **options)
        for result in wanted if not vectors else ():
            result[items] = np.exp(result[items])
    return log_z
