"""Looks at values, which wait for a device: a call that takes none can be captured in a CUDA graph."""

import torch
from torch import Tensor


def is_at_hand(tensor: Tensor) -> bool:
    """Whether a look at the values waits for no device, nor breaks a graph that is being compiled."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()
