"""The encoder that pools a pretrained transformer's subwords."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from treeparse.batch import Batch
from treeparse.errors import TreeparseError

from .bilstm import BiLSTMLayer, through_layers
from .config import Pooling, TransformerConfig
from .dropout import SharedDropout
from .embedding import character_encoder, spelling_and_tags, spelling_and_tags_size, tag_tables
from .encoder import Encoder, weights_with
from .huggingface import build_transformer, checkpoint_layers, layer_depths
from .lora import add_adapters, base_weights, merged_weights

NO_SIZES: Mapping[str, int] = MappingProxyType({})
MODEL = "transformer."  # prefix of the names of the pretrained weights
ROOT_SCALE = 0.02  # of the root's initial vector, as transformers initialise embeddings


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


class TransformerEncoder(Encoder):
    """Vectors of words pooled from their subwords, a learned vector of the root and, optionally, a BiLSTM over these.

    The encoder reads the features of ``SubwordFeatures``, or the feature ``word_layers`` of a frozen model
    (`word_layers`). It concatenates the vectors of characters and tags with a word's vector, and reads the features of
    ``LexicalFeatures`` for them; ``sizes`` counts their ids. Initial weights are random.

    Raises ``TreeparseError`` for an invalid architecture.
    """

    factor: float
    decay: float
    tags: nn.ModuleDict

    def __init__(self, config: TransformerConfig, sizes: Mapping[str, int] = NO_SIZES) -> None:
        super().__init__()
        self.pooling: Pooling = config.pooling
        self.unfreeze_at: float = config.unfreeze_at
        self.factor, self.decay = config.learning_rate_factor, config.layer_decay
        transformer: Any = build_transformer(config.architecture)
        self.adapted: bool = config.lora_rank > 0
        if self.adapted:
            add_adapters(transformer, config)
        self.transformer = transformer
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
        self.layers: nn.ModuleList = nn.ModuleList(BiLSTMLayer(each, config.hidden_size) for each in inputs)
        self.output_size: int = 2 * config.hidden_size or size
        self.frozen: bool = config.frozen
        self._depths = layer_depths(self.transformer)
        if config.frozen:
            transformer.requires_grad_(False).eval()  # `train` sets this too, but nobody calls it on a new model
        elif config.gradient_checkpointing:
            checkpoint_layers(transformer)

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
