"""References: distributions over the trees of a batch that a parser learns from or is drawn to."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence
from treeparse.trees import LabeledCRF, TreeDistribution


class Reference(ABC):
    """One or more distributions for the sentences of a batch; a reference is not trained."""

    @abstractmethod
    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        """Return distributions over labelled trees, or over trees without labels; objectives take their mean.

        Args:
            own: the parser's distribution, which the results must be comparable with; without labels, its ``arcs``.
            batch: the sentences.
        """


class Itself(Reference):
    """The parser's own distribution, as a constant.

    Args:
        temperature: a temperature below 1 makes the reference more confident than the parser.
    """

    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature: float = check_temperature(temperature)

    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        """Return one distribution with labels."""
        return [own.detach().tempered(self.temperature) if self.temperature != 1 else own.detach()]


class ShortArcs(Reference):
    """A prior for short arcs: an arc of length d has the log weight ``-decay * d``, an arc from the root 0.

    Smith and Eisner 2006 (*Annealing structural bias*) begin with such a prior and remove it gradually: give the term
    of a weighted sum a ramp to 0.

    Args:
        decay: a number that is at least 0.
    """

    def __init__(self, decay: float = 0.5) -> None:
        if not 0 <= decay < torch.inf:
            raise TreeparseError(f"decay must be a finite number that is at least 0, got {decay}.")
        self.decay = decay

    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        """Return one distribution without labels."""
        node = torch.arange(own.scores.shape[-1], device=own.scores.device, dtype=torch.float64)
        distance = (node - node.unsqueeze(-1)).abs()
        distance[0] = 0.0
        scores = torch.where(own.scores > -torch.inf, -self.decay * distance, -torch.inf)
        return [of_arcs(own, scores)]


class ArcScores(Reference):
    """Log weights of arcs from a file of ``write_arc_scores``: of any other parser, or projected.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        from safetensors import SafetensorError, safe_open  # sums over trees do without it

        self.path = path
        try:
            self._file = safe_open(path, "pt")
            self._keys = set(self._file.keys())
        except (OSError, SafetensorError) as error:
            raise TreeparseError(f"{path} must be a safetensors file of arc scores: {error}.") from error

    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        """Return one distribution without labels."""
        scores = torch.zeros_like(own.scores)
        for item, sentence in enumerate(batch.sentences):
            nodes = len(sentence) + 1
            scores[item, :nodes, :nodes] = self._scores_of(sentence).to(scores)
        return [of_arcs(own, scores)]

    def _scores_of(self, sentence: Sentence) -> Tensor:
        key, nodes = sentence_key(sentence), len(sentence) + 1
        if key not in self._keys:
            raise TreeparseError(f"{self.path} has no arc scores of the sentence {key!r:.200}.")
        scores = self._file.get_tensor(key)
        if scores.shape != (nodes, nodes):
            raise TreeparseError(
                f"The arc scores in {self.path} of the sentence {key!r:.200} must have the shape {(nodes, nodes)}, one "
                f"row for each node and the root, got {tuple(scores.shape)}."
            )
        return scores


def of_arcs(own: LabeledCRF, scores: Tensor) -> TreeDistribution:
    """Return the distribution without labels over the parser's trees by other scores of arcs ``(B, n+1, n+1)``."""
    return cast(TreeDistribution, own.base.with_scores(own.base.parts.detach().neutral().with_arcs(scores)))


def write_arc_scores(path: str | Path, sentences: Sequence[Sentence], scores: Sequence[Tensor]) -> None:
    """Write log weights of arcs ``(n+1, n+1)``, ``[head, dependent]``, one tensor a sentence; the words are the key.

    The scores may be log probabilities of heads; -inf forbids an arc.
    """
    from safetensors.torch import save_file

    pairs = zip(sentences, scores, strict=True)
    save_file({sentence_key(sentence): tensor.detach().cpu().contiguous() for sentence, tensor in pairs}, str(path))


def sentence_key(sentence: Sentence) -> str:
    """Return the key of a sentence in a file of arc scores: its words, joined by spaces."""
    return " ".join(sentence.forms)


def check_temperature(temperature: float) -> float:
    """Return the temperature, or raise unless it is a finite number above 0."""
    if not 0 < temperature < torch.inf:
        raise TreeparseError(f"temperature must be a finite number above 0, got {temperature}.")
    return temperature
