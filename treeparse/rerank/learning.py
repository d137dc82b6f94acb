"""How the models of rerankers learn, by the trees of lists whose gold trees are known."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from treeparse.errors import TreeparseError, name_among
from treeparse.rerank.examples import Example, Tuned, model_scores, padded, tune
from treeparse.rerank.model import ListModel

Target = Literal["expected", "best"]
TARGETS: tuple[Target, ...] = ("expected", "best")


@dataclass(frozen=True)
class LearningConfig:
    """How a reranker learns, by AdamW.

    Attributes:
        target: what is to be high: the expected number of right words, or the probability of the list's trees with
            the most right words.
        epochs: passes over the lists; the best one by the LAS of the held-out lists makes the model.
        batch_lists: lists of a step.
        learning_rate: falls linearly to 0.
        weight_decay: decoupled L2 regularisation.
        clip_norm: largest norm of a gradient.
        seed: of first weights, order and dropout.
    """

    target: Target = "expected"
    epochs: int = 4
    batch_lists: int = 32
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    clip_norm: float = 5.0
    seed: int = 1

    def __post_init__(self) -> None:
        name_among(self.target, TARGETS, f"There is no target {self.target!r:.60}")
        if min(self.epochs, self.batch_lists) < 1 or not self.learning_rate > 0 or self.weight_decay < 0:
            raise TreeparseError(
                "epochs and batch_lists must be 1 or more, learning_rate above 0, and weight_decay 0 or more."
            )


def list_loss(scores: Tensor, right: Tensor, target: Target) -> Tensor:
    """``(B,)``: of lists, the words that are expected to be wrong beyond the best tree's; or, in nats, the best trees'.

    That is the negative conditional log likelihood of the trees with the most right words together.

    Args:
        scores: ``(B, K)``, log weights of the trees of a list; -inf past the last.
        right: ``(B, K)``, right words of each; -1 past the last.
        target: "expected" or "best".
    """
    log_probs, most = scores.log_softmax(-1), right.amax(-1, keepdim=True)
    if target == "best":
        return -log_probs.masked_fill(right < most, -math.inf).logsumexp(-1)
    return (log_probs.exp() * (most - right)).sum(-1)


def fit(
    model: ListModel,
    examples: Sequence[Example],
    held_out: Sequence[Example],
    config: LearningConfig,
    say: Callable[[str], None] = lambda line: None,
) -> float:
    """Train a model, which ends with the weights of its best epoch, and return the base weight that suits them."""
    torch.manual_seed(config.seed)
    order = torch.Generator().manual_seed(config.seed)
    optimizer = torch.optim.AdamW(model.parameters(), config.learning_rate, weight_decay=config.weight_decay)
    steps = config.epochs * math.ceil(len(examples) / config.batch_lists)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(1 - step / steps, 0.0))
    best: tuple[Tuned, dict[str, Tensor]] | None = None
    for epoch in range(1, config.epochs + 1):
        loss = 0.0
        for batch in _batches(examples, config.batch_lists, order):
            loss += _step(model, batch, config, optimizer)
            schedule.step()
        tuned = tune(held_out, model_scores(model, held_out))
        say(
            f"epoch {epoch:>2}   loss {loss / len(examples):.4f}   LAS {tuned.las:.2%} (base {tuned.base:.2%}, "
            f"oracle {tuned.oracle:.2%})   base weight {tuned.base_weight:.2f}"
        )
        if best is None or tuned.las > best[0].las:
            best = tuned, {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert best is not None
    model.load_state_dict(best[1])
    return best[0].base_weight


def _batches(examples: Sequence[Example], size: int, order: torch.Generator) -> Iterator[list[Example]]:
    indices = torch.randperm(len(examples), generator=order).tolist()
    for start in range(0, len(indices), size):
        yield [examples[index] for index in indices[start : start + size]]


def _step(
    model: ListModel, batch: Sequence[Example], config: LearningConfig, optimizer: torch.optim.Optimizer
) -> float:
    model.train()
    optimizer.zero_grad()
    scores_of_lists = model([each.item for each in batch]).split([len(each.right) for each in batch])
    scores = padded([own + each.log_probs for own, each in zip(scores_of_lists, batch, strict=True)], -math.inf)
    loss = list_loss(scores, padded([each.right for each in batch], -1), config.target)
    loss.mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
    optimizer.step()
    return float(loss.detach().sum())
