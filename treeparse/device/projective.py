"""Projective trees on a CUDA device: what ``nonprojective`` does, for trees without crossing arcs."""

import torch
from torch import Tensor

from treeparse.device.launcher import Launcher, chart_doubles, chart_warps, draw, launch

LINES = 4  # as in sources/inside_outside.cuh
INSIDE_CHARTS, CHARTS = 4, 8  # of spans' weights, and with their derivatives
BEST_CHARTS = 8  # of sources/projective_best.cu, of scores and of keys
LOG_PARTITION, MARGINALS, LOG_MARGINALS = range(3)  # what is wanted


def log_partition(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Return the log of the summed weight of all trees, ``(B, n+1, n+1) -> (B,)``; -inf where there is none."""
    log_z = torch.empty_like(lengths, dtype=torch.float64)
    options = {"charts": INSIDE_CHARTS, "single_root": single_root, "launcher": launcher}
    _launch("projective_sums", scores, lengths, LOG_PARTITION, log_z, None, **options)
    return log_z


def log_partition_and_marginals(
    scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher
) -> tuple[Tensor, Tensor]:
    """Return the log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``, 0 without a tree."""
    results = torch.empty_like(lengths, dtype=torch.float64), _like(scores)
    _launch("projective_sums", scores, lengths, MARGINALS, *results, single_root=single_root, launcher=launcher)
    return results


def log_marginals(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Return the log probability of every arc ``(B, n+1, n+1)`` in nats; it is -inf exactly where no tree has the arc.

    Right to relative accuracy however improbable the arc.
    """
    logs = _like(scores)
    _launch("projective_sums", scores, lengths, LOG_MARGINALS, None, logs, single_root=single_root, launcher=launcher)
    return logs


def hessian_vector_product(
    scores: Tensor, lengths: Tensor, vectors: Tensor, *, single_root: bool, launcher: Launcher
) -> Tensor:
    """Return the Hessian of the log partition times ``vectors``, all ``(B, n+1, n+1)``.

    Ignored entries, forbidden arcs and items without a tree have 0, whatever ``vectors`` hold there.
    """
    product = _like(scores)
    options = {"is_dual": True, "single_root": single_root, "launcher": launcher}
    _launch("projective_product", scores, lengths, vectors.detach().contiguous(), product, **options)
    return product


def best_trees(scores: Tensor, lengths: Tensor, *, single_root: bool, launcher: Launcher) -> Tensor:
    """Return heads of the best trees, ``(B, n+1, n+1) -> (B, n+1)``; -1 at node 0, at padding and without a tree."""
    size = scores.shape[-1]
    heads = torch.empty(scores.shape[:2], dtype=torch.int64, device=scores.device)
    doubles = chart_doubles(BEST_CHARTS, size) + 2 * size  # a span and a head a node: four ints
    options = {"single_root": single_root, "launcher": launcher, "warps": chart_warps(size, launcher)}
    launch("projective_best_trees", scores, lengths, heads, doubles=doubles, **options)
    return heads


def sample_trees(
    scores: Tensor, lengths: Tensor, seeds: Tensor, count: int, *, single_root: bool, launcher: Launcher
) -> Tensor:
    """Draw heads ``(B, count, n+1)`` of trees with replacement, as ``nonprojective.sample_trees``; by one method."""
    size = scores.shape[-1]
    doubles = LINES * size + chart_doubles(INSIDE_CHARTS, size)
    options = {"single_root": single_root, "launcher": launcher, "warps": chart_warps(size, launcher)}
    return draw("projective_samples", scores, lengths, seeds, count, count, doubles=doubles, **options)


def _launch(
    kernel: str,
    scores: Tensor,
    lengths: Tensor,
    *arguments: Tensor | int | None,
    single_root: bool,
    launcher: Launcher,
    charts: int = CHARTS,
    is_dual: bool = False,
) -> None:
    size = scores.shape[-1]
    doubles = LINES * size + chart_doubles(charts, size) * (2 if is_dual else 1)
    options = {"single_root": single_root, "launcher": launcher, "warps": chart_warps(size, launcher)}
    launch(kernel, scores, lengths, *arguments, doubles=doubles + doubles % 2, **options)


def _like(scores: Tensor) -> Tensor:
    return torch.empty(scores.shape, dtype=torch.float64, device=scores.device)
