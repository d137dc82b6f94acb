"""Lists to learn from: their trees, and how many words of each are right."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.metrics.counts import REMEDY, universal_label, word_mismatch
from treeparse.rerank.model import ListModel
from treeparse.rerank.risk import first_indices
from treeparse.sentence import EMPTY, Sentence

BASE_WEIGHTS = tuple(2 ** (power / 4) for power in range(-12, 29))  # the candidates: from 1/8 to 128


@dataclass(frozen=True)
class Example:
    """A list of different trees in the form that learning reads."""

    item: Any  # the list as the model prepared it
    log_probs: Tensor  # (K,) float32
    right: Tensor  # (K,) float32, words with the right head and universal label
    words: int


def example(model: ListModel, gold: Sentence, nbest: NBestList) -> Example:
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
        words = replace(gold, heads=None, labels=None, allowed=None)
    nbest = NBestList(replace(nbest.sentence, words=words), different)
    log_probs = torch.tensor([parse.log_prob for parse in different])
    return Example(model.prepare(nbest), log_probs, torch.tensor(right_words(gold, nbest)), len(gold))


def right_words(gold: Sentence, nbest: NBestList) -> list[float]:
    """Return the number of words of each parse with the right head and universal label."""
    heads, labels = gold.heads or (), [*map(universal_label, gold.labels or ())]
    return [
        float(
            sum(
                head == own and universal_label(label) == name
                for head, label, own, name in zip(parse.heads, parse.labels, heads, labels, strict=True)
            )
        )
        for parse in nbest.parses
    ]


def padded(rows: Sequence[Tensor], fill: float) -> Tensor:
    """Return the values of each list as one tensor ``(B, K)``."""
    return pad_sequence([*rows], batch_first=True, padding_value=fill)


@torch.inference_mode()
def model_scores(model: ListModel, examples: Sequence[Example], size: int = 64) -> list[Tensor]:
    """Return the model's scores of the trees of each list."""
    model.eval()
    scores: list[Tensor] = []
    for start in range(0, len(examples), size):
        batch = examples[start : start + size]
        scores += model([each.item for each in batch]).split([len(each.right) for each in batch])
    return scores


@dataclass(frozen=True)
class Tuned:
    """A base weight, and the LAS of the trees chosen with it, of the base parser's trees, and of the best trees."""

    base_weight: float
    las: float
    base: float
    oracle: float


def tune(examples: Sequence[Example], scores: Sequence[Tensor]) -> Tuned:
    """Return the base weight whose chosen trees have the most right words; of equally good ones the highest."""
    words = max(sum(each.words for each in examples), 1)
    log_probs, own = padded([each.log_probs for each in examples], -math.inf), padded(scores, 0.0)
    right = padded([each.right for each in examples], -1)

    def las(values: Tensor) -> float:
        return float(right.gather(-1, values.argmax(-1, keepdim=True)).double().sum()) / words

    values = {weight: las(weight * log_probs + own) for weight in BASE_WEIGHTS}
    best = max(values, key=lambda weight: (values[weight], weight))
    return Tuned(best, values[best], las(log_probs), float(right.amax(-1).double().sum()) / words)
