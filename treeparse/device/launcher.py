"""What the functions of this room need of whatever runs the kernels: a CUDA device, or an emulator of one."""

import ctypes
from typing import Any, NamedTuple, Protocol

from torch import Tensor


class Shape(NamedTuple):
    """How many threads run a kernel, and how much shared memory each block has."""

    blocks: int
    warps: int  # a block
    shared_bytes: int


class Launcher(Protocol):
    """Runs kernels by name, one after the other, on the tensors of one device."""

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
        """How many blocks to start where their working memory does not lie on the chip."""
        ...

    def launch(self, kernel: str, shape: Shape, *arguments: Tensor | float | None) -> None:
        """Start a kernel; tensors are contiguous and passed as pointers, None as a null pointer, bool as int."""
        ...


def words_of(arguments: tuple[Tensor | float | None, ...]) -> Any:
    """A kernel's arguments as an array of 64 bits each."""
    words = (ctypes.c_uint64 * len(arguments))()
    for place, argument in enumerate(arguments):
        if isinstance(argument, Tensor):
            assert argument.is_contiguous()
            words[place] = argument.data_ptr()
        elif isinstance(argument, float):
            words[place] = ctypes.c_uint64.from_buffer(ctypes.c_double(argument)).value
        else:
            words[place] = 0 if argument is None else int(argument)
    return words
