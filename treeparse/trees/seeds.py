"""Where the randomness of draws comes from: one seed a batch item."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from treeparse.errors import TreeparseError

Generators = Generator | Sequence[Generator] | None


def item_seeds(generator: Generators, items: int) -> Tensor:
    """One seed an item, int64 ``(items,)`` on the generator's device, or drawn from a list of one generator an item.

    Raises:
        TreeparseError: for a list of another length.
    """
    if generator is None or isinstance(generator, Generator):
        return _draw_seeds(generator, items)
    if len(generator) != items:
        raise TreeparseError(
            f"There are {len(generator)} generators for {items} batch items: give one, or one for each item."
        )
    return torch.cat([_draw_seeds(own, 1) for own in generator]) if items else _draw_seeds(None, 0)


def _draw_seeds(generator: Generator | None, count: int) -> Tensor:
    device = "cpu" if generator is None else generator.device
    return torch.randint(-(2**63), 2**63 - 1, (count,), generator=generator, device=device)
