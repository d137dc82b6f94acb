"""A latent-tree layer: attention whose weights are the probabilities of arcs in a tree that nobody labelled."""

import torch
from torch import Tensor, nn

from treeparse import NonProjectiveCRF


class TreeAttention(nn.Module):
    """Gives every word the expected value of its head ``(B, n+1, D)``; node 0 is the root, which gets nothing."""

    def __init__(self, size: int, structured: bool = True) -> None:
        super().__init__()
        self.structured, self.bilinear = structured, nn.Linear(size, size, bias=False)

    def forward(self, nodes: Tensor, values: Tensor) -> Tensor:
        scores = nodes @ self.bilinear(nodes).mT  # [batch, head, dependent]
        return (NonProjectiveCRF(scores).marginals if self.structured else scores.softmax(1)).mT @ values


def learn(structured: bool, steps: int = 80, n: int = 8) -> float:
    """Which neighbour lies towards the root, if nodes know but their edges? The share that is found in the end."""
    layer, share = TreeAttention(n, structured), 0.0
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(steps):
        heads = (torch.rand(32, n) * torch.arange(n)).ceil().long()  # 0 of word 1, an earlier word of the others
        above = nn.functional.one_hot(torch.rand(32, n).argsort(1), n).float()  # the name of each word's edge upwards
        edges = nn.functional.pad(above, (0, 0, 1, 0)).scatter_add(1, heads[..., None].expand_as(above), above)
        found = layer(edges, torch.eye(n + 1).expand(32, -1, -1))[:, 1:]
        optimizer.zero_grad()
        found.gather(-1, heads[..., None]).clamp_min(1e-9).log().mean().neg().backward()
        optimizer.step()
        share = (found.argmax(-1) == heads).float().mean().item()
    return share


if __name__ == "__main__":
    print(f"heads found: {learn(structured=False):.0%} by softmax, {learn(structured=True):.0%} by trees")
