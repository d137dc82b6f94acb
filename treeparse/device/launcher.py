"""The interface that runs kernels, of a CUDA device or its emulator, and the blocks and working memory of a kernel."""

import ctypes
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

LANES = 32  # of a warp
LANES_A_NODE = 4  # at most, which work on spans of one width at once: sources/spans.cuh
MOST_DRAWERS = 256  # threads a block that draw
NODE_LINES = 3  # of ``Lines`` in sources/drawn.cuh


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


def launch(
    kernel: str,
    scores: Tensor,
    lengths: Tensor,
    *arguments: Tensor | int | None,
    single_root: bool,
    launcher: Launcher,
    warps: int,
    doubles: int,
    tasks: int = 1,
) -> None:
    """Run a kernel on a batch, if it has items: a block for each of the tasks of an item, of ``doubles`` doubles."""
    items, size, _ = scores.shape
    if items:
        shape, work = blocks_for(items * tasks, warps, doubles, launcher, scores.device)
        constants = scores.detach().contiguous(), lengths.contiguous(), items, size, single_root
        launcher.launch(kernel, shape, *constants, work, doubles, *arguments)


def draw(
    kernel: str,
    scores: Tensor,
    lengths: Tensor,
    seeds: Tensor,
    count: int,
    *options: int,
    single_root: bool,
    launcher: Launcher,
    warps: int,
    doubles: int,
    more: int = 0,
) -> Tensor:
    """Return the heads ``(B, count, n+1)`` of trees that a kernel draws, a thread a tree.

    A block has ``doubles`` doubles for sums and, for draws, lines of nodes for every thread and ``more`` doubles. Sums
    come first onto the chip.
    """
    items, size, _ = scores.shape
    heads = torch.empty(items, count, size, dtype=torch.int64, device=scores.device)
    if not heads.numel():
        return heads
    warps = min(max(warps, min(-(-count // LANES), MOST_DRAWERS // LANES)), launcher.most_warps)
    drawers = min(LANES * warps, count)
    more += -(-NODE_LINES * (size + 1) * drawers // 4)
    tasks, on_chip, more_work = items * -(-count // drawers), doubles + more, None
    if 8 * on_chip > launcher.most_shared_bytes:
        tasks, on_chip = min(tasks, launcher.most_blocks), doubles
        more_work = torch.empty(tasks, more, dtype=torch.float64, device=scores.device)
    shape, work = blocks_for(tasks, warps, on_chip, launcher, scores.device)
    constants = scores.detach().contiguous(), lengths.contiguous(), items, size, single_root
    memory = work, doubles, more_work, more
    launcher.launch(kernel, shape, *constants, *memory, seeds.contiguous(), *options, heads)
    return heads


def chart_doubles(charts: int, size: int) -> int:
    """Return how many doubles charts of spans need for up to ``size`` nodes: the layout of sources/spans.cuh."""
    return charts // 2 * size * ((size + 1) | 1)


def chart_warps(size: int, launcher: Launcher) -> int:
    """Return how many warps have work with the spans of one width."""
    return min(-(-LANES_A_NODE * size // LANES), launcher.most_warps)
