"""Label scores of arcs that are computed once each, on the CPU."""

from collections.abc import Callable

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
        self._row_of: Tensor | None = None  # (B, n+1, n+1) flattened: each arc's row, -1 for none
        self._rows = torch.empty(0, shape[-1])

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Return the rows ``(A, L)`` of arcs, after computing those that the cache lacks."""
        items, nodes = self._shape[:2]
        if self._row_of is None or self._rows.numel() > LARGEST:
            self._row_of = torch.full((items * nodes * nodes,), -1)
            self._rows = self._rows[:0]
        arcs = (item * nodes + head) * nodes + dependent
        new = arcs[self._row_of[arcs] < 0].unique()
        if len(new):
            rows = [
                self._look_up(part // (nodes * nodes), part // nodes % nodes, part % nodes)
                for part in new.split(self._step)
            ]
            numbers = len(self._rows) + torch.arange(len(new))
            self._row_of = self._row_of.index_put((new,), numbers)
            self._rows = torch.cat([self._rows.to(rows[0].dtype), *rows])
        return self._rows[self._row_of[arcs]]
