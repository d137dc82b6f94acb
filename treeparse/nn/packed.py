"""LSTM layers in both directions over the nodes of a batch without its padding: on the CPU, without gradients.

Nodes stand side by side step by step, the longest sentence first: the first node of every sentence, the second of those
that have one, and so on. A step is then a run of rows, and no row is padding: sentences of a batch may differ in length
at no cost, and large batches waste nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from treeparse.kernels.networks.lstm import step


@dataclass(frozen=True)
class Packing:
    """Where the nodes of a padded batch (B, T) stand once they are packed.

    Attributes:
        places: (N,) of the nodes in the flattened batch, in their new order.
        counts: how many sentences have a node at each step, falling.
        shape: (B, T).
    """

    places: Tensor
    counts: Sequence[int]
    shape: tuple[int, int]

    @classmethod
    def of(cls, lengths: Tensor, steps: int) -> "Packing":
        """The packing of sentences of so many nodes (B,), padded to ``steps``."""
        order = lengths.argsort(descending=True, stable=True)
        step = torch.arange(steps, device=lengths.device).unsqueeze(-1)
        there = step < lengths[order]
        places = (order * steps + step)[there]
        counts = [count for count in there.sum(1).tolist() if count]
        return cls(places, counts, (len(lengths), steps))

    def packed(self, nodes: Tensor) -> Tensor:
        """(B, T, D) -> (N, D)."""
        return nodes.flatten(0, 1)[self.places]

    def padded(self, nodes: Tensor) -> Tensor:
        """(N, D) -> (B, T, D), zeros at padding."""
        items, steps = self.shape
        result = nodes.new_zeros(items * steps, nodes.shape[-1])
        return result.index_copy_(0, self.places, nodes).unflatten(0, (items, steps))


class Products(Protocol):
    """The products of an LSTM in one direction; gates are in torch's order: input, forget, cell, output."""

    @property
    def hidden_size(self) -> int: ...

    def project(self, inputs: Tensor) -> Tensor:
        """The inputs' part in the gates, biases included: (N, D) -> (N, 4H), a new tensor."""
        ...

    def add_recurrent(self, gates: Tensor, states: Tensor) -> None:
        """Adds to gates (N, 4H), in place, the part of the states before (N, H)."""
        ...


def lstm_weights(lstm: nn.LSTM) -> tuple[Tensor, Tensor, Tensor]:
    """The weights of inputs (4H, D) and of states (4H, H), and the bias (4H,), of a ``torch.nn.LSTM`` of one layer."""
    inputs, recurrent, *biases = (
        getattr(lstm, name) for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    )
    return inputs, recurrent, biases[0] + biases[1]


class FloatProducts:
    """Those of a ``torch.nn.LSTM`` of one layer, in the precision of its weights."""

    def __init__(self, lstm: nn.LSTM) -> None:
        self.hidden_size = lstm.hidden_size
        self.inputs, recurrent, self.bias = lstm_weights(lstm)
        self.recurrent = recurrent.T

    def project(self, inputs: Tensor) -> Tensor:
        return functional.linear(inputs, self.inputs, self.bias)

    def add_recurrent(self, gates: Tensor, states: Tensor) -> None:
        gates.addmm_(states, self.recurrent)


def can_pack(module: nn.Module, device: torch.device) -> bool:
    """Whether a module's layers may run packed: on the CPU, outside training, without gradients and autocast."""
    wanted = device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return wanted and not (module.training or torch.is_grad_enabled())


def through_packed_layers(
    layers: Iterable[tuple[Products, Products]], nodes: Tensor, counts: Sequence[int], rows: Tensor | None = None
) -> Tensor:
    """Packed nodes (N, D) through layers, each given by its two directions: (N, 2H).

    With ``rows`` (N,) the first layer reads row ``rows[i]`` of ``nodes`` (U, D) at node i: what words of one form have
    in common is computed once.
    """
    for directions in layers:
        nodes, rows = _layer(directions, nodes, counts, rows), None
    return nodes


def _layer(directions: tuple[Products, Products], nodes: Tensor, counts: Sequence[int], rows: Tensor | None) -> Tensor:
    spans = [slice(end - count, end) for count, end in zip(counts, accumulate(counts), strict=True)]
    orders = spans, spans[::-1]
    halves = [
        _run(products, products.project(nodes), rows, order) for products, order in zip(directions, orders, strict=True)
    ]
    return torch.cat(halves, -1)


def _run(products: Products, projected: Tensor, rows: Tensor | None, order: Sequence[slice]) -> Tensor:
    """The states (N, H) of one direction, step by step; ahead sentences end on the way, backwards they begin."""
    states = projected.new_empty(max(span.stop for span in order), products.hidden_size)
    cells = states.new_zeros(max(span.stop - span.start for span in order), products.hidden_size)
    before = states[:0]
    for span in order:
        gates = projected[span] if rows is None else projected.index_select(0, rows[span])
        going_on = min(len(gates), len(before))
        if going_on:
            products.add_recurrent(gates[:going_on], before[:going_on])
        before = states[span]
        _step(gates, cells[: len(gates)], before)
    return states


def _step(gates: Tensor, cells: Tensor, states: Tensor) -> None:
    """Cells (N, H) go on by a step and give the states (N, H); the gates (N, 4H) are worked in."""
    if gates.dtype == torch.float32:
        step(gates.numpy(), cells.numpy(), states.numpy())
        return
    enter, keep, new, leave = gates.chunk(4, 1)
    cells.mul_(keep.sigmoid_()).addcmul_(enter.sigmoid_(), new.tanh_())
    torch.mul(cells.tanh(), leave.sigmoid_(), out=states)
