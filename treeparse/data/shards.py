"""Divide an input into shards for several processes, which need not communicate: each knows its own number."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from pathlib import Path

from treeparse.data.compression import compression_of_name
from treeparse.data.files import STANDARD_STREAM, open_input
from treeparse.errors import DataError

_READ = 1 << 20  # bytes at a time


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``number``, from 1, of ``count`` disjoint parts that together are the whole input."""

    number: int
    count: int

    def files(self, sizes: Sequence[int]) -> list[int]:
        """Return the indices of this shard's files, in order, from the sizes of all files in bytes.

        Files are assigned by falling size, each to the shard with the fewest bytes, so that shards are about equal.
        """
        loads = [(0, number) for number in range(1, self.count + 1)]
        heapify(loads)
        indices = []
        for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
            load, number = loads[0]
            heapreplace(loads, (load + sizes[index] + 1, number))
            if number == self.number:
                indices.append(index)
        return sorted(indices)

    def spans(self, sizes: Sequence[int]) -> list[range]:
        """Return the bytes of each file in which this shard's sentences start, from the sizes of all files in bytes.

        Each shard is one run of bytes through the files, and all runs have the same length.
        """
        total, before, spans = sum(sizes), 0, []
        first, end = (total * number // self.count for number in (self.number - 1, self.number))
        for size in sizes:
            spans.append(range(*(min(max(edge - before, 0), size) for edge in (first, end))))
            before += size
        return spans


def file_size(path: Path) -> int:
    """Return the size of a file in bytes, decompressed.

    Raises:
        DataError: the path is standard input, a pipe or a device, or a damaged compressed file.
        OSError: the file cannot be read.
    """
    if str(path) == STANDARD_STREAM or (path.exists() and not path.is_file()):
        problem = "shards need a file that every process can read: write this input to a file first"
        raise DataError(problem, source=str(path))
    if compression_of_name(path) is None:
        return path.stat().st_size
    with open_input(path) as stream:
        return sum(iter(lambda: len(stream.read(_READ)), 0))
