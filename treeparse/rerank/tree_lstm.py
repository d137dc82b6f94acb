"""A Tree-LSTM over a forest of shared subtrees that sees which dependents stand side by side."""

import torch
from torch import Tensor, nn

from treeparse.rerank.forests import LEFT, RIGHT, Forest


class TreeLSTM(nn.Module):
    """Gives each subtree a vector.

    That is a child-sum Tree-LSTM (Tai et al. 2015), with other weights for dependents on the left and on the right,
    but for what comes from below to the gates: the sum over dependents of what each and its neighbour on the way to
    the head, or none, say together.

    Args:
        input_size: of what the node on top of a subtree puts in.
        size: of the vectors.
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.inputs = nn.Linear(input_size, 4 * size)
        self.neighbours = nn.ModuleList(nn.Linear(2 * size, size) for _ in (LEFT, RIGHT))
        self.below = nn.ModuleList(nn.Linear(size, 3 * size, bias=False) for _ in (LEFT, RIGHT))
        self.forget = nn.Linear(size, size, bias=False)

    def forward(self, forest: Forest, nodes: Tensor) -> Tensor:
        """``(S, size)`` from what the subtrees' top nodes put in, ``(S, input_size)``; all of one height at once."""
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
        """What comes to the gates ``(rows, 3 * size)``, and the cells that are kept ``(rows, size)``."""
        lower, upper, neighbour = forest.edges[:, edges]
        place = torch.zeros(len(inputs), dtype=torch.int64).index_copy(0, rows, torch.arange(len(rows)))[upper]
        pairs = torch.cat([vectors[lower], torch.where((neighbour == lower)[:, None], 0.0, vectors[neighbour])], -1)
        gates = inputs.new_zeros(len(rows), 3 * self.size)
        for side, (neighbours, below) in enumerate(zip(self.neighbours, self.below, strict=True)):
            mine = forest.sides[edges] == side
            said = torch.relu(neighbours(pairs[mine]))
            gates = gates + below(inputs.new_zeros(len(rows), self.size).index_add(0, place[mine], said))
        kept = torch.sigmoid(self.forget(vectors[lower]) + inputs[upper, 3 * self.size :]) * cells[lower]
        return gates, inputs.new_zeros(len(rows), self.size).index_add(0, place, kept)
