"""Temperature scaling: fit a parser's probabilities to trees that it was not trained on (Guo et al. 2017, §4.2).

There is one temperature for arcs and one for labels. The log probability of a labelled tree is the sum of the log
probability of its arcs, which depends on the first temperature alone, and the log probabilities of its labels given
their arcs, which depend on the second alone. Both fits are exact, and together they maximise the likelihood of the
labelled trees.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from treeparse.batch import moved
from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.data.features.padding import padded_heads
from treeparse.errors import TreeparseError
from treeparse.model.inference.lists import check_own_trees
from treeparse.model.inference.parsing import evaluating
from treeparse.model.inference.tree_request import known_labels
from treeparse.model.parser import Parser
from treeparse.model.parser_config import TEMPERATURES
from treeparse.sentence import Sentence
from treeparse.trees import TreeCRF
from treeparse.trees.labels import label_sums
from treeparse.trees.parts import arcs_of

PRECISION = 2e-3  # of the log of a temperature
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class TemperatureFit:
    """A fitted temperature, and the loss before and after: minus the mean log probability a word, in nats."""

    temperature: float
    before: float  # loss at the previous temperature
    after: float  # loss at the fitted temperature
    words: int


@dataclass(frozen=True, slots=True)
class TemperatureFits:
    """The fits of both temperatures; None where no word has a choice, or for arcs of trees without probabilities."""

    arcs: TemperatureFit | None
    labels: TemperatureFit | None
    sentences: int  # whose trees the parser allows
    left_out: int  # sentences whose trees it does not allow, for example trees of several roots


def fit_temperatures(parser: Parser, sentences: Sequence[Sentence], *, batch_words: int = 5000) -> TemperatureFits:
    """Set a parser's two temperatures to those that maximise the likelihood of the sentences' labelled trees.

    Each log likelihood is concave in ``1 / temperature``, so that golden sections find its maximum. Words whose label
    is unknown, to the treebank or to the parser, count for arcs alone. The scores of all sentences stay in memory
    during the search.

    Raises:
        TreeparseError: without sentences, if a sentence has no tree, and if the parser allows none of the trees.
    """
    if not sentences:
        raise TreeparseError("Temperatures are fitted to trees, but there is no sentence.")
    check_own_trees(sentences)
    gold = _Gold(parser, sentences, batch_words)
    if not gold.sentences:
        raise TreeparseError(
            "The model allows none of the trees that its temperatures are to be fitted to: do all have several roots, "
            "or crossing arcs? Fit them to other trees by treeparse calibrate."
        )
    config = parser.config
    arcs = None if not gold.trees else _fit(config.temperature, gold.loss_of_arcs, gold.words)
    labels = None if not len(gold.labels) else _fit(config.label_temperature, gold.loss_of_labels, len(gold.labels))
    fitted = {"temperature": arcs, "label_temperature": labels}
    parser.config = replace(config, **{name: fit.temperature for name, fit in fitted.items() if fit is not None})
    return TemperatureFits(arcs, labels, gold.sentences, len(sentences) - gold.sentences)


def _fit(now: float, loss: Callable[[float], float], words: int) -> TemperatureFit:
    """Minimise a loss of a factor of the present temperature."""
    low, high = (math.log(bound / now) for bound in TEMPERATURES)
    best = golden_section(lambda log_factor: loss(math.exp(log_factor)), low, high, PRECISION)
    temperature = float(f"{now * math.exp(best):.4g}")
    return TemperatureFit(temperature, loss(1.0) / words, loss(temperature / now) / words, words)


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


class _Gold:
    """The trees of sentences that a parser allows, and what it says of them.

    Attributes:
        sentences: number of the sentences that it allows.
        words: number of their words.
        trees: distributions of batches, and the heads ``(B, n+1)`` of their trees; none for trees without sums.
        scores: ``(A, L)`` the scores of all labels, up to a constant, of the A words that can have several labels.
        labels: ``(A,)`` the labels of these words.
    """

    @torch.inference_mode()
    def __init__(self, parser: Parser, sentences: Sequence[Sentence], batch_words: int) -> None:
        self.sentences, self.words = 0, 0
        self.trees: list[tuple[TreeCRF, Tensor]] = []
        parts: list[tuple[Tensor, Tensor]] = []
        with evaluating(parser.networks):
            for indices in BucketBatchSampler([*map(parser.length, sentences)], max_words=batch_words):
                chosen = [sentences[index] for index in indices]
                columns = padded_heads(chosen), known_labels(chosen, parser.label_names)
                heads, labels = (moved(column, parser.device) for column in columns)
                p = parser.distribution(parser.collate(chosen, indices), keep=arcs_of(heads))
                allowed = (p.base.score(heads) > -torch.inf).nonzero().squeeze(-1)
                p, heads, labels = p.of_items(allowed), heads[allowed], labels[allowed]
                self.sentences += len(allowed)
                self.words += int((heads >= 0).sum())
                if p.has_sums and len(allowed):
                    self.trees.append((p.base, heads))
                scores = p.labels.of_trees(heads)
                is_known = (heads >= 0) & (labels >= 0)
                own = scores.gather(-1, torch.where(is_known, labels, 0).unsqueeze(-1)).squeeze(-1)
                used = is_known & (own > -torch.inf) & ((scores > -torch.inf).sum(-1) > 1)
                parts.append((scores[used], labels[used]))
        self.scores, self.labels = (torch.cat(columns) for columns in zip(*parts, strict=True))

    @torch.inference_mode()
    def loss_of_arcs(self, factor: float) -> float:
        """Return minus the summed log probability of the trees, with the temperature of arcs times ``factor``."""
        return -sum(float(p.tempered(factor).log_prob(heads).sum()) for p, heads in self.trees)

    @torch.inference_mode()
    def loss_of_labels(self, factor: float) -> float:
        """Return minus the summed log probability of the labels, with their temperature times ``factor``."""
        log_probs = label_sums.log_probs(self.scores / factor)
        return -float(log_probs.gather(-1, self.labels.unsqueeze(-1)).sum())
