"""The most that settings of a run may ask for: what is larger would never end, or never start."""

import math
import os
from dataclasses import fields
from typing import Any

from treeparse.errors import TreeparseError

SEEDS = 2**63
MOST = 10**9  # of any whole number
MOST_EPOCHS = 10**6


def check_seed(seed: int) -> None:
    """Raise for a seed that torch or numpy does not take."""
    if not 0 <= seed < SEEDS:
        raise TreeparseError(f"seed is {seed}, but must be from 0 to 2**63 - 1.")


def check_most(section: str, settings: Any) -> None:
    """Raise for a number in a section of settings, a dataclass, that is larger than any use of it."""
    special = {"workers": _most_workers(), "epochs": MOST_EPOCHS}
    for name in (field.name for field in fields(settings)):
        value, most = getattr(settings, name), special.get(name, MOST)
        if isinstance(value, int) and value > most:
            raise TreeparseError(f"{section}.{name} is {value}, but must be at most {most}.")
        if value == math.inf:
            raise TreeparseError(f"{section}.{name} is {value}, but must be finite.")


def _most_workers() -> int:
    """Four processes a core, and 16 in any case."""
    return max(16, 4 * (os.cpu_count() or 1))
