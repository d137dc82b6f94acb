"""Bidirectional LSTM layers over packed nodes, without padding: on the CPU, without gradients.

Packed rows are ordered by step: the first node of every sentence (the longest sentence first), then the second node of
those that have one, and so on. A step is a range of rows without padding, so sentences of different lengths cost
nothing.

Each step advances both directions, one from the first nodes forwards, one from the last nodes backwards. This halves
the calls of torch, in which several threads would wait for Python's lock.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from treeparse.kernels.networks import step
from treeparse.nn.precision import may_use_kernels


@dataclass(frozen=True)
class Packing:
    """The order of the N nodes of a padded batch (B, T) once they are packed.

    Attributes:
        indices: (N,) index in the flattened batch of each packed node.
        counts: the number of sentences that have a node at each step, descending.
        turns: (2N,) the order in which both directions read packed rows: at each step rows i of the forward direction,
            then rows N + i of the backward direction.
        shape: (B, T).
    """

    indices: Tensor
    counts: Sequence[int]
    turns: Tensor
    shape: tuple[int, int]

    @classmethod
    def of(cls, lengths: Tensor, steps: int) -> "Packing":
        """Return the packing of sentences with these numbers of nodes (B,), padded to ``steps``."""
        order = lengths.argsort(descending=True, stable=True)
        falling, step = lengths[order], torch.arange(steps, device=lengths.device).unsqueeze(-1)
        is_node = step < falling
        counts = is_node.sum(1)
        starts, items = counts.cumsum(0) - counts, torch.arange(len(order), device=lengths.device)
        ahead = starts.unsqueeze(-1) + items
        back = int(lengths.sum()) + starts[(falling - 1 - step).clamp_min(0)] + items
        turns = torch.stack([ahead, back], 1)[is_node.unsqueeze(1).expand(-1, 2, -1)]
        indices = (order * steps + step)[is_node]
        return cls(indices, [count for count in counts.tolist() if count], turns, (len(lengths), steps))

    def packed(self, nodes: Tensor) -> Tensor:
        """Pack padded nodes (B, T, D) as (N, D)."""
        return nodes.flatten(0, 1)[self.indices]

    def padded(self, nodes: Tensor) -> Tensor:
        """Pad packed nodes (N, D) with zeros to (B, T, D)."""
        items, steps = self.shape
        result = nodes.new_zeros(items * steps, nodes.shape[-1])
        return result.index_copy_(0, self.indices, nodes).unflatten(0, (items, steps))


class Products(Protocol):
    """The matrix products of a bidirectional LSTM; gates are in torch's order: input, forget, cell, output."""

    @property
    def hidden_size(self) -> int: ...

    def project(self, inputs: Tensor) -> Tensor:
        """Project inputs (N, D) to the gates of each direction (2, N, 4H), a new tensor, biases included."""
        ...

    def add_recurrent(self, gates: Tensor, states: Tensor) -> None:
        """Add the recurrent products of the previous states (2, N, H) to gates (2, N, 4H) in place."""
        ...


def lstm_weights(lstm: nn.LSTM) -> tuple[Tensor, Tensor, Tensor]:
    """Return the input weights (4H, D), recurrent weights (4H, H) and bias (4H,) of a one-layer ``torch.nn.LSTM``."""
    inputs, recurrent, *biases = (
        getattr(lstm, name) for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    )
    return inputs, recurrent, biases[0] + biases[1]


class FloatProducts:
    """The products of two one-layer ``torch.nn.LSTM``, forwards and backwards, in the dtype of their weights."""

    def __init__(self, *directions: nn.LSTM) -> None:
        self.hidden_size: int = directions[0].hidden_size
        self.inputs, recurrent, self.biases = zip(*map(lstm_weights, directions), strict=True)
        self.recurrent: Tensor = torch.stack(recurrent).transpose(1, 2).contiguous()

    def project(self, inputs: Tensor) -> Tensor:
        gates = inputs.new_empty(2, len(inputs), 4 * self.hidden_size)
        for weights, bias, out in zip(self.inputs, self.biases, gates, strict=True):
            torch.addmm(bias, inputs, weights.T, out=out)
        return gates

    def add_recurrent(self, gates: Tensor, states: Tensor) -> None:
        gates.baddbmm_(states, self.recurrent)


def can_pack(module: nn.Module, device: torch.device) -> bool:
    """Return whether a module's layers may run packed: on the CPU, outside training, without gradients and autocast."""
    return may_use_kernels(device) and not module.training


def through_packed_layers(
    layers: Iterable[Products], nodes: Tensor, packing: Packing, rows: Tensor | None = None
) -> Tensor:
    """Encode packed nodes (N, D) by layers, each given by its products, as (N, 2H).

    With ``rows`` (N,), ``nodes`` (U, D) are distinct and the first layer reads row ``rows[i]`` at node i, so it
    projects words with the same form once.
    """
    for products in layers:
        nodes, rows = _layer(products, nodes, packing, rows), None
    return nodes


def _layer(products: Products, nodes: Tensor, packing: Packing, rows: Tensor | None) -> Tensor:
    """Return the concatenated states (N, 2H) of both directions."""
    projected, turns, size = products.project(nodes).flatten(0, 1), packing.turns, products.hidden_size
    read = turns if rows is None else torch.cat([rows, rows + len(nodes)])[turns]
    states = projected.new_empty(len(turns), size)
    cells, previous = states.new_zeros(2, packing.counts[0], size), None
    spans = [2 * count for count in packing.counts]
    for count, chosen, reached in zip(packing.counts, read.split(spans), states.split(spans), strict=True):
        gates, current = projected.index_select(0, chosen).view(2, count, -1), reached.view(2, count, size)
        if previous is not None:
            products.add_recurrent(gates, previous[:, :count])
        _step(gates, cells, current)
        previous = current
    both = torch.empty_like(turns).scatter_(0, turns, torch.arange(len(turns), device=turns.device))
    return states.index_select(0, both.view(2, -1).T.flatten()).view(-1, 2 * size)


def _step(gates: Tensor, cells: Tensor, states: Tensor) -> None:
    """Advance the first N cells (2, B, H) by a step and write the states (2, N, H); overwrites the gates (2, N, 4H)."""
    if gates.dtype == torch.float32:
        step(gates.numpy(), cells.numpy(), states.numpy())
        return
    enter, forget, new, leave = gates.chunk(4, -1)
    cells = cells[:, : states.shape[1]]
    cells.mul_(forget.sigmoid_()).addcmul_(enter.sigmoid_(), new.tanh_())
    torch.mul(cells.tanh(), leave.sigmoid_(), out=states)
