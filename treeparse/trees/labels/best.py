"""The best tree where what an arc is worth is found out only if it may matter."""

from collections.abc import Callable

import torch
from torch import Tensor

from treeparse.trees.flat import FlatTrees

ROUNDS = 8  # of looking up the arcs of the best tree so far; items that need more have most of their arcs looked up

LookUp = Callable[[Tensor, Tensor, Tensor], Tensor]  # what arcs (A,), given by item, head and dependent, are worth (A,)
LookUpAll = Callable[[Tensor], Tensor]  # what all arcs of some items (I,) are worth (I, n+1, n+1)


def best_under_bounds(trees: FlatTrees, look_up: LookUp, look_up_all: LookUpAll) -> Tensor:
    """Heads ``(B, n+1)`` of the best trees by the worth of their arcs; -1 where there is none.

    The best tree under the bounds is the best of all once it holds only arcs that were looked up: no other tree is
    worth more than its bound. So arcs are looked up in the best tree so far, and the bounds tightened, until it holds.

    Args:
        trees: the trees, under scores of arcs that no arc's worth exceeds, -inf for what is forbidden.
        look_up: the worth of arcs.
        look_up_all: the worth of all arcs of items, for those few where bounds say too little.
    """
    heads, bounds = trees.heads.clone(), trees.arcs.clone()
    is_known = torch.zeros_like(bounds, dtype=torch.bool)
    items = torch.arange(len(heads), device=heads.device)
    for _ in range(ROUNDS):
        places, dependents = (heads[items] >= 0).nonzero(as_tuple=True)
        arcs = items[places], heads[items[places], dependents], dependents
        is_new = ~is_known[arcs]
        item, head, dependent = (part[is_new] for part in arcs)
        worth = look_up(item, head, dependent).to(bounds.dtype)
        lower = worth < bounds[item, head, dependent]
        bounds[item, head, dependent] = worth
        is_known[item, head, dependent] = True
        items = item[lower].unique()
        if not len(items):
            return heads
        heads[items] = trees.best_of_items(items, bounds[items])
    heads[items] = trees.best_of_items(items, look_up_all(items))
    return heads
