"""`TreeRequest`: which trees to find for every sentence, under which conditions, and what to add to them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, Self, TypedDict

import torch
from torch import Tensor

from treeparse.batch import moved
from treeparse.data.features.indexer import allowed_arcs
from treeparse.data.features.padding import padded_heads, padded_labels
from treeparse.errors import TreeparseError
from treeparse.names import Decoder, DecoderName, decoder_named, listing_decoder_named
from treeparse.rules import Rules, RuleSearch, as_search
from treeparse.sentence import EMPTY, Sentence
from treeparse.trees import LabeledDistribution
from treeparse.trees.parts import arcs_agreeing_with

TreeMethod = Literal["parse", "kbest", "sample", "score"]
LOWEST_TEMPERATURE = 1e-6  # below it, rounding of scores over the temperature would show in the probabilities
METHODS_OF_OPTIONS: Mapping[str, tuple[TreeMethod, ...]] = {  # of those that not all methods have
    "k": ("kbest", "sample"),
    "head_threshold": ("parse",),
    "certain": ("parse",),
    "arc_marginals": ("parse",),
    "gradient": ("parse",),
    "replacement": ("sample",),
    "seed": ("sample",),
    "temperature": ("sample",),
}


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

    def check(self, sentence: Sentence, names: Sequence[str], root: int, index: int) -> None:
        """Raise if a sentence has a head or label that no tree of a model has.

        ``names`` are the model's labels; ``root`` is the id of the label reserved for arcs from the root, or -1.
        """
        reserved = names[root] if root >= 0 else None
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
            if reserved and head >= 0 and label != EMPTY and (label == reserved) != (head == 0):
                problem = f"word {word} has the head {head} and the label {label!r}, but {reserved} is for arcs from"
                raise UnfitSentenceError(f"{problem} the root, and for no others", index)

    def arcs(self, sentences: Sequence[Sentence], names: Sequence[str], root: int, device: torch.device) -> Tensor:
        """Return the arcs ``(B, n+1, n+1)`` bool that such trees may have."""
        heads, _, mask = (moved(part, device) for part in self._known(sentences, names, root))
        return mask & arcs_agreeing_with(heads) if self.heads else mask

    def conditioned(
        self, p: LabeledDistribution, sentences: Sequence[Sentence], names: Sequence[str], root: int
    ) -> LabeledDistribution:
        """Return the distribution given the sentences' heads, labels and possible heads; see ``check``."""
        heads, labels, mask = self._known(sentences, names, root)
        heads, labels, mask = (moved(part, p.device) for part in (heads, labels, mask))

        known = p.within(mask)
        return known.given(heads, labels) if self.heads else known

    def _known(self, sentences: Sequence[Sentence], names: Sequence[str], root: int) -> tuple[Tensor, Tensor, Tensor]:
        """Known heads and labels ``(B, n+1)``, and possible arcs ``(B, n+1, n+1)``."""
        heads, labels = padded_heads(sentences), known_labels(sentences, names)
        nodes = heads.shape[1]
        mask = allowed_arcs(sentences) if self.within else torch.ones(len(sentences), nodes, nodes, dtype=torch.bool)
        if self.heads and root >= 0:  # a known label says whether the arc is from the root
            known, is_root = labels >= 0, labels == root
            mask[:, 0] &= ~known | is_root
            mask[:, 1:] &= ~(known & is_root).unsqueeze(1)
        return heads, labels, mask


def known_labels(sentences: Sequence[Sentence], names: Sequence[str]) -> Tensor:
    """Return the ids ``(B, n+1)`` of the sentences' labels; -1 where they are unknown or none of the ``names``."""
    ids = {name: index for index, name in enumerate(names)}
    return padded_labels(sentences, lambda labels: [ids.get(label, -1) for label in labels])


class TreeOptions(TypedDict, total=False):
    """The options of `TreeRequest` that all methods have."""

    batch_words: int
    decoder: DecoderName | None
    keep_heads: bool
    within: bool
    rules: Rules | RuleSearch | None
    probabilities: bool
    treebank: str | None


class ParseOptions(TreeOptions, total=False):
    """The options of ``Parser.parse``."""

    head_threshold: float | None
    certain: float | None
    arc_marginals: bool
    gradient: bool


class SampleOptions(TreeOptions, total=False):
    """The options of ``Parser.sample``."""

    replacement: bool
    seed: int
    temperature: float


@dataclass(frozen=True, slots=True)
class TreeRequest:
    """Which trees to find for every sentence, and what to add to them.

    Attributes:
        method: ``parse`` finds the tree that the decoder chooses, ``kbest`` the k best trees, ``sample`` draws k trees,
            and ``score`` takes the sentence's own tree.
        k: trees of a sentence, at most.
        decoder: best, arcs_first, nonprojective, projective or minimum_risk; None for that of the model's config. It
            chooses the parse; lists and samples are of projective trees, or of all.
        batch_words: words of a batch, about.
        probabilities: add the exact probabilities of arcs and labelled arcs among all trees, and the entropy.
        gradient: add the exact ``expected_gradient`` of each sentence.
        head_threshold: add to each word the set of heads of at least this probability; None for no sets.
        certain: add the certainty of each word, see `Parse.certainties`; files leave the heads and labels of words open
            that are less certain than this. None for no certainties.
        arc_marginals: add the exact probability of every arc, whatever its label.
        keep_heads: trees agree with the heads and labels that the sentence has; -1 and ``_`` leave them open.
        within: a word's head is one of its possible ones, ``Sentence.allowed``, if it has some.
        rules: the search for trees that satisfy rules; None without rules.
        treebank: the treebank as which all sentences are annotated, one that the model learned from; None for each
            sentence's own, ``Sentence.treebank``.
        replacement: whether a sample may hold a tree twice.
        seed: of samples; with the ordinal of a sentence it determines the sentence's trees.
        temperature: of samples, from 1e-6 up; 1 draws from the model's own distribution.

    Raises:
        TreeparseError: an option has no meaning, or the method does not have it.
    """

    method: TreeMethod = "parse"
    k: int = 1
    decoder: DecoderName | None = None
    batch_words: int = 5000
    probabilities: bool = False
    gradient: bool = False
    head_threshold: float | None = None
    certain: float | None = None
    arc_marginals: bool = False
    keep_heads: bool = False
    within: bool = False
    rules: RuleSearch | Rules | None = None
    treebank: str | None = None
    replacement: bool = True
    seed: int = 0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        for option in fields(self):
            methods = METHODS_OF_OPTIONS.get(option.name, (self.method,))
            if self.method not in methods and getattr(self, option.name) != option.default:
                raise TreeparseError(f"{option.name} is an option of {' and '.join(methods)}, not of {self.method}.")
        for name, least in (("k", 1), ("batch_words", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise TreeparseError(f"{name} must be {least} or more, got {getattr(self, name)}.")
        if not LOWEST_TEMPERATURE <= self.temperature < math.inf:
            raise TreeparseError(
                f"The temperature must be finite and at least {LOWEST_TEMPERATURE}, got {self.temperature}: 1 draws "
                "from the model's distribution, and towards 0 only the best tree remains, which `predict` returns."
            )
        if self.decoder is not None:
            named = listing_decoder_named if self.method == "kbest" else decoder_named
            object.__setattr__(self, "decoder", named(self.decoder))
        object.__setattr__(self, "rules", as_search(self.rules))
        if self.rules is not None and self.decoder == "minimum_risk" and self.method == "parse":
            raise TreeparseError(
                "Rules choose the best tree that satisfies them, so that the decoder minimum_risk cannot keep "
                "them: choose best, nonprojective or projective."
            )

    @property
    def search(self) -> RuleSearch | None:
        """The search for trees that satisfy the rules."""
        return as_search(self.rules)

    @property
    def conditions(self) -> Given:
        """What trees must have in common with their sentences."""
        return Given(self.keep_heads, self.within)

    @property
    def named_decoder(self) -> Decoder:
        """The decoder; best if none is named."""
        return decoder_named(self.decoder or "best")

    @property
    def is_list(self) -> bool:
        """Whether the trees of a sentence are a list of k."""
        return self.method in METHODS_OF_OPTIONS["k"]

    def with_decoder(self, default: DecoderName) -> Self:
        """Return the request with a decoder: its own, or the default one; rules may ask for the projective one."""
        request = self if self.decoder else replace(self, decoder=default)
        is_projective = request.search is not None and request.search.rules.trees == "projective"
        return replace(request, decoder="projective") if is_projective else request
