"""LSTM layers in both directions over the nodes of a batch without its padding: on the CPU, without gradients.

Nodes stand side by side step by step, the longest sentence first: the first node of every sentence, the second of those
that have one, and so on. A step is then a run of rows, and no row is padding: sentences of a batch may differ in length
at no cost, and large batches waste nothing.

Both directions go a step at once, one from the first node of every sentence on, one from the last node back: so each
step takes few calls of torch, for which several threads would have to wait for Python's lock.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from treeparse.kernels.networks import step

from .precision import may_use_kernels


@dataclass(frozen=True)
class Packing:
    """Where the nodes of a padded batch (B, T) stand once they are packed.

    Attributes:
        places: (N,) of the nodes in the flattened batch, in their new order.
        counts: how many sentences have a node at each step, falling.
        turns: (2N,) the order in which both directions come to the nodes: at each step the nodes of the one ahead, then
            as many of the one back, each of which is its place in the new order, plus N.
        shape: (B, T).
    """

    places: Tensor
    counts: Sequence[int]
    turns: Tensor
    shape: tuple[int, int]

    @classmethod
    def of(cls, lengths: Tensor, steps: int) -> "Packing":
        """The packing of sentences of so many nodes (B,), padded to ``steps``."""
        order = lengths.argsort(descending=True, stable=True)
        falling, step = lengths[order], torch.arange(steps, device=lengths.device).unsqueeze(-1)
        there = step < falling
        counts = there.sum(1)
        starts, items = counts.cumsum(0) - counts, torch.arange(len(order), device=lengths.device)
        ahead = starts.unsqueeze(-1) + items
        back = int(lengths.sum()) + starts[(falling - 1 - step).clamp_min(0)] + items
        turns = torch.stack([ahead, back], 1)[there.unsqueeze(1).expand(-1, 2, -1)]
        places = (order * steps + step)[there]
        return cls(places, [count for count in counts.tolist() if count], turns, (len(lengths), steps))

    def packed(self, nodes: Tensor) -> Tensor:
        """(B, T, D) -> (N, D)."""
        return nodes.flatten(0, 1)[self.places]

    def padded(self, nodes: Tensor) -> Tensor:
        """(N, D) -> (B, T, D), zeros at padding."""
        items, steps = self.shape
        result = nodes.new_zeros(items * steps, nodes.shape[-1])
        return result.index_copy_(0, self.places, nodes).unflatten(0, (items, steps))


class Products(Protocol):
    """The products of an LSTM in both directions; gates are in torch's order: input, forget, cell, output."""

    @property
    def hidden_size(self) -> int: ...

    def project(self, inputs: Tensor) -> Tensor:
        """The inputs' part in the gates of each direction, biases included: (N, D) -> (2, N, 4H), a new tensor."""
        ...

    def add_recurrent(self, gates: Tensor, states: Tensor) -> None:
        """Adds to gates (2, N, 4H), in place, the part of the states before (2, N, H)."""
        ...


def lstm_weights(lstm: nn.LSTM) -> tuple[Tensor, Tensor, Tensor]:
    """The weights of inputs (4H, D) and of states (4H, H), and the bias (4H,), of a ``torch.nn.LSTM`` of one layer."""
    inputs, recurrent, *biases = (
        getattr(lstm, name) for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    )
    return inputs, recurrent, biases[0] + biases[1]


class FloatProducts:
    """Those of two ``torch.nn.LSTM`` of one layer, ahead and back, in the precision of their weights."""

    def __init__(self, *directions: nn.LSTM) -> None:
        self.hidden_size = directions[0].hidden_size
        self.inputs, recurrent, self.biases = zip(*map(lstm_weights, directions), strict=True)
        self.recurrent = torch.stack(recurrent).transpose(1, 2).contiguous()

    def project(self, inputs: Tensor) -> Tensor:
        gates = inputs.new_empty(2, len(inputs), 4 * self.hidden_size)
        for weights, bias, found in zip(self.inputs, self.biases, gates, strict=True):
            torch.addmm(bias, inputs, weights.T, out=found)
        return gates

    def add_recurrent(self, gates: Tensor, states: Tensor) -> None:
        gates.baddbmm_(states, self.recurrent)


class Side(Protocol):
    """The products of one direction."""

    @property
    def hidden_size(self) -> int: ...

    def project(self, inputs: Tensor, gates: Tensor) -> None:
        """Writes the inputs' part (N, D) into gates (N, 4H), biases included."""
        ...

    def add_recurrent(self, gates: Tensor, states: Tensor) -> None:
        """Adds to gates (N, 4H), in place, the part of the states before (N, H)."""
        ...


class Sides:
    """The products of two directions that compute them by themselves."""

    def __init__(self, *sides: Side) -> None:
        self.hidden_size, self.sides = sides[0].hidden_size, sides

    def project(self, inputs: Tensor) -> Tensor:
        gates = inputs.new_empty(2, len(inputs), 4 * self.hidden_size)
        for side, own in zip(self.sides, gates, strict=True):
            side.project(inputs, own)
        return gates

    def add_recurrent(self, gates: Tensor, states: Tensor) -> None:
        for side, own, before in zip(self.sides, gates, states, strict=True):
            side.add_recurrent(own, before)


def can_pack(module: nn.Module, device: torch.device) -> bool:
    """Whether a module's layers may run packed: on the CPU, outside training, without gradients and autocast."""
    return may_use_kernels(device) and not module.training


def through_packed_layers(
    layers: Iterable[Products], nodes: Tensor, packing: Packing, rows: Tensor | None = None
) -> Tensor:
    """Packed nodes (N, D) through layers, each given by its products: (N, 2H).

    With ``rows`` (N,) the first layer reads row ``rows[i]`` of ``nodes`` (U, D) at node i: what words of one form have
    in common is computed once.
    """
    for products in layers:
        nodes, rows = _layer(products, nodes, packing, rows), None
    return nodes


def _layer(products: Products, nodes: Tensor, packing: Packing, rows: Tensor | None) -> Tensor:
    """The states of both directions, side by side."""
    projected, turns, size = products.project(nodes).flatten(0, 1), packing.turns, products.hidden_size
    read = turns if rows is None else torch.cat([rows, rows + len(nodes)])[turns]
    states = projected.new_empty(len(turns), size)
    cells, before = states.new_zeros(2, packing.counts[0], size), None
    spans = [2 * count for count in packing.counts]
    for count, chosen, reached in zip(packing.counts, read.split(spans), states.split(spans), strict=True):
        gates, now = projected.index_select(0, chosen).view(2, count, -1), reached.view(2, count, size)
        if before is not None:
            products.add_recurrent(gates, before[:, :count])
        _step(gates, cells, now)
        before = now
    both = torch.empty_like(turns).scatter_(0, turns, torch.arange(len(turns), device=turns.device))
    return states.index_select(0, both.view(2, -1).T.flatten()).view(-1, 2 * size)


def _step(gates: Tensor, cells: Tensor, states: Tensor) -> None:
    """The first of the cells (2, N, H) go on by a step and give the states; the gates (2, N, 4H) are worked in."""
    if gates.dtype == torch.float32:
        step(gates.numpy(), cells.numpy(), states.numpy())
        return
    enter, keep, new, leave = gates.chunk(4, -1)
    cells = cells[:, : states.shape[1]]
    cells.mul_(keep.sigmoid_()).addcmul_(enter.sigmoid_(), new.tanh_())
    torch.mul(cells.tanh(), leave.sigmoid_(), out=states)
