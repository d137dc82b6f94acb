"""Subwords with the characters and tags of their words beside them."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from torch import Tensor

from treeparse.data.features.subwords import SubwordFeatures
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.sentence import Sentence


class SpelledSubwords(Features):
    """The features of :class:`SubwordFeatures`, and of those of :class:`LexicalFeatures` what is no word."""

    def __init__(self, subwords: SubwordFeatures, lexical: LexicalFeatures) -> None:
        self.subwords, self.lexical = subwords, lexical

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """The features of the sentences; raises where a tag that the model reads is missing."""
        return self.lexical(sentences) | self.subwords(sentences)

    def windowed(self, window: int, overlap: int) -> Self:
        """The same features, with subwords in other windows."""
        return type(self)(self.subwords.windowed(window, overlap), self.lexical)

    def extended(self, sentences: Sequence[Sentence], *, min_count: int = 2) -> Self:
        return type(self)(self.subwords, self.lexical.extended(sentences, min_count=min_count))

    def check(self, sentence: Sentence) -> None:
        """Raise where a tag that the model reads is missing."""
        self.lexical.check(sentence)

    def tag_columns(self) -> Sequence[str]:
        return self.lexical.tag_columns()

    def length(self, sentence: Sentence) -> int:
        """That of the subwords."""
        return self.subwords.length(sentence)

    def known_words(self) -> Vocabulary:
        return self.lexical.known_words()

    def vocabularies(self) -> Mapping[str, Vocabulary]:
        return {noun: table for noun, table in self.lexical.vocabularies().items() if noun != "word"}

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` turns back into equal features."""
        return {"subwords": self.subwords.to_json(), "lexical": self.lexical.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The features that :meth:`to_json` wrote."""
        return cls(SubwordFeatures.from_json(data["subwords"]), LexicalFeatures.from_json(data["lexical"]))
