"""How benchmarks time: calls take turns, round after round, so that a busy machine slows all of them alike."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROUND = 0.05  # CPU seconds a fast entry of a race gets a round; a slow one gets one pass
MOST_REPEATS = 1000


@dataclass
class Timed:
    """A call, and its seconds in every round: of CPU time, unless it has another clock."""

    call: Callable[[], Any]
    clock: Callable[[], float] = field(default=time.process_time, kw_only=True)
    repeats: int = field(default=1, init=False)
    times: list[float] = field(default_factory=list, init=False)

    def fill_round(self, seconds: float, most: int) -> None:
        """Repeat the call in a round as often as these seconds allow, but at least once and at most so often."""
        self.run()
        self.repeats = int(np.clip(seconds / self.times.pop(), 1, most))

    def run(self) -> None:
        """One round; on one thread CPU time is the wall time of an idle machine."""
        start = self.clock()
        for _ in range(self.repeats):
            self.call()
        self.times.append((self.clock() - start) / self.repeats)

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    def over(self, other: "Timed") -> list[float]:
        """Quartiles of this time over another's in the same round."""
        ratios = [own / theirs for own, theirs in zip(self.times, other.times, strict=True)]
        return statistics.quantiles(ratios, n=4, method="inclusive")


@dataclass
class Entry(Timed):
    """A named call, which is a pass over all graphs and gives its answers."""

    name: str


def take_turns(entries: Sequence[Timed], *, fewest: int, most: int, budget: float) -> None:
    """So many rounds of all calls; once there are the fewest, none begins after ``budget`` CPU seconds."""
    start = time.process_time()
    for done in range(most):
        if done >= fewest and time.process_time() - start > budget:
            break
        for entry in entries:
            entry.run()


def race(entries: Sequence[Entry], rounds: int) -> dict[str, Entry]:
    """Time all entries in so many rounds, after a call that compiles, and return them by name."""
    for entry in entries:
        entry.call()
        entry.fill_round(ROUND, MOST_REPEATS)
    take_turns(entries, fewest=rounds, most=rounds, budget=math.inf)
    return {entry.name: entry for entry in entries}
