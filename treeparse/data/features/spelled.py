"""Features of subwords together with the characters and tags of their words."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from torch import Tensor

from treeparse.data.features.subwords import SubwordFeatures
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.sentence import Sentence


class SpelledSubwords(Features):
    """The features of :class:`SubwordFeatures`, and those of :class:`LexicalFeatures` but its words."""

    def __init__(self, subwords: SubwordFeatures, lexical: LexicalFeatures) -> None:
        self.subwords, self.lexical = subwords, lexical

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """Return the features of the sentences; raise if a tag that the model reads is missing."""
        return self.lexical(sentences) | self.subwords(sentences)

    def windowed(self, window: int, overlap: int) -> Self:
        """Return these features, with subwords in other windows."""
        return type(self)(self.subwords.windowed(window, overlap), self.lexical)

    def extended(self, sentences: Sequence[Sentence], *, min_count: int = 2) -> Self:
        return type(self)(self.subwords, self.lexical.extended(sentences, min_count=min_count))

    def check(self, sentence: Sentence) -> None:
        """Raise if a tag that the model reads is missing."""
        self.lexical.check(sentence)

    def tag_columns(self) -> Sequence[str]:
        return self.lexical.tag_columns()

    def length(self, sentence: Sentence) -> int:
        return self.subwords.length(sentence)

    def known_words(self) -> Vocabulary:
        return self.lexical.known_words()

    def vocabularies(self) -> Mapping[str, Vocabulary]:
        return {noun: table for noun, table in self.lexical.vocabularies().items() if noun != "word"}

    def to_json(self) -> dict[str, Any]:
        """Return plain data from which :meth:`from_json` makes equal features."""
        return {"subwords": self.subwords.to_json(), "lexical": self.lexical.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the features that :meth:`to_json` wrote."""
        return cls(SubwordFeatures.from_json(data["subwords"]), LexicalFeatures.from_json(data["lexical"]))
