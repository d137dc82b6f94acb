"""The interface that runs kernels, of a CUDA device or its emulator, and the blocks and working memory of a kernel."""

import ctypes
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

LANES = 32  # of a warp
LANES_A_NODE = 4  # at most, which work on spans of one width at once: sources/spans.cuh


class Shape(NamedTuple):
    """The number of threads of a kernel, and the shared memory of each block."""

    blocks: int
    warps: int  # a block
    shared_bytes: int


class Launcher(Protocol):
    """Runs kernels by name, in order, on the tensors of one device."""

    @property
    def most_shared_bytes(self) -> int:
        """The most shared memory that a block can have."""
        ...

    @property
    def most_warps(self) -> int:
        """The most warps that a block should have."""
        ...

    @property
    def most_blocks(self) -> int:
        """Return the number of blocks to start if their working memory does not fit on the chip."""
        ...

    def launch(self, kernel: str, shape: Shape, *arguments: Tensor | float | None) -> None:
        """Start a kernel; tensors are contiguous and passed as pointers, None as a null pointer, bool as int."""
        ...


def words_of(arguments: tuple[Tensor | float | None, ...]) -> Any:
    """Return a kernel's arguments as an array of 64 bits each."""
    words = (ctypes.c_uint64 * len(arguments))()
    for index, argument in enumerate(arguments):
        if isinstance(argument, Tensor):
            assert argument.is_contiguous()
            words[index] = argument.data_ptr()
        elif isinstance(argument, float):
            words[index] = ctypes.c_uint64.from_buffer(ctypes.c_double(argument)).value
        else:
            words[index] = 0 if argument is None else int(argument)
    return words


def blocks_for(
    tasks: int, warps: int, doubles: int, launcher: Launcher, device: torch.device
) -> tuple[Shape, Tensor | None]:
    """Return a shape with a block for each task if its working memory fits on the chip; else fewer blocks take turns.

    The tensor is the working memory of these blocks, ``doubles`` doubles each.
    """
    if 8 * doubles <= launcher.most_shared_bytes:
        return Shape(tasks, warps, 8 * doubles), None
    blocks = min(tasks, launcher.most_blocks)
    return Shape(blocks, warps, 0), torch.empty(blocks, doubles, dtype=torch.float64, device=device)


def chart_doubles(charts: int, size: int) -> int:
    """Return how many doubles charts of spans need for up to ``size`` nodes: the layout of sources/spans.cuh."""
    return charts // 2 * size * ((size + 1) | 1)


def chart_warps(size: int, launcher: Launcher) -> int:
    """Return how many warps have work with the spans of one width."""
    return min(-(-LANES_A_NODE * size // LANES), launcher.most_warps)
