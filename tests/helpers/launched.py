"""Batches for kernels of CUDA devices, on the device of a launcher."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from helpers.emulator import Emulator
from helpers.oracles import Array
from torch import Tensor

from treeparse.device.launcher import Launcher


def on_device(array: np.ndarray, launcher: Launcher) -> Tensor:
    """A copy of an array where the launcher's tensors are."""
    return torch.tensor(array, device="cpu" if isinstance(launcher, Emulator) else "cuda")


def padded(items: Sequence[Array]) -> tuple[Array, Any]:
    """Scores of several sizes as one batch, NaN in every place that is to be ignored, and their lengths."""
    size = max(map(len, items)) + 1  # no item fills the batch
    scores = np.full((len(items), size, size), np.nan)
    for place, item in enumerate(items):
        scores[place, : len(item), : len(item)] = item
    scores[:, :, 0] = scores[:, np.arange(size), np.arange(size)] = np.nan
    return scores, np.array([len(item) - 1 for item in items])
