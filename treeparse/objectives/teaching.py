"""Learning from other distributions over trees: references, and objectives from their probabilities or their trees."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence
from treeparse.trees import LabeledCRF, TreeDistribution

from .objective import Data, Objective, check_choice, check_nonnegative, check_temperature
from .risk import check_trees

Measure = Literal["cross_entropy", "kl", "reverse_kl"]
TreeChoice = Literal["best", "kbest", "sampled"]


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
        self.decay: float = check_nonnegative("decay", decay)

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


class Divergence(Objective):
    """The divergence of the parser from other distributions over all trees, exactly: distillation, or a prior.

    The gradient is the difference of two sets of marginals ([Exp] §6.3), not an estimate from a list of trees.

    Args:
        reference: the other distributions.
        measure: "cross_entropy", ``-E_q[log p]`` with the parser's p; "kl", which differs from it by a constant; or
            "reverse_kl", ``KL(p || q)``, which penalises trees that the others find improbable.
        least_log_prob: skip sentences whose best tree has a lower log probability a word under the first of the other
            distributions; null skips none.
    """

    scores_all_labels = True

    def __init__(
        self, reference: Reference, measure: Measure = "cross_entropy", least_log_prob: float | None = None
    ) -> None:
        super().__init__()
        self.reference, self.measure = reference, check_choice("measure", measure, Measure)
        self.least_log_prob = least_log_prob

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats; infinite if one distribution allows a tree that the other forbids."""
        others = self.reference.distributions(distribution, batch)
        values = torch.stack([self._value(distribution, q) for q in others]).mean(0)
        if self.least_log_prob is None:
            return values
        best = others[0].log_prob(others[0].mode)
        return torch.where(best >= self.least_log_prob * batch.lengths, values, 0.0)

    def _value(self, own: LabeledCRF, q: TreeDistribution) -> Tensor:
        p = own if q.has_labels else cast(TreeDistribution, own.arcs)
        check_same_trees(own, q)
        if self.measure == "cross_entropy":
            return q.cross_entropy(p)
        return kl_divergence(q, p) if self.measure == "kl" else kl_divergence(p, q)


class SilverTrees(Objective):
    """Negative log probability of trees from a reference: self-training, or a teacher's trees.

    Args:
        trees: "best"; "kbest", each weighted by its probability among the K; or "sampled".
        count: K, or the number of sampled trees.
        reference: a reference with labels; null for the parser itself.
        least_log_prob: skip trees with a lower log probability a word under the reference; null skips none.
    """

    data: ClassVar[Data] = "unlabelled"

    def __init__(
        self,
        trees: TreeChoice = "best",
        count: int = 1,
        reference: Reference | None = None,
        least_log_prob: float | None = None,
    ) -> None:
        super().__init__()
        self.trees: str = check_choice("trees", trees, TreeChoice)
        if trees == "best" and count != 1:
            raise TreeparseError(f"count must be 1 with trees best, got {count}: use trees kbest.")
        self.count: int = check_trees(count)
        self.reference: Reference = reference or Itself()
        self.least_log_prob = least_log_prob

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats; trees are drawn with torch's default generator."""
        others = self.reference.distributions(distribution, batch)
        return torch.stack([self._value(distribution, q, batch) for q in others]).mean(0)

    def _value(self, own: LabeledCRF, q: TreeDistribution, batch: Batch) -> Tensor:
        if not q.has_labels:
            raise TreeparseError("The reference of silver trees must have labels: use a teacher, or the parser itself.")
        check_same_trees(own, q)
        q = cast(LabeledCRF, q)
        heads, labels, weights = self._trees_of(q)
        if self.least_log_prob is not None:
            confident = q.log_prob(heads, labels) >= self.least_log_prob * batch.lengths
            weights = weights * confident
        log_probs = own.log_prob(heads, labels)
        return -torch.where(weights > 0, weights * log_probs, 0.0).sum(0)

    @torch.no_grad()
    def _trees_of(self, q: LabeledCRF) -> tuple[Tensor, Tensor, Tensor]:
        """Return heads and labels ``(K, B, n+1)`` and their weights ``(K, B)``."""
        if self.trees == "best":
            heads, labels = (tree.unsqueeze(0) for tree in q.mode)
        elif self.trees == "sampled":
            heads, labels = q.sample((self.count,))
        else:
            heads, labels, scores, _ = q.topk(self.count)
            return heads, labels, scores.softmax(0)
        return heads, labels, torch.full(heads.shape[:2], 1 / len(heads), dtype=q.dtype, device=heads.device)


def check_same_trees(own: LabeledCRF, other: TreeDistribution) -> None:
    """Raise unless both distributions are over trees of the same kind, with one root or many."""
    if own.kind_of_trees != other.kind_of_trees:
        raise TreeparseError(
            f"The parser has the trees of {own.kind_of_trees}, the reference those of {other.kind_of_trees}: give both "
            "the same model.trees and model.single_root."
        )
