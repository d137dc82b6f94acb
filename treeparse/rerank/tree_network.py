"""The neural reranker's model: a Tree-LSTM over each tree of a list, on top of an encoder."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import Features
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.model.encoders import encoder_kind
from treeparse.nn import BiLSTMConfig, EncoderConfig
from treeparse.rerank.forests import Forest
from treeparse.rerank.tree_lstm import TreeLSTM
from treeparse.sentence import Sentence

UNKNOWN = "?"
FARTHEST = 8  # words between head and dependent; longer distances share one vector


def small_encoder() -> BiLSTMConfig:
    """Return the settings of an encoder that trains in about a minute."""
    return BiLSTMConfig(
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

    encoder: EncoderConfig = field(default_factory=small_encoder)
    size: int = 128
    label_size: int = 32
    dropout: float = 0.3

    def __post_init__(self) -> None:
        if min(self.size, self.label_size) < 1 or not 0 <= self.dropout < 1:
            raise TreeparseError(
                "size and label_size must be 1 or more, and dropout from 0 to less than 1, got "
                f"{self.size}, {self.label_size} and {self.dropout}."
            )


class Prepared(NamedTuple):
    """A list in the form that the network reads."""

    sentence: Sentence
    forest: Forest


class TreeNetwork(nn.Module):
    """Scores trees, up to a constant for each list, by sums over arcs; an arc's score depends on the subtree below it.

    A `TreeLSTM` makes the vector of each subtree from the encoder's vector of its top node and the label of the arc
    above. An arc's score comes from the subtree's vector, the encoder's vector of the head, direction and length.

    Args:
        config: the settings.
        features: the features that the encoder reads.
        labels: the labels with vectors of their own.
    """

    def __init__(self, config: TreeNetworkConfig, features: Features, labels: Vocabulary) -> None:
        super().__init__()
        self.config, self.features, self.labels = config, features, labels
        size = config.size
        self.encoder = encoder_kind(config.encoder).module(features)
        read = self.encoder.output_size
        self.words = nn.Linear(read, size)
        self.label_vectors = nn.Embedding(len(labels), config.label_size)
        self.trees = TreeLSTM(size + config.label_size, size)
        self.arc_head, self.arc_subtree = nn.Linear(read, size), nn.Linear(size, size, bias=False)
        self.distances = nn.Embedding(2 * FARTHEST + 1, size)
        self.score = nn.Linear(size, 1, bias=False)
        self.dropout = nn.Dropout(config.dropout)

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
        """Return plain data for :meth:`restore`."""
        return {"features": self.features.to_json(), "labels": self.labels.to_json()}

    def prepare(self, nbest: NBestList) -> Prepared:
        """Return a list in the form that :meth:`forward` reads."""
        words = replace(nbest.sentence.words, heads=None, labels=None, allowed=None)
        self.features.check(words)
        return Prepared(words, Forest.of(nbest, self.labels.index))

    def forward(self, lists: Sequence[Prepared]) -> Tensor:
        """Return the scores ``(trees,)`` of all trees of the lists, list after list."""
        encoded = self._encoded([each.sentence for each in lists])
        forest = Forest.joined([each.forest for each in lists], encoded.shape[1])
        encoded = encoded.flatten(0, 1)
        words = self.dropout(self.words(encoded))[forest.nodes]
        vectors = self.trees(forest, torch.cat([words, self.label_vectors(forest.labels)], -1))
        (heads, ends), (trees, arcs) = forest.arcs, forest.members
        # Nodes are numbered consecutively over all sentences, so their difference is the distance.
        distances = (forest.nodes[ends] - heads).clamp(-FARTHEST, FARTHEST) + FARTHEST
        subtrees = self.arc_subtree(self.dropout(vectors))[ends]
        hidden = torch.relu(self.arc_head(encoded)[heads] + subtrees + self.distances(distances))
        scores = self.score(self.dropout(hidden)).squeeze(-1)
        return scores.new_zeros(forest.trees).index_add(0, trees, scores[arcs])

    def _encoded(self, sentences: Sequence[Sentence]) -> Tensor:
        """Return the vectors of the nodes ``(B, n+1, D)``."""
        lengths, features = torch.tensor([*map(len, sentences)]), self.features(sentences)
        return self.encoder(Batch(lengths, torch.arange(len(lengths)), features, sentences=tuple(sentences)))
