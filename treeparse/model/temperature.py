"""Temperature scaling: fit a parser's probabilities to trees that it was not trained on (Guo et al. 2017, §4.2).

One temperature scales arcs and labels together. It keeps the order of the trees, so that no parse changes; separate
temperatures of arcs and labels could change parses. Labels are usually less overconfident than arcs. The written
probabilities of labels therefore have a temperature of their own, which changes nothing else.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.batch import moved
from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.data.features.padding import padded_heads
from treeparse.errors import TreeparseError
from treeparse.model.inference.lists import check_own_trees, own_trees
from treeparse.model.inference.parsing import evaluating
from treeparse.model.parser import Parser
from treeparse.model.parser_config import TEMPERATURES
from treeparse.sentence import Sentence, missing_labels
from treeparse.trees import LabeledCRF
from treeparse.trees.labels import label_sums
from treeparse.trees.parts import arcs_of

WIDEST = math.log(16)  # the search goes up to this far from the log of the parser's temperature
PRECISION = 2e-3  # of the log of the temperature
GRID = 12  # temperatures tried on either side; golden sections then search between the neighbours of the best
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class TemperatureFit:
    """A fitted temperature, and the loss before and after: minus the log probability of trees per word, in nats.

    Sentences whose tree is impossible under the parser are left out: those with unknown labels, or several roots.
    """

    temperature: float
    before: float  # loss at the previous temperature
    after: float  # loss at the fitted temperature
    sentences: int
    words: int
    left_out: int  # sentences


def fit_temperature(parser: Parser, sentences: Sequence[Sentence], *, batch_words: int = 5000) -> TemperatureFit:
    """Set a parser's temperature to the one that maximises the likelihood of the sentences' labelled trees.

    The log likelihood is concave in ``1 / temperature``, so that golden sections find its maximum; they search within a
    factor of 16 of the parser's temperature. The scores of all sentences stay in memory during the search. Written
    probabilities of labels keep their temperature.

    Raises:
        TreeparseError: as `Parser.score_trees` does, if a label is missing, and if every tree is impossible under the
            parser.
    """
    batches = _gold_batches(parser, sentences, batch_words)
    scored = sum(int(batch.possible.sum()) for batch in batches)
    words = sum(int(batch.p.lengths[batch.possible].sum()) for batch in batches)
    if not words:
        raise TreeparseError(
            "The model must allow the tree of a sentence, but allows none: are its labels those of the trees?"
        )

    def loss(log_factor: float) -> float:
        return sum(batch.loss(math.exp(log_factor)) for batch in batches) / words

    best = golden_section(loss, -WIDEST, WIDEST, PRECISION)
    temperature = parser.config.temperature * math.exp(best)
    temperature = min(max(temperature, TEMPERATURES[0]), TEMPERATURES[1])
    labels = parser.config.label_temperature or parser.config.temperature
    parser.config = replace(parser.config, temperature=temperature, label_temperature=labels)
    return TemperatureFit(temperature, loss(0.0), loss(best), scored, words, len(sentences) - scored)


@dataclass(frozen=True, slots=True)
class LabelTemperatureFit:
    """A fitted temperature of P(label | arc), and the loss before and after.

    A loss is minus the mean log probability, in nats, of whether the parser's label is right.
    """

    temperature: float
    before: float  # loss at the previous temperature
    after: float  # loss at the fitted temperature
    words: int  # words that the losses are means over


def fit_label_temperature(
    parser: Parser, sentences: Sequence[Sentence], *, batch_words: int = 5000
) -> LabelTemperatureFit | None:
    """Set the ``label_temperature`` that fits the probabilities of labels in the parser's own parses best.

    The written probability of a label is that of a right label given a right arc. The fit therefore uses the words
    whose arc is right and whose arc can have several labels. The search covers a factor of 16 around the parser's
    temperature.

    Returns:
        The fit; None, with the parser unchanged, if there are no such words.

    Raises:
        TreeparseError: as `Parser.score_trees` does, and if a label is missing.
    """
    now = parser.config.label_temperature or parser.config.temperature
    scores, labels, is_right = _choices(parser, sentences, batch_words)
    if not len(labels):
        return None
    chosen = labels.unsqueeze(-1)

    def loss(log_factor: float) -> float:
        """Minus the mean log probability of the label where it is right, and of all other labels where it is wrong."""
        log_probs = label_sums.log_probs(scores / (now * math.exp(log_factor)))
        others = log_probs.scatter(-1, chosen, -torch.inf).logsumexp(-1)
        return -float(torch.where(is_right, log_probs.gather(-1, chosen).squeeze(-1), others).mean())

    steps = [WIDEST * step / GRID for step in range(-GRID, GRID + 1)]  # the loss may have several minima
    nearest = min(steps, key=loss)
    best = golden_section(loss, nearest - WIDEST / GRID, nearest + WIDEST / GRID, PRECISION)
    temperature = min(max(now * math.exp(best), TEMPERATURES[0]), TEMPERATURES[1])
    parser.config = replace(parser.config, label_temperature=temperature)
    return LabelTemperatureFit(temperature, loss(0.0), loss(best), len(labels))


def golden_section(function: Callable[[float], float], low: float, high: float, precision: float) -> float:
    """Return the minimiser of a function with one minimum; each call narrows the interval by 0.618 (Kiefer 1953)."""
    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    values = [function(point) for point in inner]
    while high - low > precision:
        if values[0] <= values[1]:
            high = inner[1]
            inner = [high - GOLDEN * (high - low), inner[0]]
            values = [function(inner[0]), values[0]]
        else:
            low = inner[0]
            inner = [inner[1], low + GOLDEN * (high - low)]
            values = [values[1], function(inner[1])]
    return (low + high) / 2


class _GoldBatch(NamedTuple):
    """A batch of distributions and the trees of their sentences."""

    p: LabeledCRF
    heads: Tensor  # (B, n+1)
    labels: Tensor  # (B, n+1)
    possible: Tensor  # (B,) bool

    def loss(self, factor: float) -> float:
        """Minus the summed log probability of the possible trees, with the temperature times ``factor``."""
        with torch.inference_mode():
            log_probs = self.p.tempered(factor).log_prob(self.heads, self.labels)
        return -float(log_probs[self.possible].sum())


@torch.inference_mode()
def _gold_batches(parser: Parser, sentences: Sequence[Sentence], batch_words: int) -> list[_GoldBatch]:
    check_own_trees(sentences)
    if clause := missing_labels(sentences):
        raise TreeparseError(f"Temperatures are fitted to trees with labels, but {clause}: leave such sentences out.")
    batches: list[_GoldBatch] = []
    with evaluating(parser.networks):
        for indices in BucketBatchSampler([*map(parser.length, sentences)], max_words=batch_words):
            chosen = [sentences[index] for index in indices]
            keep = arcs_of(moved(padded_heads(chosen), parser.device))
            p = parser.distribution(parser.collate(chosen, indices), keep=keep)
            gold = own_trees(p, chosen, parser.label_names)
            possible = gold.log_probs[0] > -torch.inf
            batches.append(_GoldBatch(p, gold.heads[0], gold.labels[0], possible))
    return batches


@torch.inference_mode()
def _choices(parser: Parser, sentences: Sequence[Sentence], batch_words: int) -> list[Tensor]:
    """Describe the labels of the parser's own parses, for A words whose arc is right and can have another label.

    Returns:
        The scores ``(A, L)`` of all labels at the temperature 1, up to a constant for each word; the parser's labels
        ``(A,)``; and whether these are right, ``(A,)`` bool.
    """
    parts = []
    for gold in _gold_batches(parser, sentences, batch_words):
        heads, labels = gold.p.decode(parser.config.decoder)
        scores = gold.p.labels.of_trees(heads) * parser.config.temperature
        used = (heads >= 0) & (heads == gold.heads) & ((scores > -torch.inf).sum(-1) > 1)
        parts.append((scores[used], labels[used], (labels == gold.labels)[used]))
    return [torch.cat(columns) for columns in zip(*parts, strict=True)]
