"""The heights of the arcs in a row, and the positions of labels on them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from treeparse.pictures.arcs import Arc
from treeparse.pictures.spacing import LABEL_ROOM, Measures, Row

CLEARANCE = 5.0  # between arcs of the same level, and between labels and what passes by them


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of an arc that lies in a row, from ``left`` to ``right``, at a level counted from 0.

    It is open on a side on which the arc continues in another row. The root's arc is as wide as its label. ``centre``
    and ``width`` are of the label.
    """

    arc: Arc
    left: float
    right: float
    opens_left: bool
    opens_right: bool
    width: float
    level: int = 0
    centre: float = 0.0

    def legs(self) -> list[float]:
        """The positions at which it goes down to words."""
        if self.arc.is_root:
            return [(self.left + self.right) / 2]
        ends = ((self.left, self.opens_left), (self.right, self.opens_right))
        return [end for end, is_open in ends if not is_open]


def segments_of(row: Row, arcs: Sequence[Arc], measures: Measures) -> list[Segment]:
    """Return the arcs' parts in a row, each as low as nesting allows; arcs of the root are above nearby ones."""
    order = sorted(range(len(arcs)), key=lambda place: (arcs[place].is_root, arcs[place].length))
    drawn = [_segment(row, arcs[place], measures, place) for place in order if _is_in(row, arcs[place])]
    levels: list[int] = []
    for place, segment in enumerate(drawn):
        levels.append(_level(segment, drawn[:place], levels))
    return [_labelled(segment, level, drawn, levels) for segment, level in zip(drawn, levels, strict=True)]


def _is_in(row: Row, arc: Arc) -> bool:
    return arc.left <= row.last and arc.right >= row.first


def _segment(row: Row, arc: Arc, measures: Measures, place: int) -> Segment:
    width, (at_left, at_right) = measures.labels[place], measures.ends[place]
    if arc.is_root:
        middle = row.centre(arc.dependent) + at_left
        return Segment(arc, middle - width / 2, middle + width / 2, False, False, width)
    opens_left, opens_right = not row.holds(arc.left), not row.holds(arc.right)
    left = 0.0 if opens_left else row.centre(arc.left) + at_left
    right = row.width if opens_right else row.centre(arc.right) + at_right
    return Segment(arc, left, right, opens_left, opens_right, width)


def _level(segment: Segment, below: Sequence[Segment], levels: Sequence[int]) -> int:
    """Return the lowest free level above all arcs nested in this one."""
    near = [(other, level) for other, level in zip(below, levels, strict=True) if _overlap(segment, other)]
    nested = [level for other, level in near if segment.arc.is_root or _is_nested(other.arc, segment.arc)]
    lowest, taken = max(nested, default=-1) + 1, {level for _, level in near}
    while lowest in taken:
        lowest += 1
    return lowest


def _overlap(one: Segment, other: Segment) -> bool:
    return one.left < other.right + CLEARANCE and other.left < one.right + CLEARANCE


def _is_nested(inner: Arc, outer: Arc) -> bool:
    return outer.left <= inner.left and inner.right <= outer.right


def _labelled(segment: Segment, level: int, others: Sequence[Segment], levels: Sequence[int]) -> Segment:
    higher = [other for other, height in zip(others, levels, strict=True) if height > level]
    passing = [leg for other in higher for leg in other.legs() if segment.left < leg < segment.right]
    return Segment(
        segment.arc,
        segment.left,
        segment.right,
        segment.opens_left,
        segment.opens_right,
        segment.width,
        level,
        _label_centre(segment, passing),
    )


def _label_centre(segment: Segment, passing: Sequence[float]) -> float:
    """Return the middle, or the nearest position where no higher arc comes down; the middle if there is none."""
    middle, half = (segment.left + segment.right) / 2, segment.width / 2
    away = half + CLEARANCE
    least, most = segment.left + half + LABEL_ROOM, segment.right - half - LABEL_ROOM
    walls = [-math.inf, *sorted(passing), math.inf]
    gaps = [(max(least, a + away), min(most, b - away)) for a, b in pairwise(walls)]
    places = [min(max(middle, low), high) for low, high in gaps if low <= high]
    return min(places, key=lambda x: abs(x - middle), default=middle)
