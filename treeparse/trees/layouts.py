"""Scores, marginals and trees in the layouts of other libraries, and back.

treeparse has ``scores[..., head, dependent]`` of ``n+1`` nodes; node 0 is the root. All libraries pad short sentences
at the end. Lengths count words, but in SynJax they count nodes.

| library | scores | entries that are no arcs |
|:--|:--|:--|
| torch-struct | ``(*batch, n, n)`` ``[head, dependent]``, arcs from the root on the diagonal | there are none |
| SuPar | ``(*batch, n+1, n+1)`` ``[dependent, head]`` | ignored |
| SynJax | ``(*batch, n+1, n+1)`` ``[head, dependent]``, in JAX's arrays | ignored |
| ufal.chu_liu_edmonds | ``(n+1, n+1)`` ``[dependent, head]``, NumPy's float64 | NaN |

What one of these functions fills in, where a layout lacks entries, is ``no_arc``: -inf in scores, 0 in marginals.
``help("treeparse.trees.layouts")`` shows this table::

    from treeparse import NonProjectiveCRF
    from treeparse.trees.layouts import from_torch_struct, to_torch_struct

    p = NonProjectiveCRF(from_torch_struct(log_potentials))  # as NonProjectiveDependencyCRF(log_potentials)
    marginals = to_torch_struct(p.marginals)
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.checks import DTYPES
from treeparse.trees.relaxed import arcs_of

INTEGERS = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8


def from_torch_struct(scores: Tensor, no_arc: float = -torch.inf) -> Tensor:
    """Convert ``(*batch, n, n)`` of torch-struct to ``(*batch, n+1, n+1)``."""
    _check_square(scores, 1)
    diagonal = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
    between = scores.masked_fill(diagonal, no_arc)
    rows = torch.cat([scores.diagonal(dim1=-2, dim2=-1).unsqueeze(-2), between], -2)
    return torch.nn.functional.pad(rows, (1, 0), value=no_arc)


def to_torch_struct(scores: Tensor) -> Tensor:
    """Convert ``(*batch, n+1, n+1)`` to the ``(*batch, n, n)`` of torch-struct."""
    _check_square(scores, 2)
    diagonal = torch.eye(scores.shape[-1] - 1, dtype=torch.bool, device=scores.device)
    return torch.where(diagonal, scores[..., :1, 1:], scores[..., 1:, 1:])


def from_supar(scores: Tensor) -> Tensor:
    """Convert ``(*batch, n+1, n+1)`` ``[dependent, head]`` of SuPar to ``[head, dependent]``."""
    _check_square(scores, 2)
    return scores.transpose(-2, -1)


def to_supar(scores: Tensor) -> Tensor:
    """Convert ``(*batch, n+1, n+1)`` ``[head, dependent]`` to the ``[dependent, head]`` of SuPar."""
    return from_supar(scores)


def from_synjax(scores: Any, lengths: Any = None) -> tuple[Tensor, Tensor | None]:
    """Convert SynJax's ``(*batch, n+1, n+1)`` and its lengths, which count the root, to tensors of ours."""
    tensor = torch.from_numpy(np.array(scores))
    _check_square(tensor, 2)
    return tensor, None if lengths is None else torch.from_numpy(np.array(lengths)).to(torch.int64) - 1


def to_synjax(scores: Tensor, lengths: Tensor | None = None) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Convert ours to arrays that JAX takes: ``(*batch, n+1, n+1)``, and lengths that count the root."""
    _check_square(scores, 2)
    nodes = None if lengths is None else (_on_cpu(lengths).to(torch.int32) + 1).numpy()
    return _on_cpu(scores).to(torch.promote_types(scores.dtype, torch.float32)).numpy(), nodes


def from_ufal(scores: NDArray[np.float64]) -> Tensor:
    """Convert ``(n+1, n+1)`` ``[dependent, head]`` of ufal.chu_liu_edmonds; NaN becomes -inf."""
    tensor = torch.from_numpy(np.array(scores, np.float64))
    _check_square(tensor, 2)
    return torch.where(tensor.isnan(), -torch.inf, tensor).mT


def to_ufal(scores: Tensor) -> NDArray[np.float64]:
    """Convert ``(n+1, n+1)`` to the ``[dependent, head]`` of ufal.chu_liu_edmonds, where NaN forbids an arc."""
    _check_square(scores, 2)
    if scores.dim() != 2:
        raise TreeparseError(f"One sentence (n+1, n+1) is what ufal.chu_liu_edmonds takes, got {tuple(scores.shape)}.")
    scores = _on_cpu(scores).to(torch.float64)
    is_no_arc = (scores == -torch.inf) | torch.eye(len(scores), dtype=torch.bool)
    is_no_arc[:, 0] = True
    return torch.where(is_no_arc, torch.nan, scores).mT.contiguous().numpy()


def to_arcs(heads: Tensor) -> Tensor:
    """Convert heads ``(*batch, n+1)``, negative where there is none, to arcs ``(*batch, n+1, n+1)`` of 0 and 1."""
    if not heads.dim() or heads.dtype not in INTEGERS:
        raise TreeparseError(f"Heads must be integers (*batch, n+1), got {heads.dtype} {tuple(heads.shape)}.")
    return arcs_of(heads).to(torch.float32)


def from_arcs(arcs: Tensor) -> Tensor:
    """Convert arcs ``(*batch, n+1, n+1)`` of 0 and 1 to heads ``(*batch, n+1)``, -1 at nodes without an arc."""
    _check_square(arcs, 2)
    numbers = arcs.to(torch.float32)
    return torch.where(numbers.amax(-2) > 0, numbers.argmax(-2), -1)


def _on_cpu(tensor: Tensor) -> Tensor:
    if tensor.is_meta or tensor.dtype not in (*DTYPES, *INTEGERS):
        raise TreeparseError(f"A tensor of real numbers can be converted, got {tensor.dtype} on {tensor.device}.")
    return tensor.detach().cpu()


def _check_square(scores: Tensor, least: int) -> None:
    shape = tuple(scores.shape)
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < least:
        raise TreeparseError(f"Scores must have the shape (*batch, N, N) with N of {least} or more, got {shape}.")
    if scores.dtype not in (*DTYPES, *INTEGERS, torch.bool):
        raise TreeparseError(f"Scores must be real numbers, got {scores.dtype}.")
