"""How rerankers learn: a weight for each feature of a tree, losses over lists of trees, and the base weight."""

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError, name_among
from treeparse.metrics.counts import REMEDY, is_right, universal_arcs, universal_label, word_mismatch
from treeparse.rerank.scoring import first_indices
from treeparse.rerank.tree_features import NodeNames, configurations, differing, features, shifted
from treeparse.sentence import EMPTY, Sentence

BASE_WEIGHTS = tuple(2 ** (power / 4) for power in range(-12, 29))  # the candidates: from 1/8 to 128
WEIGHT_DECAY, CLIP_NORM = 0.01, 5.0  # of AdamW; the largest norm of a gradient
Target = Literal["expected", "best"]


@dataclass(frozen=True)
class LogLinearConfig:
    """The settings of a reranker's model.

    Attributes:
        bits: the number of weights is 2 ** bits; features are hashed to them.
        min_count: the least count of a word in the training sentences that features name.
        upos: whether features name words by their UPOS; then lists must have UPOS.
    """

    bits: int = 21
    min_count: int = 5
    upos: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 28:
            raise TreeparseError(f"bits must be an integer from 1 to 28, got {self.bits}.")


class Bags(NamedTuple):
    """The trees of a list: features of the configurations in which trees differ, and each tree's configurations."""

    features: Tensor  # (F,) ids
    starts: Tensor  # (C,) of each configuration's features
    members: Tensor  # (2, M) tree and configuration
    trees: int


class LogLinear(nn.Module):
    """Scores trees, up to a constant for each list: features that all trees of a list have are left out."""

    config: LogLinearConfig
    words: Vocabulary

    def __init__(self, config: LogLinearConfig, words: Vocabulary) -> None:
        super().__init__()
        self.config, self.words = config, words
        self.counts: dict[str, int] = dict(zip(words.items, words.counts, strict=True))
        self.weights: nn.Parameter = nn.Parameter(torch.zeros(2**config.bits, 1))

    @classmethod
    def build(cls, config: LogLinearConfig, sentences: Sequence[Sentence]) -> Self:
        """Return a model for the words of these sentences, with all weights 0."""
        words = (form.lower() for sentence in sentences for form in sentence.forms)
        return cls(config, Vocabulary.build(words, min_count=config.min_count))

    def prepare(self, nbest: NBestList) -> Bags:
        """Return a list in the form that ``forward`` reads."""
        trees = [configurations(parse.heads, parse.labels) for parse in nbest.parses]
        parts, members = differing(trees)
        names = NodeNames.of(nbest.sentence.words, self.counts, upos=self.config.upos)
        bags = [self.ids(features(part, names)) for part in parts]
        starts = torch.tensor([0, *map(len, bags)]).cumsum(0)[:-1]
        ids = torch.tensor([feature for bag in bags for feature in bag], dtype=torch.int64)
        return Bags(ids, starts, torch.tensor(members, dtype=torch.int64).reshape(-1, 2).T, len(trees))

    def ids(self, names: Iterable[str]) -> list[int]:
        """Return the indices of features among the weights."""
        mask = 2**self.config.bits - 1
        return [zlib.crc32(name.encode()) & mask for name in names]

    def forward(self, lists: Sequence[Bags]) -> Tensor:
        """Return the scores ``(trees,)`` of all trees of the lists, list after list."""
        ids, counts = torch.cat([bags.features for bags in lists]), [bags.trees for bags in lists]
        starts = shifted([bags.starts for bags in lists], [len(bags.features) for bags in lists])
        of_trees, of_parts = zip(*(bags.members for bags in lists), strict=True)
        trees, parts = shifted(of_trees, counts), shifted(of_parts, [len(bags.starts) for bags in lists])
        values = functional.embedding_bag(ids, self.weights, starts, mode="sum").squeeze(-1)
        return values.new_zeros(sum(counts)).index_add(0, trees, values[parts])


@dataclass(frozen=True)
class LearningConfig:
    """How a reranker learns, by AdamW.

    Attributes:
        target: the quantity to maximise. "expected" is the expected number of right words, "best" the probability of
            the list's trees with the most right words.
        epochs: passes over the lists; the model has the weights after the epoch with the best LAS on held-out lists.
        batch_lists: lists in a step.
        learning_rate: falls linearly to 0.
        seed: seed of the order of lists.
    """

    target: Target = "expected"
    epochs: int = 4
    batch_lists: int = 32
    learning_rate: float = 2e-3
    seed: int = 1

    def __post_init__(self) -> None:
        name_among(self.target, get_args(Target), f"Unknown target {self.target!r:.60}")
        if min(self.epochs, self.batch_lists) < 1 or not self.learning_rate > 0:
            raise TreeparseError(
                "epochs and batch_lists must be 1 or more, and learning_rate above 0, got "
                f"{self.epochs}, {self.batch_lists} and {self.learning_rate}."
            )


def list_loss(scores: Tensor, right: Tensor, target: Target) -> Tensor:
    """Return the loss ``(B,)`` of each list.

    For "expected" the loss is the expected number of right words that a tree has less than the best tree of its list;
    for "best" it is the negative log probability, in nats, of all trees with the most right words together.

    Args:
        scores: ``(B, K)``, log weights of the trees of a list; -inf past the last.
        right: ``(B, K)``, right words of each; -1 past the last.
        target: "expected" or "best".
    """
    log_probs, most = scores.log_softmax(-1), right.amax(-1, keepdim=True)
    if target == "best":
        return -log_probs.masked_fill(right < most, -math.inf).logsumexp(-1)
    return (log_probs.exp() * (most - right)).sum(-1)


@dataclass(frozen=True)
class Example:
    """A list of different trees in the form that learning reads."""

    item: Bags
    log_probs: Tensor  # (K,) float32
    right: Tensor  # (K,) float32, words with the right head and universal label
    words: int


def example(model: LogLinear, gold: Sentence, nbest: NBestList) -> Example:
    """Return a list with its trees' right words; a list without UPOS, as from JSONL, gets the gold sentence's tags.

    Raises:
        TreeparseError: if the gold tree is missing, or has other words.
    """
    if gold.heads is None or gold.labels is None:
        raise TreeparseError(f"The gold sentence of the list of {nbest.sent_id} has no tree.")
    if gold.forms != nbest.tokens:
        problem = word_mismatch(gold, nbest.sentence.words)
        raise TreeparseError(f"The list of sentence {nbest.sent_id} is not of its gold sentence: {problem}; {REMEDY}.")
    words, different = nbest.sentence.words, tuple(nbest.parses[index] for index in first_indices(nbest))
    if not {*(words.upos or ())} - {EMPTY}:
        words = gold.without_tree()
    nbest = NBestList(replace(nbest.sentence, words=words), different)
    log_probs = torch.tensor([parse.log_prob for parse in different])
    return Example(model.prepare(nbest), log_probs, torch.tensor(right_words(gold, nbest)), len(gold))


def right_words(gold: Sentence, nbest: NBestList) -> list[float]:
    """Return the number of words of each parse with the right head and universal label, if gold has one."""
    arcs = universal_arcs(gold)
    trees = (zip(parse.heads, map(universal_label, parse.labels), strict=True) for parse in nbest.parses)
    return [float(sum(map(is_right, arcs, tree))) for tree in trees]


def padded(rows: Sequence[Tensor], fill: float) -> Tensor:
    """Return the values of each list as one tensor ``(B, K)``."""
    return pad_sequence([*rows], batch_first=True, padding_value=fill)


@torch.inference_mode()
def model_scores(model: LogLinear, examples: Sequence[Example], size: int = 64) -> list[Tensor]:
    """Return the model's scores of the trees of each list, from batches of ``size`` lists."""
    return [scores for batch in _batches(examples, size) for scores in _batch_scores(model, batch)]


def _batches(examples: Sequence[Example], size: int) -> list[Sequence[Example]]:
    return [examples[start : start + size] for start in range(0, len(examples), size)]


def _batch_scores(model: LogLinear, batch: Sequence[Example]) -> tuple[Tensor, ...]:
    return model([example.item for example in batch]).split([len(example.right) for example in batch])


@dataclass(frozen=True)
class Tuned:
    """A base weight, and the LAS of the trees chosen with it, of the base parser's trees, and of the best trees."""

    base_weight: float
    las: float
    base: float
    oracle: float


def tune(examples: Sequence[Example], scores: Sequence[Tensor]) -> Tuned:
    """Return the base weight whose chosen trees have the most right words; of equally good ones the highest."""
    words = max(sum(example.words for example in examples), 1)
    log_probs, own = padded([example.log_probs for example in examples], -math.inf), padded(scores, 0.0)
    right = padded([example.right for example in examples], -1)

    def las(values: Tensor) -> float:
        return float(right.gather(-1, values.argmax(-1, keepdim=True)).double().sum()) / words

    values = {weight: las(weight * log_probs + own) for weight in BASE_WEIGHTS}
    best = max(values, key=lambda weight: (values[weight], weight))
    return Tuned(best, values[best], las(log_probs), float(right.amax(-1).double().sum()) / words)


def fit(
    model: LogLinear,
    examples: Sequence[Example],
    held_out: Sequence[Example],
    config: LearningConfig,
    say: Callable[[str], None] = lambda line: None,
) -> float:
    """Train a model up to the weights of its best epoch, and return the best base weight for these weights."""
    order = torch.Generator().manual_seed(config.seed)
    optimizer = torch.optim.AdamW(model.parameters(), config.learning_rate, weight_decay=WEIGHT_DECAY)
    steps = config.epochs * math.ceil(len(examples) / config.batch_lists)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(1 - step / steps, 0.0))
    best: tuple[Tuned, dict[str, Tensor]] | None = None
    for epoch in range(1, config.epochs + 1):
        loss = 0.0
        shuffled = [examples[index] for index in torch.randperm(len(examples), generator=order).tolist()]
        for batch in _batches(shuffled, config.batch_lists):
            optimizer.zero_grad()
            pairs = zip(_batch_scores(model, batch), batch, strict=True)
            scores = padded([scores + example.log_probs for scores, example in pairs], -math.inf)
            losses = list_loss(scores, padded([example.right for example in batch], -1), config.target)
            losses.mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
            optimizer.step()
            schedule.step()
            loss += float(losses.detach().sum())
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
