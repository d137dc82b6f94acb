"""Text tables, which the commands print."""

import re
from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, with the first column left-aligned and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def percent(share: float, *, signed: bool = False) -> str:
    """Return a share in [0, 1] as a percentage with two decimals, with its sign if ``signed``."""
    return f"{100 * share:+z.2f}" if signed else f"{100 * share:.2f}"


def tsv_line(values: Sequence[object]) -> str:
    """Return values as a tab-separated line; tabs and line breaks in a value become spaces."""
    return "\t".join(re.sub(r"[\t\n\r]", " ", str(value)) for value in values) + "\n"
