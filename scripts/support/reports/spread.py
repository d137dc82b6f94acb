"""A mean and a standard deviation in one cell of a table."""

import statistics
from collections.abc import Sequence


def spread(values: Sequence[float], sign: str = "") -> str:
    """Mean and standard deviation; nothing of none, the value alone of one."""
    if not values:
        return ""
    mean = f"{statistics.mean(values):{sign}.2f}"
    return f"{mean} ± {statistics.stdev(values):.2f}" if len(values) > 1 else mean
