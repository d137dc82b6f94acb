"""The bidirectional LSTM encoder, over words, characters, tags and pretrained vectors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from treeparse.batch import Batch
from treeparse.data.features.vector_files import WordVectors
from treeparse.data.features.words import UNKNOWN, Features, LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.nn.embedding import SharedDropout
from treeparse.nn.encoder_config import Encoder, Learner
from treeparse.sentence import Sentence

from .embedding import LexicalEmbedding
from .encoder_config import MOST_LAYERS, LexicalConfig, check_counts, check_rates
from .int8 import Int8Products
from .packed import FloatProducts, Packing, Products, can_pack, through_packed_layers

# Pad sentences to a multiple of this many nodes, because torch compiles the CPU's LSTM kernel for every shape.
STEP = 4
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
class BiLSTMConfig(LexicalConfig):
    """A BiLSTM over word, character and tag embeddings (Dozat and Manning 2017).

    Attributes:
        min_count: words and characters that training data has fewer times are unknown.
        word_size: size of the word embeddings.
        vector_size: size of the pretrained vectors, 0 for none; set from the vectors file.
        char_size: size of the character embeddings.
        char_filters: filters of each convolution over characters, 0 for no characters.
        char_widths: the number of characters that each convolution spans.
        tags: the columns (upos, xpos, feats) that the model reads; the input of parsing must have them.
        tag_size: size of each tag embedding.
        hidden_size: size of the LSTM in each direction.
        layers: number of LSTM layers.
        word_dropout: share of words that training replaces by the unknown word.
        embedding_dropout: dropout of the embeddings, shared by the words of a sentence.
        dropout: dropout after every LSTM layer, shared by the words of a sentence.
        recurrent_dropout: dropout of the LSTMs' recurrent weights, one mask a batch (Merity et al. 2018, §2).
    """

    word_size: int = 100
    vector_size: int = 0
    hidden_size: int = 256
    layers: int = 2
    word_dropout: float = 0.2
    embedding_dropout: float = 0.33
    dropout: float = 0.33
    recurrent_dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "word_size", "hidden_size")
        check_counts(self, "vector_size", least=0)
        check_counts(self, "layers", most=MOST_LAYERS)
        check_rates(self, "word_dropout", "embedding_dropout", "dropout", "recurrent_dropout")

    def start(
        self, sentences: Sequence[Sentence], vectors: WordVectors | None = None
    ) -> tuple[Self, Features, Callable[[Learner], None]]:
        """Start from training sentences; the vectors set ``vector_size``, and their table is a pretrained weight."""
        size = 0 if vectors is None else vectors.size
        if self.vector_size not in (0, size):
            rule = (
                "0, because there are no pretrained vectors"
                if vectors is None
                else f"0 or {size}, because the pretrained vectors have size {size}"
            )
            raise TreeparseError(
                f"encoder.vector_size must be {rule}, got {self.vector_size}: leave it out; the vectors set it."
            )
        vocabulary = None if vectors is None else vectors.vocabulary()
        features = LexicalFeatures.build(sentences, min_count=self.min_count, tags=self.tags, vectors=vocabulary)

        def initialise(module: Learner) -> None:
            if vectors is not None:
                module.get_parameter("embedding.vectors.weight").copy_(vectors.embedding())

        return replace(self, vector_size=size), features, initialise

    def module(self, features: Features) -> "BiLSTMEncoder":
        assert isinstance(features, LexicalFeatures)
        words = features.words
        return BiLSTMEncoder(self, features.sizes(), unknown=words.special(UNKNOWN), specials=len(words.specials))

    def continuing(self, earlier: Self) -> Self:
        return replace(self, vector_size=earlier.vector_size)

    def shaping(self) -> Mapping[str, Any]:
        return self._shaping(FREE)


class BiLSTMLayer(nn.Module):
    """One LSTM over the sentences and one over the reversed sentences, their outputs concatenated.

    A sentence is reversed before its padding, so both LSTMs run over plain padded tensors. On the CPU, in training,
    that is faster than packed sequences, whose gradient takes time quadratic in the length and has no fused kernel.
    Without gradients the layer runs packed (`treeparse.nn.packed`).
    """

    def __init__(self, input_size: int, hidden_size: int, recurrent_dropout: float = 0.0) -> None:
        super().__init__()
        self.recurrent_dropout = recurrent_dropout
        self.forwards: nn.LSTM = nn.LSTM(input_size, hidden_size)
        self.backwards: nn.LSTM = nn.LSTM(input_size, hidden_size)
        for direction in (self.forwards, self.backwards):
            _initialise(direction)

    def forward(self, nodes: Tensor, reverse: Tensor) -> Tensor:
        """Encode nodes (T, B, D) as (T, B, 2H); ``reverse`` (T, B) is each node's position in the reversed sentence."""
        ahead = self._run(self.forwards, nodes)
        behind = self._run(self.backwards, _permuted(nodes, reverse))
        return torch.cat([ahead, _permuted(behind, reverse)], -1)

    @property
    def products(self) -> Products:
        """The matrix products of both directions."""
        directions: list[Any] = list(self.children())
        return FloatProducts(*directions) if isinstance(directions[0], nn.LSTM) else Int8Products(*directions)

    def _run(self, direction: nn.LSTM, nodes: Tensor) -> Tensor:
        """Run one direction; in training, drop a random part of its recurrent weights, the same at every step."""
        if not self.training or self.recurrent_dropout == 0:
            return direction(nodes)[0]
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        weights = [getattr(direction, name) for name in names]
        weights[1] = functional.dropout(weights[1], self.recurrent_dropout)
        start = nodes.new_zeros(1, nodes.shape[1], direction.hidden_size)
        return torch.lstm(nodes, (start, start), weights, True, 1, 0.0, True, False, False)[0]


class BiLSTMEncoder(Encoder):
    """Bidirectional LSTM layers with shared dropout after each (Dozat and Manning 2017, §3).

    ``sizes``, ``unknown`` and ``specials`` are as in ``LexicalEmbedding``.
    """

    def __init__(self, config: BiLSTMConfig, sizes: Mapping[str, int], *, unknown: int, specials: int) -> None:
        super().__init__()
        self.embedding: LexicalEmbedding = LexicalEmbedding(
            config,
            sizes,
            word_size=config.word_size,
            vector_size=config.vector_size,
            word_dropout=config.word_dropout,
            unknown=unknown,
            specials=specials,
        )
        self.embedding_dropout: SharedDropout = SharedDropout(config.embedding_dropout)
        self.dropout: SharedDropout = SharedDropout(config.dropout)
        self.output_size: int = 2 * config.hidden_size
        inputs = [self.embedding.output_size] + [self.output_size] * (config.layers - 1)
        self.layers: nn.ModuleList = nn.ModuleList(
            BiLSTMLayer(size, config.hidden_size, config.recurrent_dropout) for size in inputs
        )

    def forward(self, batch: Batch) -> Tensor:
        if can_pack(self, batch.lengths.device):
            packing = Packing.of(batch.lengths + 1, batch.features["words"].shape[1])
            words, rows = self.embedding.distinct(batch.features, packing.indices)
            return packing.padded(through_packed_layers(_products(self.layers), words, packing, rows))
        nodes = self.embedding_dropout(self.embedding(batch.features))
        return through_layers(self.layers, nodes, batch.lengths + 1, self.dropout)


def through_layers(layers: nn.ModuleList, nodes: Tensor, lengths: Tensor, dropout: nn.Module) -> Tensor:
    """Encode nodes (B, T, D) by BiLSTM layers as (B, T, 2H); ``lengths`` (B,) counts nodes without padding."""
    count = nodes.shape[1]
    if layers and can_pack(layers, nodes.device):
        packing = Packing.of(lengths, count)
        return packing.padded(through_packed_layers(_products(layers), packing.packed(nodes), packing))
    nodes = functional.pad(nodes.transpose(0, 1), (0, 0, 0, 0, 0, -count % STEP))
    reverse = _reversed_positions(lengths, len(nodes))
    for layer in layers:
        nodes = dropout(layer(nodes, reverse).transpose(0, 1)).transpose(0, 1)
    return nodes[:count].transpose(0, 1)


def _products(layers: nn.ModuleList) -> Iterator[Products]:
    for layer in layers:
        assert isinstance(layer, BiLSTMLayer)
        yield layer.products


def _reversed_positions(lengths: Tensor, steps: int) -> Tensor:
    """Return the position (T, B) of each node in its reversed sentence; padding stays."""
    position = torch.arange(steps, device=lengths.device).unsqueeze(-1)
    return torch.where(position < lengths, lengths - 1 - position, position)


def _permuted(nodes: Tensor, positions: Tensor) -> Tensor:
    return nodes[positions, torch.arange(nodes.shape[1], device=nodes.device)]


def _initialise(layer: nn.LSTM) -> None:
    """Make the recurrent weights of each gate orthogonal, as [DM] do, and the biases zero."""
    for name, parameter in layer.named_parameters():
        if name.startswith("weight_hh"):
            for gate in parameter.data.chunk(4):
                nn.init.orthogonal_(gate)
        elif name.startswith("weight_ih"):
            nn.init.xavier_uniform_(parameter)
        else:
            nn.init.zeros_(parameter)
