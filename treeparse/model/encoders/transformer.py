"""The pretrained transformer as an encoder, as its settings describe it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import torch

from treeparse.data.features.subwords import SpelledSubwords, SubwordFeatures
from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.model.encoders.kind import EncoderKind
from treeparse.model.encoders.pretrained import Pretrained, public_name
from treeparse.nn import Encoder, TransformerConfig, TransformerEncoder
from treeparse.nn.huggingface import build_transformer, most_subwords
from treeparse.sentence import Sentence

# Settings on which no weight depends, or which the pretrained model decides: a run that starts from a model may change
# them.
FREE = {
    "revision",
    "architecture",
    "layer_dropout",
    "window",
    "overlap",
    "dropout",
    "frozen",
    "unfreeze_at",
    "learning_rate_factor",
    "layer_decay",
    "gradient_checkpointing",
    "lora_rank",
    "lora_alpha",
    "lora_dropout",
    "lora_targets",
    "min_count",
}


@dataclass(frozen=True)
class Transformer(EncoderKind[TransformerConfig]):
    """A `TransformerEncoder` over `SubwordFeatures` and, optionally, characters and tags."""

    settings = TransformerConfig
    pretrained: Pretrained | None = None  # the model that the settings name, after `completed`

    @property
    def name(self) -> str:
        return self.config.type

    def completed(self, vectors: WordVectors | None) -> Self:
        """Return this kind with the architecture of the named model, and with its commit if it is on the Hub.

        A folder goes by its own name alone, because nobody else has the folders above it.
        """
        super().completed(vectors)
        model = Pretrained.find(self.config.model, self.config.revision)
        name, architecture = public_name(self.config.model), model.architecture()
        config = replace(self.config, model=name, revision=model.revision, architecture=architecture)
        return replace(self, config=config, pretrained=model)

    def features(self, sentences: Sequence[Sentence], vectors: WordVectors | None) -> Features:
        assert self.pretrained is not None
        tokenizer, special, limit_of_tokenizer = self.pretrained.tokenizer()
        limit = self._limit()
        subwords = SubwordFeatures(
            tokenizer,
            special,
            limit=min(limit_of_tokenizer, limit) if limit_of_tokenizer else limit,
            window=self.config.window,
            overlap=self.config.overlap,
        )
        if not (self.config.char_filters or self.config.tags):
            return subwords
        lexical = LexicalFeatures.build(sentences, min_count=self.config.min_count, tags=self.config.tags)
        return SpelledSubwords(subwords, lexical)

    def _limit(self) -> int:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):  # neither storage nor a draw
            return most_subwords(build_transformer(self.config.architecture))

    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        """Return the same subwords, because a pretrained model learns no new ones, in windows by the settings."""
        assert isinstance(features, SubwordFeatures | SpelledSubwords)
        return features.extended(sentences, min_count=self.config.min_count).windowed(
            self.config.window, self.config.overlap
        )

    def restored(self, data: dict[str, Any]) -> Features:
        kind = SpelledSubwords if self.config.char_filters or self.config.tags else SubwordFeatures
        return kind.from_json(data)

    def module(self, features: Features) -> TransformerEncoder:
        subwords = _subwords(features)
        module = TransformerEncoder(self.config, _sizes(features))
        vocabulary, limit = module.transformer.config.vocab_size, most_subwords(module.transformer)
        if subwords.ids > vocabulary or subwords.limit > limit:
            raise TreeparseError(
                f"The tokenizer has {subwords.ids:,} subwords and windows of up to {subwords.limit:,}, but the model "
                f"has {vocabulary:,} subwords and windows of up to {limit:,}: take both files from the same model."
            )
        return module

    def initialise(self, module: Encoder, vectors: WordVectors | None) -> None:
        assert self.pretrained is not None
        weights = self.pretrained.weights(self.config.architecture)
        assert isinstance(module, TransformerEncoder)
        module.load_model(weights)

    def continuing(self, earlier: TransformerConfig) -> TransformerConfig:
        return replace(self.config, model=earlier.model, revision=earlier.revision, architecture=earlier.architecture)

    def merged(self) -> TransformerConfig:
        """Return the settings without adapters, which are merged into the weights, so that loading needs no peft."""
        return replace(self.config, lora_rank=0)

    def shaping(self) -> Mapping[str, Any]:
        free = set(FREE)
        free |= set() if self.config.model else {"model"}  # an empty name takes the other model
        free |= set() if self.config.hidden_size else {"layers"}
        free |= set() if self.config.char_filters else {"char_size", "char_widths"}
        free |= set() if self.config.tags else {"tag_size"}
        settings = asdict(replace(self.config, model=public_name(self.config.model)))
        return {name: value for name, value in settings.items() if name not in free}


def _subwords(features: Features) -> SubwordFeatures:
    subwords = features.subwords if isinstance(features, SpelledSubwords) else features
    assert isinstance(subwords, SubwordFeatures)
    return subwords


def _sizes(features: Features) -> Mapping[str, int]:
    """Return the number of ids of characters and of each tag column."""
    return features.lexical.sizes() if isinstance(features, SpelledSubwords) else {}
