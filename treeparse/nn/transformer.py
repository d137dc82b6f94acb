"""The encoder that pools a pretrained transformer's subwords."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from treeparse.batch import Batch
from treeparse.data.features.subwords import SpelledSubwords, SubwordFeatures
from treeparse.data.features.vector_files import WordVectors
from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.nn.embedding import SharedDropout
from treeparse.nn.encoder_config import Encoder, Learner, weights_with
from treeparse.sentence import Sentence

from .bilstm import BiLSTMLayer, through_layers
from .embedding import character_encoder, spelling_and_tags, spelling_and_tags_size, tag_tables
from .encoder_config import LARGEST, MOST_LAYERS, LexicalConfig, check_counts, check_rates
from .huggingface import (
    add_adapters,
    base_weights,
    build_transformer,
    checked_architecture,
    checkpoint_layers,
    layer_depths,
    merged_weights,
    most_subwords,
)
from .pretrained import Pretrained, public_name

NO_SIZES: Mapping[str, int] = MappingProxyType({})
MODEL = "transformer."  # prefix of the names of the pretrained weights
ROOT_SCALE = 0.02  # of the root's initial vector, as transformers initialise embeddings
LEAST_WINDOW = 8  # subwords
Pooling = Literal["first", "mean", "last"]
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
class TransformerConfig(LexicalConfig):
    """A pretrained transformer over subwords and, optionally, a BiLSTM over it.

    Attributes:
        model: a folder in Hugging Face's format or the name of a model on their Hub; its weights must be safetensors.
        revision: branch, tag or commit of a model on the Hub, "" for the main branch; the commit is saved.
        architecture: the model's settings; leave them out, because they are read from the model.
        pooling: the subwords that make a word's vector: the first, the last, or the mean of all.
        mixed_layers: the number of layers, from the last one down, that learned weights mix (Peters et al. 2018, §3.2);
            1 for the last one alone, 0 for all layers and the embeddings.
        layer_dropout: share of the mixed layers that training drops (Kondratyuk and Straka 2019, §3.3).
        window: largest number of subwords in a window, special ones included, 0 for the model's limit; longer sentences
            are split into windows.
        overlap: largest number of subwords that two windows share.
        dropout: dropout of the words' vectors, shared by the words of a sentence.
        frozen: whether training leaves the pretrained weights unchanged.
        unfreeze_at: share of training after which all pretrained layers learn; they start one by one, the last one
            first (Howard and Ruder 2018, §3.3); 0 for all at once.
        learning_rate_factor: learning rate of the pretrained weights as a share of the parser's.
        layer_decay: learning rate of each layer as a share of the rate of the layer above it.
        gradient_checkpointing: whether to compute layers twice instead of storing what the gradient needs.
        hidden_size: size of the BiLSTM on top in each direction, 0 for none.
        layers: number of BiLSTM layers.
        lora_rank: rank of the low-rank adapters, 0 for none (Hu et al. 2022). With adapters the pretrained weights do
            not learn. A saved model has the adapters merged into its weights.
        lora_alpha: factor of the adapters' outputs, times the rank.
        lora_dropout: dropout of the adapters' inputs.
        lora_targets: ends of the names of the layers that get adapters; empty for peft's default for this type of
            model, mostly query and value.
        char_filters: filters of each convolution over a word's characters, concatenated with its vector; 0 for none.
        char_size: size of the character embeddings.
        char_widths: the number of characters that each convolution spans.
        tags: columns (upos, xpos, feats) whose embeddings are concatenated with a word's vector; the input of parsing
            must have them.
        tag_size: size of each tag embedding.
        min_count: characters that training data has fewer times are unknown.
    """

    model: str = ""
    revision: str = ""
    architecture: Mapping[str, Any] = field(default_factory=dict)
    pooling: Pooling = "mean"
    mixed_layers: int = 1
    layer_dropout: float = 0.0
    window: int = 0
    overlap: int = 128
    dropout: float = 0.1
    frozen: bool = False
    unfreeze_at: float = 0.0
    learning_rate_factor: float = 0.05
    layer_decay: float = 1.0
    gradient_checkpointing: bool = False
    hidden_size: int = 0
    layers: int = 1
    lora_rank: int = 0
    lora_alpha: float = 16.0
    lora_dropout: float = 0.0
    lora_targets: tuple[str, ...] = ()
    char_filters: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "window", "overlap", "hidden_size", "lora_rank", least=0)
        check_counts(self, "mixed_layers", least=0, most=MOST_LAYERS)
        check_counts(self, "layers", most=MOST_LAYERS)
        if self.window:
            check_counts(self, "window", least=LEAST_WINDOW)
        check_rates(self, "layer_dropout", "dropout", "unfreeze_at", "lora_dropout")
        for name in ("learning_rate_factor", "layer_decay"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise TreeparseError(f"encoder.{name} must be more than 0 and at most 1, got {value}.")
        self._check_adapters()
        object.__setattr__(self, "architecture", checked_architecture(self.architecture))

    def _check_adapters(self) -> None:
        object.__setattr__(self, "lora_targets", tuple(self.lora_targets))
        if not 0 < self.lora_alpha <= LARGEST:
            raise TreeparseError(
                f"encoder.lora_alpha must be more than 0 and at most {LARGEST:,}, got {self.lora_alpha}."
            )
        if "" in self.lora_targets:
            raise TreeparseError("encoder.lora_targets must be ends of names of layers, got an empty one.")
        if self.lora_rank and (self.frozen or self.unfreeze_at):
            other = "frozen" if self.frozen else "unfreeze_at"
            raise TreeparseError(
                f"encoder.{other} does not go with adapters (encoder.lora_rank is {self.lora_rank}), because "
                "pretrained weights do not learn with adapters, and adapters learn from the start: leave out "
                f"encoder.{other}."
            )

    def start(
        self, sentences: Sequence[Sentence], vectors: WordVectors | None = None
    ) -> tuple[Self, Features, Callable[[Learner], None]]:
        """Start from the named model: its architecture, its commit if it is on the Hub, its tokenizer and its weights.

        A folder goes by its own name alone, because nobody else has the folders above it.
        """
        _, lexical, _ = super().start(sentences if self._is_spelled else (), vectors)
        assert isinstance(lexical, LexicalFeatures)
        pretrained = Pretrained.find(self.model, self.revision)
        architecture = pretrained.architecture()
        config = replace(self, model=public_name(self.model), revision=pretrained.revision, architecture=architecture)
        tokenizer, special, limit = pretrained.tokenizer()
        with torch.random.fork_rng(devices=[]), torch.device("meta"):  # neither storage nor a draw
            most = most_subwords(build_transformer(architecture))
        subwords = SubwordFeatures(
            tokenizer, special, limit=min(limit, most) if limit else most, window=self.window, overlap=self.overlap
        )

        def initialise(module: Learner) -> None:
            assert isinstance(module, TransformerEncoder)
            module.load_model(pretrained.weights(architecture))

        return config, SpelledSubwords(subwords, lexical) if self._is_spelled else subwords, initialise

    @property
    def _is_spelled(self) -> bool:
        return bool(self.char_filters or self.tags)

    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        """Return the same subwords, because a pretrained model learns no new ones, in windows by the settings."""
        assert isinstance(features, SubwordFeatures | SpelledSubwords)
        return features.extended(sentences, min_count=self.min_count).windowed(self.window, self.overlap)

    def restored(self, data: dict[str, Any]) -> Features:
        return (SpelledSubwords if self._is_spelled else SubwordFeatures).from_json(data)

    def module(self, features: Features) -> "TransformerEncoder":
        subwords = features.subwords if isinstance(features, SpelledSubwords) else features
        assert isinstance(subwords, SubwordFeatures)
        module = TransformerEncoder(self, features.sizes())
        vocabulary, limit = module.transformer.config.vocab_size, most_subwords(module.transformer)
        if subwords.ids > vocabulary or subwords.limit > limit:
            raise TreeparseError(
                f"The tokenizer has {subwords.ids:,} subwords and windows of up to {subwords.limit:,}, but the model "
                f"has {vocabulary:,} subwords and windows of up to {limit:,}: take both files from the same model."
            )
        return module

    def continuing(self, earlier: Self) -> Self:
        return replace(self, model=earlier.model, revision=earlier.revision, architecture=earlier.architecture)

    def merged(self) -> Self:
        """Return the settings without adapters, which are merged into the weights, so that loading needs no peft."""
        return replace(self, lora_rank=0)

    def shaping(self) -> Mapping[str, Any]:
        free = FREE | (set() if self.model else {"model"})  # an empty name takes the other model
        free |= set() if self.hidden_size else {"layers"}
        return replace(self, model=public_name(self.model))._shaping(free)


class LayerMix(nn.Module):
    """A learned weighted mean of layers, times a learned factor (Peters et al. 2018, §3.2).

    Training drops each layer at the given rate, unless it would drop all (Kondratyuk and Straka 2019, §3.3).
    """

    def __init__(self, layers: int, dropout: float) -> None:
        super().__init__()
        self.weights: nn.Parameter = nn.Parameter(torch.zeros(layers))
        self.scale: nn.Parameter = nn.Parameter(torch.ones(()))
        self.dropout = dropout

    def forward(self, layers: Tensor) -> Tensor:
        """Mix layers (L, ...) into (...)."""
        weights = self.weights
        if self.training and self.dropout:
            stays = torch.rand(len(weights), device=weights.device) >= self.dropout
            weights = weights.masked_fill(~stays & stays.any(), -torch.inf)
        return self.scale * torch.tensordot(weights.softmax(0), layers, 1)


def _transformer_of(config: TransformerConfig) -> nn.Module:
    """Build the transformer of an encoder, with random weights."""
    transformer = build_transformer(config.architecture)
    if config.lora_rank:
        add_adapters(transformer, config.lora_rank, config.lora_alpha, config.lora_dropout, config.lora_targets)
    return transformer


class TransformerEncoder(Encoder):
    """Vectors of words pooled from their subwords, a learned vector of the root and, optionally, a BiLSTM over these.

    The encoder reads the features of ``SubwordFeatures``, or the feature ``word_layers`` of a frozen model
    (`word_layers`). It concatenates the vectors of characters and tags with a word's vector, and reads the features of
    ``LexicalFeatures`` for them; ``sizes`` counts their ids. Initial weights are random.

    Raises ``TreeparseError`` for an invalid architecture.
    """

    def __init__(self, config: TransformerConfig, sizes: Mapping[str, int] = NO_SIZES) -> None:
        super().__init__()
        self.pooling: Pooling = config.pooling
        self.unfreeze_at: float = config.unfreeze_at
        self.factor, self.decay = config.learning_rate_factor, config.layer_decay
        self._config = config
        self.adapted: bool = config.lora_rank > 0
        self.transformer: Any = _transformer_of(config)
        transformer = self.transformer
        size, layers = transformer.config.hidden_size, transformer.config.num_hidden_layers
        if config.mixed_layers > layers:
            raise TreeparseError(
                f"encoder.mixed_layers must be at most {layers}, the model's layers, got {config.mixed_layers}."
            )
        self.mixed: int | Any = config.mixed_layers or layers + 1
        self.mix: LayerMix | None = LayerMix(self.mixed, config.layer_dropout) if self.mixed > 1 else None
        self.root: nn.Parameter = nn.Parameter(torch.randn(size) * ROOT_SCALE)
        self.dropout: SharedDropout = SharedDropout(config.dropout)
        self.tags, self.characters = tag_tables(config, sizes), character_encoder(config, sizes)
        size += spelling_and_tags_size(config)
        inputs = [size] + [2 * config.hidden_size] * (config.layers - 1) if config.hidden_size else []
        self.layers: nn.ModuleList = nn.ModuleList(BiLSTMLayer(width, config.hidden_size) for width in inputs)
        self.output_size: int = 2 * config.hidden_size or size
        self.frozen: bool = config.frozen
        self._depths = layer_depths(self.transformer)
        if config.frozen:
            transformer.requires_grad_(False).eval()  # `train` sets this too, but nobody calls it on a new model
        self._checkpoint_layers()

    def _checkpoint_layers(self) -> None:
        if self._config.gradient_checkpointing and not self.frozen:
            checkpoint_layers(self.transformer)

    def __getstate__(self) -> dict[str, Any]:
        """Replace the transformer by a new one with the same tensors, because the library's hooks cannot be pickled.

        The library registers hooks when a transformer computes, and to checkpoint its layers.
        """
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            plain = _transformer_of(self._config)
        modules = dict(self.transformer.named_modules())
        for name, module in plain.named_modules():
            of_new = {key for key in vars(module) if "hooks" not in key and key != "_modules"}
            vars(module).update({key: value for key, value in vars(modules[name]).items() if key in of_new})
        return vars(self) | {"_modules": {**self._modules, "transformer": plain}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._checkpoint_layers()

    def forward(self, batch: Batch) -> Tensor:
        if (layers := batch.features.get("word_layers")) is not None:
            vectors = self._mixed(layers.to(self.root.dtype))
        else:
            vectors = self._pooled(self._mixed(self._hidden(batch)), batch)
        vectors = torch.cat([self.root.expand(len(batch), 1, -1), vectors[:, 1:]], 1)
        others = spelling_and_tags(self.characters, self.tags, batch.features)
        vectors = self.dropout(torch.cat([vectors, *others], -1))
        return through_layers(self.layers, vectors, batch.lengths + 1, self.dropout)

    def word_layers(self, batch: Batch) -> Tensor:
        """Return the vectors (L, B, n+1, D) of words, pooled from their subwords, in each mixed layer.

        A frozen model's vectors do not change in training, so a batch's feature ``word_layers`` may hold them.
        """
        return torch.stack([self._pooled(layer, batch) for layer in self._hidden(batch)])

    def _pooled(self, subwords: Tensor, batch: Batch) -> Tensor:
        """Pool the vectors of all subwords (W, S, D) into those of words (B, n+1, D)."""
        features, nodes = batch.features, batch.longest + 1
        words = features["words"]
        weights = (features["shares"] * pooling_weights(words, self.pooling)).to(subwords.dtype)
        indices = features["sentences"].unsqueeze(-1) * nodes + words
        pooled = subwords.new_zeros(len(batch) * nodes, subwords.shape[-1])
        pooled = pooled.index_add(0, indices.flatten(), (weights.unsqueeze(-1) * subwords).flatten(0, 1))
        return pooled.view(len(batch), nodes, -1)

    def _mixed(self, layers: Tensor) -> Tensor:
        """Mix layers (L, ...) into (...)."""
        return layers[0] if self.mix is None else self.mix(layers)

    def _hidden(self, batch: Batch) -> Tensor:
        """Return the vectors (L, W, S, D) of all subwords in each mixed layer."""
        subwords, lengths = batch.features["subwords"], batch.features["subword_lengths"]
        mask = torch.arange(subwords.shape[1], device=lengths.device) < lengths.unsqueeze(-1)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            output = self.transformer(
                input_ids=subwords, attention_mask=mask.long(), output_hidden_states=self.mix is not None
            )
        if self.mix is None:
            return output.last_hidden_state.to(self.root.dtype).unsqueeze(0)
        return torch.stack(output.hidden_states[-self.mixed :]).to(self.root.dtype)

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode; a frozen transformer stays in evaluation mode, without dropout."""
        super().train(mode)
        if self.frozen:
            self.transformer.eval()
        return self

    def rates(self) -> Mapping[nn.Parameter, float]:
        return {
            parameter: self.factor * self.decay ** self._depths[name]
            for name, parameter in self.transformer.named_parameters()
        }

    def base_weights(self) -> dict[str, Tensor]:
        return weights_with(self, MODEL, base_weights(self.transformer)) if self.adapted else self.state_dict()

    def merged_weights(self) -> dict[str, Tensor]:
        return weights_with(self, MODEL, merged_weights(self.transformer)) if self.adapted else self.state_dict()

    def load_model(self, weights: Mapping[str, Tensor]) -> None:
        """Load all weights of the pretrained model, and no others."""
        if not self.adapted:
            self.transformer.load_state_dict(weights)
            return
        for name, target in base_weights(self.transformer).items():
            target.copy_(weights[name])

    def advance(self, progress: float) -> None:
        """Unfreeze the layers due at this share of training, one after another from the last one to the embeddings."""
        if self.frozen or not self.unfreeze_at:
            return
        turns = max(self._depths.values(), default=0) + 1
        for name, parameter in self.transformer.named_parameters():
            parameter.requires_grad_(progress >= self.unfreeze_at * (self._depths[name] + 1) / turns)


def pooling_weights(words: Tensor, pooling: Pooling) -> Tensor:
    """Return the weight (W, S) of each subword in the vector of its word, in float32.

    ``words`` (W, S) has the word of each subword, 0 for none; the subwords of a word must be adjacent. The weights of a
    word in a row sum to 1; those of no word have any finite values.
    """
    first = words != functional.pad(words, (1, 0), value=-1)[:, :-1]
    if pooling == "first":
        return first.float()
    if pooling == "last":
        return (words != functional.pad(words, (0, 1), value=-1)[:, 1:]).float()
    group = first.flatten().cumsum(0) - 1
    sizes = torch.zeros_like(group).scatter_add_(0, group, torch.ones_like(group))
    return (1 / sizes.float())[group].view(words.shape)
