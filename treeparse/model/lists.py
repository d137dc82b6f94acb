"""Lists of a sentence's labelled trees: the best ones, or ones drawn at random."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np
from torch import Generator, Tensor

from treeparse.core import Sentence, TreeparseError
from treeparse.data.parses import Parse
from treeparse.trees import LabeledCRF
from treeparse.trees.decoders import Decoder, decoded, listing_decoder_named, searched
from treeparse.trees.mixture import Mixture

LONGEST_LIST = 2**27  # words of the trees of one sentence
LOWEST_TEMPERATURE = 1e-6  # below it, rounding of scores over the temperature would show in the probabilities


class TreeLists(NamedTuple):
    """Labelled trees of a batch, K an item in order; past an item's last one -1 and -inf."""

    heads: Tensor  # (B, K, n+1)
    labels: Tensor  # (B, K, n+1)
    log_probs: Tensor  # (B, K) nats
    scores: Tensor  # (B, K) sums over the labelled arcs

    def parses(self, sentences: Sequence[Sentence], names: Sequence[str]) -> list[list[Parse]]:
        """The trees of each sentence, whose labels have these names."""
        counts = (self.heads[..., 1] >= 0).sum(-1).tolist()
        heads, labels, *values = (column.numpy(force=True) for column in self)
        # Of all items, and words, at once: one by one takes longer.
        columns = (column.tolist() for column in (heads, np.array(names, dtype=object)[labels], *values))
        return [
            [_parse(sentence, *row) for row in islice(zip(*item, strict=True), count)]
            for sentence, count, *item in zip(sentences, counts, *columns, strict=True)
        ]


@dataclass(frozen=True)
class ListFinder(ABC):
    """How lists are made.

    Attributes:
        k: trees of a sentence, at most.
        decoder: from which trees.
        holds_labels: whether the scores of all labels of a batch are held at once.
    """

    holds_labels: ClassVar[bool] = True
    k: int
    decoder: Decoder

    def __post_init__(self) -> None:
        if self.k < 1:
            raise TreeparseError(f"A list of parses holds 1 or more, not {self.k}.")

    def check_for(self, sentences: int) -> None:
        """Raise where lists of so many sentences cannot be made."""
        return

    @abstractmethod
    def __call__(self, p: LabeledCRF | Mixture, places: Sequence[int]) -> TreeLists:
        """The lists of a batch.

        Args:
            p: the distribution of labelled trees, in float64.
            places: ``B``, of the sentences in the list that the batch is from.

        Raises:
            TreeparseError: for lists that are too long to be held.
        """


@dataclass(frozen=True)
class ChosenTree(ListFinder):
    """Lists of one tree, that which the decoder chooses; log probabilities are among all trees, whichever it is."""

    holds_labels: ClassVar[bool] = False
    k: int = field(default=1, init=False)

    def __call__(self, p: LabeledCRF | Mixture, places: Sequence[int] = ()) -> TreeLists:
        return self.listed(p, *decoded(p, self.decoder))

    @staticmethod
    def listed(p: LabeledCRF | Mixture, heads: Tensor, labels: Tensor) -> TreeLists:
        """Lists of one tree from heads and labels ``(B, n+1)``."""
        scores = p.score(heads, labels)
        log_probs = p.log_prob(heads, labels) if isinstance(p, Mixture) else scores - p.log_partition
        return TreeLists(*(column.unsqueeze(1) for column in (heads, labels, log_probs, scores)))


@dataclass(frozen=True)
class BestLists(ListFinder):
    """The k best labelled trees, best first; log probabilities are among all trees, whichever the decoder."""

    def __post_init__(self) -> None:
        listing_decoder_named(self.decoder)
        super().__post_init__()

    def __call__(self, p: LabeledCRF | Mixture, places: Sequence[int]) -> TreeLists:
        if isinstance(p, Mixture):
            raise TreeparseError(
                "Models combined by marginals have one best tree but no list of the best: a mean of marginals is no "
                "distribution over trees. Combine them by scores or log_probs."
            )
        heads, labels, scores = searched(p, self.decoder).topk(_list_length(self.k, p, different=True))
        return TreeLists(heads, labels, scores - p.log_partition.unsqueeze(-1), scores)


@dataclass(frozen=True)
class SampledLists(ListFinder):
    """k labelled trees in the order drawn, with probabilities proportional to exp(score / temperature).

    The decoder projective draws from projective trees, any other from all. Log probabilities are those by which trees
    are drawn; scores do not depend on the temperature.

    Attributes:
        replacement: whether a tree can be drawn again.
        seed: with a sentence's place it fixes the sentence's trees.
        first: the place of the first sentence, or the places of all.
        temperature: 1 draws from the model's own distribution.
    """

    replacement: bool = True
    seed: int = 0
    first: int | Sequence[int] = 0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        lowest = self.first if isinstance(self.first, int) else min(self.first, default=0)
        if min(self.seed, lowest) < 0:
            raise TreeparseError(f"The seed and the first place must be 0 or more, not {self.seed} and {lowest}.")
        if not LOWEST_TEMPERATURE <= self.temperature < math.inf:
            raise TreeparseError(
                f"The temperature is {self.temperature}, but must be finite and at least {LOWEST_TEMPERATURE}: 1 draws "
                "from the model's own distribution, and towards 0 only the best tree is left, which parsing finds."
            )

    def check_for(self, sentences: int) -> None:
        if not isinstance(self.first, int) and len(self.first) != sentences:
            raise TreeparseError(f"{sentences} sentences came with {len(self.first)} places: give one a sentence.")

    def __call__(self, p: LabeledCRF | Mixture, places: Sequence[int]) -> TreeLists:
        k = _list_length(self.k, p, different=not self.replacement)
        p = searched(p, self.decoder)
        drawn_from = p if self.temperature == 1 else self._tempered(p)
        generators = [_generator(self.seed, self._place(index)) for index in places]
        if self.replacement:
            heads, labels = drawn_from.sample((k,), generator=generators)
        else:
            lists = drawn_from.sample_without_replacement(k, generator=generators)
            heads, labels = (part.transpose(0, 1) for part in lists[:2])
        scores = p.score(heads, labels)
        if isinstance(drawn_from, Mixture):
            log_probs = drawn_from.log_prob(heads, labels).clamp_max(0.0)
        else:
            log_probs = (scores / self.temperature - drawn_from.log_partition).clamp_max(0.0)
        return TreeLists(*(part.transpose(0, 1) for part in (heads, labels, log_probs, scores)))

    def _place(self, index: int) -> int:
        """The place of a sentence that is the ``index``-th of those given."""
        return self.first + index if isinstance(self.first, int) else self.first[index]

    def _tempered(self, p: LabeledCRF | Mixture) -> LabeledCRF:
        """The distribution at the temperature; raises where scores become so large that rounding would decide."""
        if isinstance(p, Mixture):
            raise TreeparseError(
                f"Models combined by marginals are drawn from at the temperature 1, not {self.temperature}: combine "
                "them by scores or log_probs."
            )
        try:
            return p.tempered(self.temperature)
        except TreeparseError as error:
            raise TreeparseError(f"The temperature {self.temperature} is too low for these scores: {error}") from error


def _list_length(k: int, p: LabeledCRF | Mixture, *, different: bool) -> int:
    """``k``, or the number of labelled trees of the longest sentence if it is smaller and trees must be different."""
    shape = (p.components[0] if isinstance(p, Mixture) else p).label_scores.shape
    words, labels = shape[1] - 1, shape[3]
    if different:
        k = min(k, (words + 1) ** (words - 1) * labels**words)
    if k * words > LONGEST_LIST:
        raise TreeparseError(f"{k} trees of {words} words are too many: ask for {LONGEST_LIST // words} or fewer.")
    return k


def _generator(seed: int, place: int) -> Generator:
    """The generator of a sentence, which depends on the seed and its place alone."""
    [state] = np.random.SeedSequence(seed, spawn_key=(place,)).generate_state(1, np.uint64)
    return Generator().manual_seed(int(state))


def _parse(sentence: Sentence, heads: list[int], labels: list[str], log_prob: float, score: float) -> Parse:
    end = len(sentence.forms) + 1
    return Parse(sentence.forms, tuple(heads[1:end]), tuple(labels[1:end]), log_prob, score)
