"""Conversions between tensors and the arrays of compiled kernels: contiguous, float64 or int64, in CPU memory.

Scores of other parts than arcs, which are many, may stay float32.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from treeparse.kernels import FloatArray, IntArray

READY = torch.float64, torch.int64  # the dtypes of kernels


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
    return tensor.detach().to("cpu", dtype).contiguous().resolve_neg().numpy()


def kernel_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which kernels take scores of a floating dtype, besides those of arcs."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def run(kernel: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Run a kernel on the CPU and return its results as tensors of the first argument's device.

    The first argument becomes float64 or int64; further scores that are float32 stay so.
    """
    arrays = []
    for value in arguments:
        if isinstance(value, Tensor):
            dtype = None if arrays or not value.is_floating_point() else torch.float64
            # The test takes less time than a conversion that changes nothing.
            ready = value.is_cpu and value.is_contiguous() and value.dtype in READY and not value.is_neg()
            value = value.detach().numpy() if ready else as_array(value, dtype)
        arrays.append(value)
    results = kernel(*arrays, **options, threads=torch.get_num_threads())
    tensors = tuple(map(torch.from_numpy, results if isinstance(results, tuple) else (results,)))
    if arguments[0].device.type != "cpu":
        tensors = tuple([tensor.to(arguments[0].device) for tensor in tensors])
    return tensors if isinstance(results, tuple) else tensors[0]


def seed_bits(seeds: Tensor) -> np.ndarray:
    """Convert seeds to uint64, as kernels take them."""
    return integers(seeds).view(np.uint64)
