"""The BiLSTM encoder, over words, characters, tags and pretrained vectors, as its settings describe it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from treeparse.data.features.words import UNKNOWN, Features, LexicalFeatures
from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.model.encoders.kind import EncoderKind
from treeparse.nn import BiLSTMConfig, BiLSTMEncoder, Encoder
from treeparse.sentence import Sentence

# Settings on which no weight depends: a run may change them when it starts from a model.
FREE = {
    "min_count",
    "vector_size",  # the pretrained vectors are always those of the model
    "word_dropout",
    "embedding_dropout",
    "dropout",
    "recurrent_dropout",
}


@dataclass(frozen=True)
class BiLSTM(EncoderKind[BiLSTMConfig]):
    """A `BiLSTMEncoder` over `LexicalFeatures`."""

    settings = BiLSTMConfig

    @property
    def name(self) -> str:
        return self.config.type

    def completed(self, vectors: WordVectors | None) -> Self:
        """Return this kind with the size of these vectors; raise if ``vector_size`` is another size."""
        size = 0 if vectors is None else vectors.size
        if self.config.vector_size not in (0, size):
            rule = (
                "0, because there are no pretrained vectors"
                if vectors is None
                else f"0 or {size}, because the pretrained vectors have size {size}"
            )
            raise TreeparseError(
                f"encoder.vector_size must be {rule}, got {self.config.vector_size}: leave it out; the vectors set it."
            )
        return replace(self, config=replace(self.config, vector_size=size))

    def features(self, sentences: Sequence[Sentence], vectors: WordVectors | None) -> LexicalFeatures:
        return LexicalFeatures.build(
            sentences,
            min_count=self.config.min_count,
            tags=self.config.tags,
            vectors=None if vectors is None else vectors.vocabulary(),
        )

    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        return features.extended(sentences, min_count=self.config.min_count)

    def restored(self, data: dict[str, Any]) -> LexicalFeatures:
        return LexicalFeatures.from_json(data)

    def module(self, features: Features) -> BiLSTMEncoder:
        assert isinstance(features, LexicalFeatures)
        words = features.words
        return BiLSTMEncoder(
            self.config, features.sizes(), unknown=words.special(UNKNOWN), specials=len(words.specials)
        )

    def initialise(self, module: Encoder, vectors: WordVectors | None) -> None:
        if vectors is not None:
            table = module.get_parameter("embedding.vectors.weight")
            table.copy_(vectors.embedding())

    def continuing(self, earlier: BiLSTMConfig) -> BiLSTMConfig:
        return replace(self.config, vector_size=earlier.vector_size)

    def shaping(self) -> Mapping[str, Any]:
        free = set(FREE)
        free |= set() if self.config.char_filters else {"char_size", "char_widths"}
        free |= set() if self.config.tags else {"tag_size"}
        return {name: value for name, value in asdict(self.config).items() if name not in free}
