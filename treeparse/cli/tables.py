"""Tables of text for the commands' output."""

import re
from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def percent(share: float, *, signed: bool = False) -> str:
    """A share in [0, 1] as a percentage of two digits, with its sign if asked."""
    return f"{100 * share:+z.2f}" if signed else f"{100 * share:.2f}"


def tsv_line(values: Sequence[object]) -> str:
    """A row of tab-separated values, a line; tabs and line breaks in a value become spaces."""
    return "\t".join(re.sub(r"[\t\n\r]", " ", str(value)) for value in values) + "\n"
