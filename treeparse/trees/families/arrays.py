"""Conversions between tensors and the arrays of compiled kernels: contiguous, float64 or int64, in CPU memory.

Scores of other parts than arcs, which are many, may stay float32.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from treeparse.kernels.arrays import FloatArray, IntArray


def floats(tensor: Tensor) -> FloatArray:
    """Convert a tensor to a float64 array, without a graph."""
    return as_array(tensor, torch.float64)


def integers(tensor: Tensor) -> IntArray:
    """Convert a tensor to an int64 array."""
    return as_array(tensor, torch.int64)


def as_array(tensor: Tensor, dtype: torch.dtype | None = None) -> Any:
    """Convert a tensor to an array, by default of float64 or int64, whichever is its kind; float32 stays."""
    if dtype is None:
        dtype = kernel_dtype(tensor.dtype) if tensor.is_floating_point() else torch.int64
    tensor = tensor.detach()
    # The test takes less time than a conversion that changes nothing.
    if tensor.dtype is not dtype or not tensor.is_cpu or not tensor.is_contiguous():
        tensor = tensor.to("cpu", dtype).contiguous()
    return tensor.numpy()


def kernel_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which kernels take scores of a floating dtype, besides those of arcs."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def run(kernel: Callable[..., Any], first: Tensor, *others: Any, **options: Any) -> Any:
    """Run a kernel on the CPU and return its results as tensors of the first argument's device.

    The first argument becomes float64 or int64; further scores that are float32 stay so.
    """
    arrays = [as_array(value) if isinstance(value, Tensor) else value for value in others]
    first_array = as_array(first, torch.float64 if first.is_floating_point() else torch.int64)
    return tensors(kernel(first_array, *arrays, **options, threads=torch.get_num_threads()), first.device)


def tensors(arrays: Any, device: torch.device) -> Any:
    """Convert an array, or each array of a tuple, to a tensor of a device."""
    results = tuple(map(torch.from_numpy, arrays if isinstance(arrays, tuple) else (arrays,)))
    if device.type != "cpu":
        results = tuple([result.to(device) for result in results])
    return results if isinstance(arrays, tuple) else results[0]


def seed_bits(seeds: Tensor) -> np.ndarray:
    """Convert seeds to uint64, as kernels take them."""
    return integers(seeds).view(np.uint64)
