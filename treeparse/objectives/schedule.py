"""Numbers that change during training."""

from dataclasses import dataclass

from treeparse.errors import TreeparseError


@dataclass(frozen=True)
class Ramp:
    """A number that changes linearly from ``start`` to ``end`` during training.

    Attributes:
        start: the value until the share ``begin`` of training is done.
        end: the value from the share ``until`` on.
        begin: a share of training from 0.
        until: a greater share of training, up to 1.
    """

    start: float
    end: float
    begin: float = 0.0
    until: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.begin < self.until <= 1:
            raise TreeparseError(
                f"A ramp must begin at a share of training from 0 and end at a greater one up to 1, got begin "
                f"{self.begin} and until {self.until}."
            )

    def at(self, progress: float) -> float:
        """Return the value when the share ``progress`` of training is done."""
        way = (progress - self.begin) / (self.until - self.begin)
        return self.start + (self.end - self.start) * min(max(way, 0.0), 1.0)


Schedule = float | Ramp
"""A constant, or a ramp."""


def value_at(schedule: Schedule, progress: float) -> float:
    """Return the value of a schedule when the share ``progress`` of training is done."""
    return schedule.at(progress) if isinstance(schedule, Ramp) else schedule
