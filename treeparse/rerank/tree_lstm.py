"""A Tree-LSTM over a forest of shared subtrees that depends on neighbouring dependents."""

import torch
from torch import Tensor, nn

from treeparse.rerank.forests import LEFT, RIGHT, Forest


class TreeLSTM(nn.Module):
    """Computes a vector of each subtree.

    This is a child-sum Tree-LSTM (Tai et al. 2015) with different weights for dependents on the left and on the right.
    The gates' input from below is the sum over dependents of a function of the dependent and its neighbour towards the
    head.

    Args:
        input_size: size of the input of a subtree's top node.
        size: size of the vectors.
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.inputs = nn.Linear(input_size, 4 * size)
        self.neighbours = nn.ModuleList(nn.Linear(2 * size, size) for _ in (LEFT, RIGHT))
        self.below = nn.ModuleList(nn.Linear(size, 3 * size, bias=False) for _ in (LEFT, RIGHT))
        self.forget = nn.Linear(size, size, bias=False)

    def forward(self, forest: Forest, nodes: Tensor) -> Tensor:
        """Return vectors ``(S, size)`` from the inputs of top nodes ``(S, input_size)``, height by height."""
        inputs = self.inputs(nodes)
        vectors, cells = (inputs.new_zeros(len(inputs), self.size) for _ in range(2))
        _, upper, _ = forest.edges
        for height in range(int(forest.heights.max()) + 1 if len(inputs) else 0):
            rows = (forest.heights == height).nonzero().squeeze(-1)
            own = (forest.heights[upper] == height).nonzero().squeeze(-1)
            gates, carried = self._from_below(forest, own, rows, inputs, vectors, cells)
            enter, leave, update = (inputs[rows, : 3 * self.size] + gates).chunk(3, -1)
            cell = carried + torch.sigmoid(enter) * torch.tanh(update)
            cells = cells.index_copy(0, rows, cell)
            vectors = vectors.index_copy(0, rows, torch.sigmoid(leave) * torch.tanh(cell))
        return vectors

    def _from_below(
        self, forest: Forest, edges: Tensor, rows: Tensor, inputs: Tensor, vectors: Tensor, cells: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the gates' input from below ``(rows, 3 * size)``, and the remembered cells ``(rows, size)``."""
        lower, upper, neighbour = forest.edges[:, edges]
        index = torch.zeros(len(inputs), dtype=torch.int64).index_copy(0, rows, torch.arange(len(rows)))[upper]
        pairs = torch.cat([vectors[lower], torch.where((neighbour == lower)[:, None], 0.0, vectors[neighbour])], -1)
        gates = inputs.new_zeros(len(rows), 3 * self.size)
        for side, (neighbours, below) in enumerate(zip(self.neighbours, self.below, strict=True)):
            mine = forest.sides[edges] == side
            messages = torch.relu(neighbours(pairs[mine]))
            gates = gates + below(inputs.new_zeros(len(rows), self.size).index_add(0, index[mine], messages))
        remembered = torch.sigmoid(self.forget(vectors[lower]) + inputs[upper, 3 * self.size :]) * cells[lower]
        return gates, inputs.new_zeros(len(rows), self.size).index_add(0, index, remembered)
