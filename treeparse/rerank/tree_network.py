"""The neural reranker's model: a Tree-LSTM over each tree of a list, on top of an encoder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import Features
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.model.encoders import encoder_kind
from treeparse.nn import BiLSTMConfig, EncoderConfig
from treeparse.rerank.forests import LEFT, RIGHT, Forest
from treeparse.sentence import Sentence

UNKNOWN = "?"
FARTHEST = 8  # words between head and dependent; longer distances share one vector
SMALL_ENCODER = BiLSTMConfig(  # trains in about a minute
    min_count=2, word_size=64, char_size=24, char_filters=32, char_widths=(3,), hidden_size=96, layers=1,
    word_dropout=0.2, embedding_dropout=0.3, dropout=0.3,
)  # fmt: skip


@dataclass(frozen=True)
class TreeNetworkConfig:
    """The settings of the neural reranker.

    Attributes:
        encoder: makes the vectors of the nodes. It is trained with the network, because the encoder of a base parser
            represents the sentences that it was trained on unlike other sentences.
        size: size of the vectors of nodes and subtrees.
        label_size: size of the vectors of labels.
        dropout: dropout of the vectors of nodes, and of subtrees where they are scored.
    """

    encoder: EncoderConfig = SMALL_ENCODER
    size: int = 128
    label_size: int = 32
    dropout: float = 0.3

    def __post_init__(self) -> None:
        if min(self.size, self.label_size) < 1 or not 0 <= self.dropout < 1:
            raise TreeparseError(
                "size and label_size must be 1 or more, and dropout from 0 to less than 1, got "
                f"{self.size}, {self.label_size} and {self.dropout}."
            )


class TreeLSTM(nn.Module):
    """Computes a vector of each subtree of a forest.

    This is a child-sum Tree-LSTM (Tai et al. 2015) with different weights for dependents on the left and on the right.
    The gates' input from below is the sum over dependents of a function of the dependent and its neighbour towards the
    head.

    Args:
        input_size: size of the input of a subtree's top node.
        size: size of the vectors.
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.inputs: nn.Linear = nn.Linear(input_size, 4 * size)
        self.neighbours: nn.ModuleList = nn.ModuleList(nn.Linear(2 * size, size) for _ in (LEFT, RIGHT))
        self.below: nn.ModuleList = nn.ModuleList(nn.Linear(size, 3 * size, bias=False) for _ in (LEFT, RIGHT))
        self.forget: nn.Linear = nn.Linear(size, size, bias=False)

    def forward(self, forest: Forest, nodes: Tensor) -> Tensor:
        """Return vectors ``(S, size)`` from the inputs of top nodes ``(S, input_size)``, height by height."""
        inputs = self.inputs(nodes)
        vectors, cells = (inputs.new_zeros(len(inputs), self.size) for _ in range(2))
        _, upper, _ = forest.edges
        for height in range(int(forest.heights.max()) + 1 if len(inputs) else 0):
            rows = (forest.heights == height).nonzero().squeeze(-1)
            own = (forest.heights[upper] == height).nonzero().squeeze(-1)
            gates, carried = self._from_below(forest, own, rows, inputs, vectors, cells)
            enter, leave, update = (inputs[rows, : 3 * self.size] + gates).chunk(3, -1)
            cell = carried + torch.sigmoid(enter) * torch.tanh(update)
            cells = cells.index_copy(0, rows, cell)
            vectors = vectors.index_copy(0, rows, torch.sigmoid(leave) * torch.tanh(cell))
        return vectors

    def _from_below(
        self, forest: Forest, edges: Tensor, rows: Tensor, inputs: Tensor, vectors: Tensor, cells: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the gates' input from below ``(rows, 3 * size)``, and the remembered cells ``(rows, size)``."""
        lower, upper, neighbour = forest.edges[:, edges]
        index = torch.zeros(len(inputs), dtype=torch.int64).index_copy(0, rows, torch.arange(len(rows)))[upper]
        pairs = torch.cat([vectors[lower], torch.where((neighbour == lower)[:, None], 0.0, vectors[neighbour])], -1)
        gates = inputs.new_zeros(len(rows), 3 * self.size)
        for side, (neighbours, below) in enumerate(zip(self.neighbours, self.below, strict=True)):
            mine = forest.sides[edges] == side
            messages = torch.relu(neighbours(pairs[mine]))
            gates = gates + below(inputs.new_zeros(len(rows), self.size).index_add(0, index[mine], messages))
        remembered = torch.sigmoid(self.forget(vectors[lower]) + inputs[upper, 3 * self.size :]) * cells[lower]
        return gates, inputs.new_zeros(len(rows), self.size).index_add(0, index, remembered)


class TreeNetwork(nn.Module):
    """Scores trees, up to a constant for each list, by sums over arcs; an arc's score depends on the subtree below it.

    A `TreeLSTM` makes the vector of each subtree from the encoder's vector of its top node and the label of the arc
    above. An arc's score comes from the subtree's vector, the encoder's vector of the head, direction and length.

    Args:
        config: the settings.
        features: the features that the encoder reads.
        labels: the labels with vectors of their own.
    """

    config: TreeNetworkConfig
    features: Features
    labels: Vocabulary
    arc_head: nn.Linear
    arc_subtree: nn.Linear

    def __init__(self, config: TreeNetworkConfig, features: Features, labels: Vocabulary) -> None:
        super().__init__()
        self.config, self.features, self.labels = config, features, labels
        size = config.size
        self.encoder: Any = encoder_kind(config.encoder).module(features)
        read = self.encoder.output_size
        self.words: nn.Linear = nn.Linear(read, size)
        self.label_vectors: nn.Embedding = nn.Embedding(len(labels), config.label_size)
        self.trees: TreeLSTM = TreeLSTM(size + config.label_size, size)
        self.arc_head, self.arc_subtree = nn.Linear(read, size), nn.Linear(size, size, bias=False)
        self.distances: nn.Embedding = nn.Embedding(2 * FARTHEST + 1, size)
        self.score: nn.Linear = nn.Linear(size, 1, bias=False)
        self.dropout: nn.Dropout = nn.Dropout(config.dropout)

    @classmethod
    def build(cls, config: TreeNetworkConfig, sentences: Sequence[Sentence]) -> Self:
        """Return a new network for the words and the labels of these sentences."""
        features = encoder_kind(config.encoder).features(sentences, None)
        names = (label for sentence in sentences for label in sentence.labels or ())
        return cls(config, features, Vocabulary.build(names, specials=(UNKNOWN,), unknown=UNKNOWN))

    @classmethod
    def restore(cls, config: TreeNetworkConfig, vocabulary: dict[str, Any]) -> Self:
        """Return the network whose `vocabulary` was saved; its weights must still be loaded."""
        features = encoder_kind(config.encoder).restored(vocabulary["features"])
        return cls(config, features, Vocabulary.from_json(vocabulary["labels"]))

    def vocabulary(self) -> dict[str, Any]:
        """Return plain data for ``restore``."""
        return {"features": self.features.to_json(), "labels": self.labels.to_json()}

    def prepare(self, nbest: NBestList) -> tuple[Sentence, Forest]:
        """Return a list in the form that ``forward`` reads: the words and the trees."""
        words = replace(nbest.sentence.words, heads=None, labels=None, allowed=None)
        self.features.check(words)
        return words, Forest.of(nbest, self.labels.index)

    def forward(self, lists: Sequence[tuple[Sentence, Forest]]) -> Tensor:
        """Return the scores ``(trees,)`` of all trees of the lists, list after list."""
        sentences, forests = zip(*lists, strict=True)
        lengths, features = torch.tensor([*map(len, sentences)]), self.features(sentences)
        encoded = self.encoder(Batch(lengths, torch.arange(len(lengths)), features, sentences=sentences))
        forest = Forest.joined(forests, encoded.shape[1])
        encoded = encoded.flatten(0, 1)  # of all nodes of all sentences
        words = self.dropout(self.words(encoded))[forest.nodes]
        vectors = self.trees(forest, torch.cat([words, self.label_vectors(forest.labels)], -1))
        (heads, ends), (trees, arcs) = forest.arcs, forest.members
        # Nodes are numbered consecutively over all sentences, so their difference is the distance.
        distances = (forest.nodes[ends] - heads).clamp(-FARTHEST, FARTHEST) + FARTHEST
        subtrees = self.arc_subtree(self.dropout(vectors))[ends]
        hidden = torch.relu(self.arc_head(encoded)[heads] + subtrees + self.distances(distances))
        scores = self.score(self.dropout(hidden)).squeeze(-1)
        return scores.new_zeros(forest.trees).index_add(0, trees, scores[arcs])
