"""What slow and lost cores cost, by a simulation of cores that take the next file when they are free."""

import heapq
import random
from collections.abc import Iterator, Sequence

CORES, SECONDS, RESTART = 100, 60.0, 20.0  # a file's seconds on a usual core; and until a lost core is there again
SLOW = 3.0  # a slow core, one in ten, takes so many times as long
LOST = 3600.0  # mean seconds until a core is lost, with the file that it was parsing


def stragglers(files_of_core: Sequence[int] = (2, 10, 50)) -> Iterator[str]:
    """A table of what slow and lost cores cost, by the number of files that a core parses."""
    yield "\n## Slow and lost cores, simulated\n"
    yield f"{CORES} cores that take the next of equal files, {SECONDS:.0f} s each; one in ten {SLOW:.0f} times as slow,"
    yield f"or each lost once in {LOST:,.0f} s on average, with its file. Time over that of the same cores, without"
    yield "any wait or loss: the more files, the less it matters.\n"
    yield "| files of a core | equal cores | slow ones | lost ones | both |"
    yield "|--:|--:|--:|--:|--:|"
    for files in files_of_core:
        cases = [(slow, lost) for lost in (False, True) for slow in (False, True)]
        ratios = [f"{_over_ideal(files * CORES, slow=slow, lost=lost):.2f}" for slow, lost in cases]
        yield f"| {files} | {' | '.join(ratios)} |"


def _over_ideal(files: int, *, slow: bool, lost: bool) -> float:
    """Return the time until the last file is finished over that of evenly shared work."""
    factors = [SLOW if slow and core % 10 == 0 else 1.0 for core in range(CORES)]
    stream, waiting, last = random.Random(1), files, 0.0
    free = [(0.0, core) for core in range(CORES)]
    lost_files: list[float] = []  # when they are free to be taken again
    while waiting or lost_files:
        if not waiting:  # a file comes back only later, when a free core takes it
            back = heapq.heappop(lost_files)
            waiting, free = waiting + 1, [(max(time, back), core) for time, core in free]
            heapq.heapify(free)
        time, core = heapq.heappop(free)
        waiting -= 1
        seconds = SECONDS * factors[core]
        lives = stream.expovariate(1 / LOST) if lost else seconds
        if lives < seconds:
            heapq.heappush(lost_files, time + lives)
            heapq.heappush(free, (time + lives + RESTART, core))
        else:
            last = max(last, time + seconds)
            heapq.heappush(free, (time + seconds, core))
    return last / (files * SECONDS / sum(1 / factor for factor in factors))
