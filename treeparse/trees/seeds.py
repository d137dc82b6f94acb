"""Where the randomness of draws comes from: one seed a batch item."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Generator

from treeparse.core import TreeparseError

Generators = Generator | Sequence[Generator] | None


def item_seeds(generator: Generators, items: int) -> np.ndarray:
    """One uint64 seed an item ``(items,)``, drawn from a generator on its device, or from a list of one an item.

    Raises:
        TreeparseError: for a list of another length.
    """
    if generator is None or isinstance(generator, Generator):
        return _draw_seeds(generator, items)
    if len(generator) != items:
        raise TreeparseError(
            f"There are {len(generator)} generators for {items} batch items: give one, or one for each item."
        )
    return np.concatenate([_draw_seeds(own, 1) for own in generator]) if items else np.empty(0, np.uint64)


def _draw_seeds(generator: Generator | None, count: int) -> np.ndarray:
    device = "cpu" if generator is None else generator.device
    seeds = torch.randint(-(2**63), 2**63 - 1, (count,), generator=generator, device=device)
    return seeds.cpu().numpy().view(np.uint64)
