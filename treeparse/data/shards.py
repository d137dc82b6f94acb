"""Shards: parts of an input that processes take without a word between them, each by its number alone."""

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
    """One of ``count`` parts, ``number`` from 1; all of them together are the whole, and no two share anything."""

    number: int
    count: int

    def files(self, sizes: Sequence[int]) -> list[int]:
        """The places of this shard's files, in order; sizes in bytes.

        The largest come first, each to the shard that has the fewest bytes so far: all shards get about as much.
        """
        loads = [(0, number) for number in range(1, self.count + 1)]
        heapify(loads)
        owned = []
        for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
            load, number = loads[0]
            heapreplace(loads, (load + sizes[place] + 1, number))
            if number == self.number:
                owned.append(place)
        return sorted(owned)

    def spans(self, sizes: Sequence[int]) -> list[range]:
        """The bytes of each file in which this shard's sentences start; sizes in bytes.

        A shard is a run through the files, of as many bytes as the others': end to end they are the files in order.
        """
        total, before, spans = sum(sizes), 0, []
        first, end = (total * number // self.count for number in (self.number - 1, self.number))
        for size in sizes:
            spans.append(range(*(min(max(edge - before, 0), size) for edge in (first, end))))
            before += size
        return spans


def file_size(path: Path) -> int:
    """The size of a file in bytes, decompressed.

    Raises:
        DataError: the path is standard input, a pipe or a device, or a damaged compressed file.
        OSError: the file cannot be read.
    """
    if str(path) == STANDARD_STREAM or (path.exists() and not path.is_file()):
        problem = "it is not a file that every process can read: it cannot be parsed in shards; write it to a file"
        raise DataError(problem, source=str(path))
    if compression_of_name(path) is None:
        return path.stat().st_size
    with open_input(path) as stream:
        return sum(iter(lambda: len(stream.read(_READ)), 0))
