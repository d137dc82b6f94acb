"""Sums over projective trees on a CUDA device: ``treeparse.kernels.sums.inside_outside``, a block a sentence.

Functions take float64 scores ``(B, n+1, n+1)`` and int64 lengths ``(B,)`` on the launcher's device and return
tensors there, without a device sync and without autograd. An item's results do not depend on its batch.
"""

import torch
from torch import Tensor

from treeparse.device.launcher import Launcher, blocks_for, chart_doubles, chart_warps

LINES = 4  # as in sources/inside_outside.cuh
INSIDE_CHARTS, CHARTS = 4, 8  # of spans' weights, and with their derivatives
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
    items, size, _ = scores.shape
    if not items:
        return
    area = LINES * size + chart_doubles(charts, size) * (2 if is_dual else 1)
    area += area % 2
    shape, work = blocks_for(items, chart_warps(size, launcher), area, launcher, scores.device)
    constants = scores.detach().contiguous(), lengths.contiguous(), items, size, single_root
    launcher.launch(kernel, shape, *constants, work, area, *arguments)


def _like(scores: Tensor) -> Tensor:
    return torch.empty(scores.shape, dtype=torch.float64, device=scores.device)
