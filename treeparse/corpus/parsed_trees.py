"""The trees that every sentence gets: its parse, its K best trees, or K samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from treeparse.data.mapping import Progress
from treeparse.data.parses import Parse
from treeparse.model import Ensemble, Parser
from treeparse.names import DecoderName
from treeparse.rules import RuleSearch
from treeparse.sentence import Sentence

TreeMethod = Literal["parse", "kbest", "sample"]


@dataclass(frozen=True, slots=True)
class TreeRequest:
    """The trees of every sentence.

    Attributes:
        method: ``parse`` finds one tree, ``kbest`` the K best trees, ``sample`` draws K trees.
        k: trees of a sentence, at most.
        decoder: chooses the parse, or the trees that are listed; None is the decoder of the model's config.
        batch_words: words that are parsed at once.
        probabilities: whether trees come with the probabilities of their arcs and labels.
        gradient: whether parses come with the expected squared length of the gradient.
        head_threshold: the least probability of a head in the word's set of heads; None for no sets.
        keep_heads: whether trees agree with the heads and labels that the input has.
        within: whether a word's head is one of those that the input names.
        rules: the rules that trees must satisfy, with the bounds of the search.
        replacement: whether a sample may hold a tree twice.
        seed: of samples, with the ordinal of each sentence.
        temperature: of samples.
    """

    method: TreeMethod = "parse"
    k: int = 1
    decoder: DecoderName | None = None
    batch_words: int = 5000
    probabilities: bool = False
    gradient: bool = False
    head_threshold: float | None = None
    keep_heads: bool = False
    within: bool = False
    rules: RuleSearch | None = None
    replacement: bool = True
    seed: int = 0
    temperature: float = 1.0

    def find(
        self,
        model: Parser | Ensemble,
        sentences: Sequence[Sentence],
        ordinals: Sequence[int],
        progress: Progress | None = None,
    ) -> list[list[Parse]]:
        """Return the list of trees of each sentence: one tree, or up to k.

        Args:
            model: parses.
            sentences: in any order.
            ordinals: of the sentences in their input; with the seed an ordinal determines a sentence's samples.
            progress: called after each batch, with the indices of its sentences.
        """
        names = ("batch_words", "decoder", "keep_heads", "within", "rules", "probabilities")
        options: dict[str, Any] = {"progress": progress} | {name: getattr(self, name) for name in names}
        if self.method == "kbest":
            return model.kbest(sentences, self.k, **options)
        if self.method == "sample":
            draws = {"replacement": self.replacement, "seed": self.seed, "temperature": self.temperature}
            return model.sample(sentences, self.k, first=ordinals, **draws, **options)
        options |= {"head_threshold": self.head_threshold, "gradient": self.gradient}
        return [[parse] for parse in model.parse(sentences, **options)]
