"""Entropy regularisation: few labelled sentences, and unlabelled ones on which the parser should be sure of itself.

    python scripts/recipes/entropy_regularization.py

The loss is the likelihood where trees are known plus a weight times the entropy where none is (Grandvalet and Bengio
2004). Entropy and gradient are exact ([Exp] §6.2). Surer is not righter: choose the weight on a dev set.
"""

import demo
import torch

from treeparse import NonProjectiveCRF, Parser, Sentence
from treeparse.batch import Batch
from treeparse.objectives import TreeLikelihood


def entropy_a_word(parser: Parser, batch: Batch) -> torch.Tensor:
    """Nats, differentiable; whatever the labels."""
    return NonProjectiveCRF(parser.scorer(batch).arcs, batch.lengths).entropy().sum() / batch.num_words


def train(parser: Parser, labelled: list[Sentence], unlabelled: list[Sentence], weight: float, steps: int) -> float:
    """Minimise the loss, and give the entropy of the unlabelled sentences in the end."""
    known, unknown = parser.collate(labelled), parser.collate(unlabelled)
    optimizer = torch.optim.AdamW(parser.parameters(), lr=5e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        (parser.loss(known, TreeLikelihood()) + weight * entropy_a_word(parser, unknown)).backward()
        optimizer.step()
    return entropy_a_word(parser, unknown).item()


if __name__ == "__main__":
    sentences = demo.sentences()
    for weight in (0.0, 1.0):
        torch.manual_seed(1)
        parser = demo.small_parser(sentences[:20])
        entropy = train(parser, sentences[:20], sentences[20:60], weight, steps=40)
        print(f"weight {weight}: {entropy:.3f} nats a word on unlabelled sentences")
