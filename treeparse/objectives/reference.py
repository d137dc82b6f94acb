"""Distributions over the trees of a batch that a parser is to come near to, or to learn trees from."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence
from treeparse.trees import LabeledCRF, TreeDistribution


class Reference(ABC):
    """Gives one distribution or several for the sentences of a batch; nothing in it is trained."""

    @abstractmethod
    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        """Distributions that can be compared with the parser's own, labelled, or with those of its arcs, not labelled.

        What is said of several is the mean over them.
        """


class Itself(Reference):
    """The parser as it is, a constant.

    Args:
        temperature: below 1 the reference is surer than the parser.
    """

    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature = check_temperature(temperature)

    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        """One, labelled."""
        return [own.detach().tempered(self.temperature) if self.temperature != 1 else own.detach()]


class ShortArcs(Reference):
    """A prior for short arcs: an arc to a word at distance d has the log weight ``-decay * d``, one from the root 0.

    Smith and Eisner 2006 (*Annealing structural bias*) begin with such a prior and let go of it: give the term of a
    weighted sum a ramp to 0.

    Args:
        decay: 0 or more.
    """

    def __init__(self, decay: float = 0.5) -> None:
        if not 0 <= decay < torch.inf:
            raise TreeparseError(f"The decay of a prior for short arcs must be a number from 0, not {decay}.")
        self.decay = decay

    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        """One, of arcs."""
        node = torch.arange(own.scores.shape[-1], device=own.scores.device, dtype=torch.float64)
        distance = (node - node.unsqueeze(-1)).abs()
        distance[0] = 0.0
        scores = torch.where(own.scores > -torch.inf, -self.decay * distance, -torch.inf)
        return [of_arcs(own, scores)]


class ArcScores(Reference):
    """Log weights of arcs from a file that :func:`write_arc_scores` made: of any other parser, or projected.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file = safe_open(path, "pt")
            self._keys = set(self._file.keys())
        except (OSError, SafetensorError) as error:
            raise TreeparseError(f"{path} is no file of arc scores in the format safetensors: {error}.") from error

    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        """One, of arcs."""
        scores = torch.zeros_like(own.scores)
        for place, sentence in enumerate(batch.sentences):
            nodes = len(sentence) + 1
            scores[place, :nodes, :nodes] = self._scores_of(sentence).to(scores)
        return [of_arcs(own, scores)]

    def _scores_of(self, sentence: Sentence) -> Tensor:
        key, nodes = sentence_key(sentence), len(sentence) + 1
        if key not in self._keys:
            raise TreeparseError(f"{self.path} has no arc scores of the sentence {key!r:.200}.")
        scores = self._file.get_tensor(key)
        if scores.shape != (nodes, nodes):
            raise TreeparseError(
                f"The arc scores in {self.path} of the sentence {key!r:.200} are of shape {tuple(scores.shape)}, "
                f"but it has {nodes} nodes with the root."
            )
        return scores


def of_arcs(own: LabeledCRF, scores: Tensor) -> TreeDistribution:
    """The distribution without labels over the parser's trees under other scores of arcs ``(B, n+1, n+1)``."""
    return cast(TreeDistribution, own.base.with_scores(own.base.parts.detach().neutral().with_arcs(scores)))


def write_arc_scores(path: str | Path, sentences: Sequence[Sentence], scores: Sequence[Tensor]) -> None:
    """Write log weights of arcs ``(n+1, n+1)``, ``[head, dependent]``, of sentences of n words; they go by their words.

    The scores may be log probabilities of heads; -inf forbids an arc.
    """
    pairs = zip(sentences, scores, strict=True)
    save_file({sentence_key(sentence): tensor.detach().cpu().contiguous() for sentence, tensor in pairs}, str(path))


def sentence_key(sentence: Sentence) -> str:
    """What a sentence goes by: its words, with spaces between them."""
    return " ".join(sentence.forms)


def check_temperature(temperature: float) -> float:
    """The temperature, or an error unless it is above 0."""
    if not 0 < temperature < torch.inf:
        raise TreeparseError(f"A temperature must be above 0, not {temperature}.")
    return temperature
