"""Label scores of arcs that are computed once each, on the CPU."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Size, Tensor

LARGEST = 2**24  # numbers in the cache
LookUp = Callable[[Tensor, Tensor, Tensor], Tensor]  # item, head and dependent (A,) of arcs -> scores (A, L)


class ArcRows:
    """The label scores of the arcs that were read, a row each.

    Args:
        shape: ``(B, n+1, n+1, L)``.
        look_up: computes the scores of arcs.
        step: the most arcs that are computed at once.
    """

    def __init__(self, shape: Size, look_up: LookUp, step: int) -> None:
        self._shape, self._look_up, self._step = shape, look_up, step
        self._row_of: np.ndarray | None = None  # (B, n+1, n+1) flattened: each arc's row, -1 for none
        self._rows = torch.empty(0, shape[-1])

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Return the rows ``(A, L)`` of arcs, after computing those that the cache lacks."""
        items, nodes = self._shape[:2]
        if self._row_of is None or self._rows.numel() > LARGEST:
            self._row_of = np.full(items * nodes * nodes, -1)
            self._rows = self._rows[:0]
        arcs = ((item * nodes + head) * nodes + dependent).numpy()
        new = torch.from_numpy(np.unique(arcs[self._row_of[arcs] < 0]))
        if len(new):
            rows = [
                self._look_up(part // (nodes * nodes), part // nodes % nodes, part % nodes)
                for part in new.split(self._step)
            ]
            self._row_of[new.numpy()] = len(self._rows) + np.arange(len(new))
            self._rows = torch.cat([self._rows.to(rows[0].dtype), *rows])
        return self._rows[torch.from_numpy(self._row_of[arcs])]
