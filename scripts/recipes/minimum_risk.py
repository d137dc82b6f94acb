"""Minimum-risk training: minimise the expected number of wrong words instead of the gold tree's improbability.

The risk is exact, and so is its gradient ([Exp] §6.1): nothing is sampled. An objective is named by its class path:

    PYTHONPATH=scripts/recipes python -m treeparse train --config demo --objective minimum_risk.MinimumRisk
"""

import demo
import torch
from torch import Tensor

from treeparse import LabeledCRF, Parser, Sentence
from treeparse.batch import Batch
from treeparse.objectives import Objective, TreeLikelihood, known_tree


class MinimumRisk(Objective):
    """The expected number of words with a wrong head or label in each sentence."""

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """(B,), differentiable; words of unknown head or label do not count."""
        heads, labels = known_tree(batch)
        return distribution.risk(heads, labels) * ((heads >= 0) & (labels >= 0)).sum(-1)


def train(parser: Parser, sentences: list[Sentence], objective: Objective, steps: int) -> float:
    """Minimise an objective; the expected share of wrong words afterwards."""
    optimizer, batch = torch.optim.AdamW(parser.parameters(), lr=1e-2), parser.collate(sentences)
    for _ in range(steps):
        optimizer.zero_grad()
        parser.loss(batch, objective).backward()
        optimizer.step()
    return parser.distribution(batch).risk(*known_tree(batch)).mean().item()


if __name__ == "__main__":
    torch.manual_seed(1)
    parser = demo.small_parser(some := demo.sentences()[:100])
    for objective, steps in ((TreeLikelihood(), 30), (MinimumRisk(), 30)):
        print(f"{type(objective).__name__}: {100 * train(parser, some, objective, steps):.1f}% of words expected wrong")
