"""The memory that a scorer needs, computed from its settings before anything is allocated."""

import os
from contextlib import suppress
from pathlib import Path

from treeparse.data.features.indexer import Indexer
from treeparse.errors import TreeparseError
from treeparse.model.scorers.kind import ScorerKind

BYTES = 4  # of a weight, in float32
TRAINING_COPIES = 4  # the weights, their gradient, and Adam's two averages
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_memory(kind: ScorerKind, indexer: Indexer | None, *, copies: int) -> None:
    """Raise if this machine cannot hold ``copies`` copies of a scorer's weights."""
    memory, weights = machine_memory(), kind.size(indexer)
    needed = weights * BYTES * copies
    if memory is not None and needed > memory:
        raise TreeparseError(
            f"The model would have at least {_amount(weights)} weights and need {_amount(needed / 1e9)} GB of memory, "
            f"but this machine has {_amount(memory / 1e9)} GB: "
            f"lower {excess(kind, indexer, memory // (BYTES * copies))}."
        )


def excess(kind: ScorerKind, indexer: Indexer | None, most: int) -> str:
    """Return the settings that make a scorer larger than ``most`` weights, with values, the largest effect first."""
    settings: list[str] = []
    weights = kind.size(indexer)
    while weights > most:
        setting, smaller = min(kind.smaller(), key=lambda choice: choice[1].size(indexer))
        if smaller.size(indexer) == weights:
            break
        settings.append(setting)
        kind, weights = smaller, smaller.size(indexer)
    return " and ".join(settings)


def machine_memory() -> int | None:
    """Return the bytes of memory of this machine or container; None if the system does not say."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # no POSIX
        return None
    for path in map(Path, CONTAINER_LIMITS):
        with suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(int(path.read_text()))
    return min(limits)


def _amount(number: float) -> str:
    return f"{number:,.1f}" if number < 1000 else f"{number:,.0f}" if number < 1e9 else f"{number:.1e}"
