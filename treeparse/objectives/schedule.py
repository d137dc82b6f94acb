"""Numbers that may change while training runs."""

from dataclasses import dataclass

from treeparse.errors import TreeparseError


@dataclass(frozen=True)
class Ramp:
    """A number that goes linearly from ``start`` to ``end`` while training runs.

    Attributes:
        start: its value until the share ``begin`` of training is done.
        end: its value from the share ``until`` on.
        begin: from 0.
        until: to 1.
    """

    start: float
    end: float
    begin: float = 0.0
    until: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.begin < self.until <= 1:
            raise TreeparseError(
                f"A ramp goes from one share of training to a greater one, within 0 and 1, not from {self.begin} to "
                f"{self.until}."
            )

    def at(self, progress: float) -> float:
        """The value when the share ``progress`` of training is done."""
        way = (progress - self.begin) / (self.until - self.begin)
        return self.start + (self.end - self.start) * min(max(way, 0.0), 1.0)


Schedule = float | Ramp
"""A constant, or a ramp."""


def value_at(schedule: Schedule, progress: float) -> float:
    """What a schedule says when the share ``progress`` of training is done."""
    return schedule.at(progress) if isinstance(schedule, Ramp) else schedule
