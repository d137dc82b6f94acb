"""Between tensors and the arrays that compiled kernels take: contiguous, float64 or int64, in CPU memory."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from treeparse.kernels.arrays import FloatArray, IntArray


def floats(tensor: Tensor) -> FloatArray:
    """The tensor's values as float64, without a graph."""
    return tensor.detach().to("cpu", torch.float64).contiguous().numpy()


def integers(tensor: Tensor) -> IntArray:
    """The tensor's values as int64."""
    return tensor.detach().to("cpu", torch.int64).contiguous().numpy()


def run(kernel: Callable[..., Any], scores: Tensor, lengths: Tensor, *vectors: Tensor, **options: bool) -> Any:
    """A kernel's answer as tensors of the scores' device; CUDA tensors are copied to the CPU and back."""
    arrays = floats(scores), integers(lengths), *map(floats, vectors)
    found = kernel(*arrays, **options, threads=torch.get_num_threads())
    if isinstance(found, tuple):
        return tuple(torch.from_numpy(array).to(scores.device) for array in found)
    return torch.from_numpy(found).to(scores.device)
