"""The temperatures at which a parser's probabilities fit trees best that it was not trained on (Guo et al. 2017, §4.2).

The distribution has one for arcs and labels together: any power of it has the same best trees in the same order, so a
parse stays what it was. Of arcs and labels each at its own temperature, other trees may be best. As labels are mostly
less overconfident than arcs, or not at all, the probabilities of labels that are written have a temperature of their
own, which changes nothing else.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.data.batches.batching import BucketBatchSampler
from treeparse.errors import TreeparseError
from treeparse.model.config import TEMPERATURES
from treeparse.model.inference.given_trees import GivenTrees
from treeparse.model.inference.parsing import evaluating
from treeparse.model.parser import Parser
from treeparse.sentence import Sentence
from treeparse.trees import LabeledCRF
from treeparse.trees.labels import sums

WIDEST = math.log(16)  # of the logs of temperatures that are searched, to either side of what the parser has
PRECISION = 2e-3  # of the log of the temperature
GRID = 12  # temperatures to either side that are tried before the search is narrowed to the neighbours of the best
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class TemperatureFit:
    """A temperature, and what it is worth; losses are minus the mean log probability of a tree a word, in nats.

    Sentences whose tree is impossible, whatever the temperature, are left out: with labels that the parser does not
    know, or with several roots.
    """

    temperature: float
    before: float  # loss at the temperature that the parser had
    after: float  # loss at the new one
    sentences: int
    words: int
    left_out: int  # sentences


def fit_temperature(parser: Parser, sentences: Sequence[Sentence], *, batch_words: int = 5000) -> TemperatureFit:
    """Give a parser the temperature at which the sentences' own trees, labels included, are likeliest: exactly.

    The log likelihood is concave in ``1 / temperature``, so it has one maximum, which is found by golden sections
    within a factor of 16 of the parser's temperature. The scores of all sentences are held meanwhile. Written
    probabilities of labels keep the temperature that they have.

    Raises:
        TreeparseError: as `Parser.score_trees` does, and where no tree of the sentences is possible.
    """
    found = _given(parser, sentences, batch_words)
    possible = [each.possible.sum().item() for each in found]
    words = sum(int(each.p.lengths[each.possible].sum()) for each in found)
    if not words:
        raise TreeparseError("No tree of the sentences is possible for the model: are its labels those of the trees?")

    def loss(log_factor: float) -> float:
        return sum(each.loss(math.exp(log_factor)) for each in found) / words

    best = golden_section(loss, -WIDEST, WIDEST, PRECISION)
    temperature = parser.config.temperature * math.exp(best)
    temperature = min(max(temperature, TEMPERATURES[0]), TEMPERATURES[1])
    labels = parser.config.label_temperature or parser.config.temperature
    parser.config = replace(parser.config, temperature=temperature, label_temperature=labels)
    counted = int(sum(possible))
    return TemperatureFit(temperature, loss(0.0), loss(best), counted, words, len(sentences) - counted)


@dataclass(frozen=True, slots=True)
class LabelTemperatureFit:
    """A temperature of P(label | arc), and what it is worth.

    Losses are minus the mean log probability, in nats, of what is true of a label: that it is right, or that it is not.
    """

    temperature: float
    before: float  # loss at the temperature that labels had
    after: float  # loss at the new one
    words: int  # that the losses are of


def fit_label_temperature(
    parser: Parser, sentences: Sequence[Sentence], *, batch_words: int = 5000
) -> LabelTemperatureFit | None:
    """Give a parser the ``label_temperature`` at which probabilities of its own parses' labels are likeliest.

    The probability of a label that is written with a parse says how likely the label is right if its arc is. So the
    words that count are those whose arc is right, and what counts is whether their label is right too. Words whose arc
    can have one label alone say nothing. The temperature is searched within a factor of 16 of the present one.

    Returns:
        The fit; None, with the parser as it was, where no word says anything.

    Raises:
        TreeparseError: as `Parser.score_trees` does.
    """
    now = parser.config.label_temperature or parser.config.temperature
    choices = _choices(parser, sentences, batch_words)
    if not len(choices.labels):
        return None

    def loss(log_factor: float) -> float:
        return choices.loss(now * math.exp(log_factor))

    steps = [WIDEST * step / GRID for step in range(-GRID, GRID + 1)]  # the loss may have several minima
    nearest = min(steps, key=loss)
    best = golden_section(loss, nearest - WIDEST / GRID, nearest + WIDEST / GRID, PRECISION)
    temperature = min(max(now * math.exp(best), TEMPERATURES[0]), TEMPERATURES[1])
    parser.config = replace(parser.config, label_temperature=temperature)
    return LabelTemperatureFit(temperature, loss(0.0), loss(best), len(choices.labels))


def golden_section(function: Callable[[float], float], low: float, high: float, precision: float) -> float:
    """Where a function of one minimum is least, by a call for each factor of 0.618 of the interval (Kiefer 1953)."""
    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    values = [function(place) for place in inner]
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


class _Given(NamedTuple):
    """A batch of distributions and the trees that their sentences have."""

    p: LabeledCRF
    heads: Tensor  # (B, n+1)
    labels: Tensor  # (B, n+1)
    possible: Tensor  # (B,) bool

    def loss(self, factor: float) -> float:
        """Minus the summed log probability of the possible ones at so many times the temperature."""
        with torch.inference_mode():
            log_probs = self.p.tempered(factor).log_prob(self.heads, self.labels)
        return -float(log_probs[self.possible].sum())


@torch.inference_mode()
def _given(parser: Parser, sentences: Sequence[Sentence], batch_words: int) -> list[_Given]:
    trees = GivenTrees.of(sentences, parser.label_names)
    batches: list[_Given] = []
    with evaluating(parser.networks):
        for places in BucketBatchSampler([*map(parser.length, sentences)], max_words=batch_words):
            p = parser.distribution(parser.collate([sentences[place] for place in places], places))
            found = trees(p, places)
            possible = found.log_probs[:, 0] > -torch.inf
            batches.append(_Given(p, found.heads[:, 0], found.labels[:, 0], possible))
    return batches


class _Choices(NamedTuple):
    """Labels of words, the scores from which they were chosen, and whether they are right."""

    scores: Tensor  # (A, L) of all labels at the temperature 1, but for a constant a word
    labels: Tensor  # (A,)
    right: Tensor  # (A,) bool

    def loss(self, temperature: float) -> float:
        """Minus the mean log probability of what is true of a label, that it is right or that another one is."""
        log_probs, chosen = sums.log_probs(self.scores / temperature), self.labels.unsqueeze(-1)
        others = log_probs.scatter(-1, chosen, -torch.inf).logsumexp(-1)
        return -float(torch.where(self.right, log_probs.gather(-1, chosen).squeeze(-1), others).mean())


@torch.inference_mode()
def _choices(parser: Parser, sentences: Sequence[Sentence], batch_words: int) -> _Choices:
    """The labels of the parser's own parses of the sentences where the arc is right and another label is possible."""
    parts = []
    for given in _given(parser, sentences, batch_words):
        heads, labels = given.p.decode(parser.config.decoder)
        scores = given.p.labels.of_trees(heads) * parser.config.temperature
        counted = (heads >= 0) & (heads == given.heads) & ((scores > -torch.inf).sum(-1) > 1)
        parts.append((scores[counted], labels[counted], (labels == given.labels)[counted]))
    return _Choices(*map(torch.cat, zip(*parts, strict=True)))
