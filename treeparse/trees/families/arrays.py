"""Between tensors and the arrays that compiled kernels take: contiguous, float64 or int64, in CPU memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from treeparse.kernels.arrays import FloatArray, IntArray


def floats(tensor: Tensor) -> FloatArray:
    """The tensor's values as float64, without a graph."""
    return _as_array(tensor, torch.float64)


def integers(tensor: Tensor) -> IntArray:
    """The tensor's values as int64."""
    return _as_array(tensor, torch.int64)


def _as_array(tensor: Tensor, dtype: torch.dtype) -> Any:
    tensor = tensor.detach()
    if (
        tensor.dtype is not dtype or not tensor.is_cpu or not tensor.is_contiguous()
    ):  # to ask takes less than to convert
        tensor = tensor.to("cpu", dtype).contiguous()
    return tensor.numpy()


def run(kernel: Callable[..., Any], first: Tensor, *others: Any, **options: Any) -> Any:
    """A kernel's answer as tensors of the first argument's device; CUDA tensors are copied to the CPU and back."""
    arguments = [_array(value) if isinstance(value, Tensor) else value for value in (first, *others)]
    return tensors(kernel(*arguments, **options, threads=torch.get_num_threads()), first.device)


def tensors(found: Any, device: torch.device) -> Any:
    """An array, or each of a tuple of them, as a tensor of a device."""
    if isinstance(found, tuple):
        return tuple([tensors(array, device) for array in found])
    tensor = torch.from_numpy(found)
    return tensor if device.type == "cpu" else tensor.to(device)


def seed_bits(seeds: Tensor) -> np.ndarray:
    """Seeds as the kernels take them, uint64."""
    return integers(seeds).view(np.uint64)


def _array(tensor: Tensor) -> FloatArray | IntArray:
    return floats(tensor) if tensor.is_floating_point() else integers(tensor)
