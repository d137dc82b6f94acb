"""Condition distributions on the heads, labels and possible heads that sentences have."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treeparse.batch import moved
from treeparse.data.features.indexer import allowed_arcs
from treeparse.data.features.padding import padded
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, ROOT_LABEL, Sentence
from treeparse.trees import LabeledDistribution
from treeparse.trees.parts import arcs_agreeing_with


class UnfitSentenceError(TreeparseError):
    """A sentence that no tree fits, that has an unknown label, or that is too long; ``index`` counts from 0."""

    problem: str
    index: int

    def __init__(self, problem: str, index: int) -> None:
        self.problem, self.index = problem, index
        super().__init__(f"Sentence {index} (counted from 0): {problem}.")


@dataclass(frozen=True)
class Given:
    """What trees must have in common with their sentences.

    Attributes:
        heads: the sentence's heads and labels; -1 and ``_`` leave them open.
        within: each word's head is one of ``Sentence.allowed``, if the word has possible heads.
    """

    heads: bool = False
    within: bool = False

    def __bool__(self) -> bool:
        return self.heads or self.within

    def check(self, sentence: Sentence, names: Sequence[str], index: int) -> None:
        """Raise if a sentence has a head or label that no tree of a model with these labels has."""
        if not self.heads:
            return
        heads = sentence.heads or (-1,) * len(sentence)
        for word, (head, label) in enumerate(zip(heads, sentence.labels or (EMPTY,) * len(sentence), strict=True), 1):
            if head > len(sentence) or head == word:
                raise UnfitSentenceError(f"word {word} cannot have the head {head} that is given", index)
            if label != EMPTY and label not in names:
                problem = (
                    f"word {word} has the label {label!r}, which the model does not know: write _ to leave it open"
                )
                raise UnfitSentenceError(problem, index)
            if head >= 0 and label != EMPTY and _has_root_rule(names) and (label == ROOT_LABEL) != (head == 0):
                problem = f"word {word} has the head {head} and the label {label!r}, but root is for arcs from the root"
                raise UnfitSentenceError(f"{problem}, and for no others", index)

    def arcs(self, sentences: Sequence[Sentence], names: Sequence[str], device: torch.device) -> Tensor:
        """Return the arcs ``(B, n+1, n+1)`` bool that such trees may have."""
        heads, _, mask = (moved(part, device) for part in self._known(sentences, names))
        return mask & arcs_agreeing_with(heads) if self.heads else mask

    def conditioned(
        self, p: LabeledDistribution, sentences: Sequence[Sentence], names: Sequence[str]
    ) -> LabeledDistribution:
        """Return the distribution given the sentences' heads, labels and possible heads; ``names`` are the labels."""
        heads, labels, mask = self._known(sentences, names)
        heads, labels, mask = (moved(part, p.device) for part in (heads, labels, mask))

        known = p.within(mask)
        return known.given(heads, labels) if self.heads else known

    def _known(self, sentences: Sequence[Sentence], names: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        """Known heads and labels ``(B, n+1)``, and possible arcs ``(B, n+1, n+1)``."""
        heads, labels = known_heads(sentences), known_labels(sentences, names)
        nodes = heads.shape[1]
        mask = allowed_arcs(sentences) if self.within else torch.ones(len(sentences), nodes, nodes, dtype=torch.bool)
        if self.heads and _has_root_rule(names):  # a known label says whether the arc is from the root
            known, is_root = labels >= 0, labels == names.index(ROOT_LABEL)
            mask[:, 0] &= ~known | is_root
            mask[:, 1:] &= ~(known & is_root).unsqueeze(1)
        return heads, labels, mask


def known_heads(sentences: Sequence[Sentence]) -> Tensor:
    """Return the heads ``(B, n+1)`` of the sentences; unknown ones are -1."""
    return padded([[-1, *(each.heads or [-1] * len(each))] for each in sentences], -1)


def known_labels(sentences: Sequence[Sentence], names: Sequence[str]) -> Tensor:
    """Return the ids ``(B, n+1)`` of the sentences' labels; -1 where they are unknown or none of the ``names``."""
    ids = {name: index for index, name in enumerate(names)}
    rows = (sentence.labels or [EMPTY] * len(sentence) for sentence in sentences)
    return padded([[-1, *(ids.get(label, -1) for label in labels)] for labels in rows], -1)


def _has_root_rule(names: Sequence[str]) -> bool:
    """Whether arcs from the root, and no others, have the label "root"."""
    return ROOT_LABEL in names and len(names) > 1
