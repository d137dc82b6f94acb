"""What is drawn, and what must hold of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

ROUND = 100  # examples between two looks at the clock
# Without the health checks, which want small examples, and without a memory of earlier runs.
SETTINGS = settings(
    max_examples=ROUND,
    deadline=None,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@dataclass(frozen=True)
class Target:
    """Input that a strategy draws; ``check`` raises unless all holds, and returns how many cases an example is.

    Attributes:
        name: by which the command line chooses it.
        share: of the time that all targets have together.
    """

    name: str
    strategy: SearchStrategy[Any]
    check: Callable[[Any], int]
    share: float = 1.0

    def round(self, number: int, end: float) -> int:
        """Try some examples that ``number`` seeds, after the ``end`` no more than one; return how many cases.

        Raises:
            Exception: of the smallest example that fails, which Hypothesis prints.
        """
        cases, failed = 0, False

        @seed(number)
        @SETTINGS
        @given(self.strategy)
        def check_example(example: Any) -> None:
            nonlocal cases, failed
            if cases > 0 and not failed and time.monotonic() > end:
                return
            try:
                cases += self.check(example)
            except BaseException:
                failed = True  # from then on Hypothesis looks for a smaller example, as long as that takes
                raise

        check_example()
        return cases


def run(target: Target, seconds: float, first_seed: int, *, most: int | None = None) -> int:
    """Try new examples for some seconds, one at least, and return the number of cases.

    Args:
        target: what to try.
        seconds: how long.
        first_seed: seeds the first round; the others have the seeds after it.
        most: end after so many cases at the latest, if given.

    Raises:
        Exception: as ``Target.round``.
    """
    end, cases, number = time.monotonic() + seconds, 0, first_seed
    while number == first_seed or (time.monotonic() < end and (most is None or cases < most)):
        cases += target.round(number, end)
        number += 1
    return cases
