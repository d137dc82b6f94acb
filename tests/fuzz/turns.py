"""Turns of targets in several processes."""

import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from fuzz.target import run
from fuzz.targets import TARGETS

SECONDS = 10.0  # of a turn
SEEDS = 10**6  # of a turn, more than its rounds


@dataclass(frozen=True)
class Turn:
    """What one process found in a turn of a target."""

    name: str
    seed: int
    cases: int
    seconds: float
    failure: str  # the traceback; empty if all examples held


def turns(names: Sequence[str], minutes: float, seed: int, jobs: int, most: int | None = None) -> Iterator[Turn]:
    """Yield turns of some targets until the time is over; the next turn is that of what has had least of its share.

    With ``most``, a target gets no turns after so many cases.
    """
    end = time.monotonic() + 60 * minutes
    left = {target.name: 0.0 for target in TARGETS if target.name in names}  # seconds that it had, by its share
    shares, cases = {target.name: target.share for target in TARGETS}, dict.fromkeys(left, 0)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        while left and time.monotonic() < end:
            begun = []
            for _ in range(jobs):
                name = min(left, key=left.__getitem__)
                left[name] += SECONDS / shares[name]
                begun.append(pool.submit(_turn, name, seed))
                seed += SEEDS
            for future in begun:
                turn = future.result()
                yield turn
                cases[turn.name] += turn.cases
                if most is not None and cases[turn.name] >= most:
                    left.pop(turn.name, None)


def _turn(name: str, seed: int) -> Turn:
    (target,) = (each for each in TARGETS if each.name == name)
    begin, cases, failure = time.monotonic(), 0, ""
    try:
        cases = run(target, SECONDS, seed)
    except Exception as error:  # whatever it is, it is a finding
        failure = "".join(traceback.format_exception(error))
    return Turn(name, seed, cases, time.monotonic() - begin, failure)
