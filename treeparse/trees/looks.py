"""Looks at values, which wait for a device: a call that takes none can be captured in a CUDA graph."""

import torch
from torch import Tensor


def is_at_hand(tensor: Tensor) -> bool:
    """Whether a look at the values waits for no device, nor breaks a graph that is being compiled."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def moved(tensor: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor on a device, and in a dtype; nothing waits for a copy from CPU memory, which is taken at once.

    Of pinned memory it would be taken later, whatever is written there until then, so that is waited for.
    """
    at_once = tensor.device.type == "cpu" != device.type and not tensor.is_pinned()
    return tensor.to(device, dtype or tensor.dtype, non_blocking=at_once)
