"""Tensors as the kernels take them: contiguous arrays in CPU memory."""

import torch
from torch import Tensor

from treeparse.kernels.arrays import FloatArray, IntArray


def floats(tensor: Tensor) -> FloatArray:
    """The tensor's values as float64, without a graph."""
    return tensor.detach().to("cpu", torch.float64).contiguous().numpy()


def integers(tensor: Tensor) -> IntArray:
    """The tensor's values as int64."""
    return tensor.detach().to("cpu", torch.int64).contiguous().numpy()
