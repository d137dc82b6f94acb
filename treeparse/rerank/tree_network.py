"""The neural reranker's model: a Tree-LSTM over each tree of a list, above an encoder of its own or a parser's."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self, get_args

import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import Features
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError, name_among
from treeparse.model.encoders import encoder_kind
from treeparse.nn import BiLSTMConfig, EncoderConfig
from treeparse.rerank.forests import Forest
from treeparse.rerank.parser_vectors import ParserVectors
from treeparse.rerank.tree_lstm import TreeLSTM
from treeparse.sentence import Sentence
from treeparse.setting_fields import added_setting

Vectors = Literal["own", "parser", "both"]
VECTORS: tuple[Vectors, ...] = get_args(Vectors)
UNKNOWN = "?"
FARTHEST = 8  # words between head and dependent, from which on they are all the same


def small_encoder() -> BiLSTMConfig:
    """An encoder that trains in a minute or so."""
    return BiLSTMConfig(
        min_count=2, word_size=64, char_size=24, char_filters=32, char_widths=(3,), hidden_size=96, layers=1,
        word_dropout=0.2, embedding_dropout=0.3, dropout=0.3,
    )  # fmt: skip


@dataclass(frozen=True)
class TreeNetworkConfig:
    """The settings of the neural reranker.

    Attributes:
        encoder: what gives the nodes their vectors; trained with all else, so that no base parser's own view of its
            training sentences misleads.
        size: of the vectors of nodes and subtrees.
        label_size: of the vectors of labels.
        dropout: of the vectors of nodes, and of subtrees where they are scored.
        vectors: whether nodes have the vectors of this "own" encoder, those of a trained "parser", which stay as they
            are, or "both".
        parser: the folder of that parser, or of its run.
        parser_digest: of its weights; set by them when the network is built, and saved: no other parser will do.
    """

    encoder: EncoderConfig = field(default_factory=small_encoder)
    size: int = 128
    label_size: int = 32
    dropout: float = 0.3
    vectors: Vectors = added_setting("own", before="own")
    parser: str = added_setting("", before="")
    parser_digest: str = added_setting("", before="")

    def __post_init__(self) -> None:
        name_among(self.vectors, VECTORS, f"There are no vectors {self.vectors!r:.60}")
        if (self.vectors == "own") != (self.parser == ""):
            raise TreeparseError(
                f'vectors is "{self.vectors}" and parser "{self.parser}": name a parser\'s folder exactly where its '
                "vectors are read."
            )
        if min(self.size, self.label_size) < 1 or not 0 <= self.dropout < 1:
            raise TreeparseError("size and label_size must be 1 or more, and dropout from 0 to less than 1.")

    def parser_vectors(self) -> ParserVectors | None:
        """Those of the parser, None where none are read; raises where it is missing, or another one."""
        return ParserVectors.load(self.parser, self.parser_digest) if self.parser else None


class Prepared(NamedTuple):
    """A list, ready to be scored."""

    sentence: Sentence
    forest: Forest


class TreeNetwork(nn.Module):
    """Scores of trees, up to a constant for each list: a sum over arcs, each of which sees the whole subtree below it.

    A `TreeLSTM` gives each subtree its vector, from that of its top node by the encoder and the label of the arc above.
    An arc's score comes from that, the encoder's vector of the head, and the direction and length.

    Args:
        config: the settings.
        features: what the own encoder reads; None without one.
        labels: those that are told apart.
        parser: what gives a parser's vectors; None where none are read.
    """

    def __init__(
        self, config: TreeNetworkConfig, features: Features | None, labels: Vocabulary, parser: ParserVectors | None
    ) -> None:
        super().__init__()
        if parser is not None:
            config = replace(config, parser=parser.folder, parser_digest=parser.digest)
        self.config, self.features, self.labels, self.parser = config, features, labels, parser
        size = config.size
        self.encoder = None if features is None else encoder_kind(config.encoder).module(features)
        read = sum((0 if self.encoder is None else self.encoder.output_size, 0 if parser is None else parser.size))
        self.words = nn.Linear(read, size)
        self.label_vectors = nn.Embedding(len(labels), config.label_size)
        self.trees = TreeLSTM(size + config.label_size, size)
        self.arc_head, self.arc_subtree = nn.Linear(read, size), nn.Linear(size, size, bias=False)
        self.distances = nn.Embedding(2 * FARTHEST + 1, size)
        self.score = nn.Linear(size, 1, bias=False)
        self.dropout = nn.Dropout(config.dropout)

    @classmethod
    def build(cls, config: TreeNetworkConfig, sentences: Sequence[Sentence]) -> Self:
        """A new network, for the words and the labels of these sentences; raises where its parser cannot be loaded."""
        parser = config.parser_vectors()
        features = encoder_kind(config.encoder).features(sentences, None) if config.vectors != "parser" else None
        names = (label for sentence in sentences for label in sentence.labels or ())
        return cls(config, features, Vocabulary.build(names, specials=(UNKNOWN,), unknown=UNKNOWN), parser)

    @classmethod
    def restore(
        cls, config: TreeNetworkConfig, vocabulary: dict[str, Any], parser: ParserVectors | None = None
    ) -> Self:
        """The network of which `vocabulary` was saved, over its parser's vectors; its weights are to be loaded."""
        kind = encoder_kind(config.encoder)
        features = kind.restored(vocabulary["features"]) if config.vectors != "parser" else None
        return cls(config, features, Vocabulary.from_json(vocabulary["labels"]), parser)

    def vocabulary(self) -> dict[str, Any]:
        """Plain data for :meth:`restore`."""
        return {
            "features": None if self.features is None else self.features.to_json(),
            "labels": self.labels.to_json(),
        }

    def prepare(self, nbest: NBestList) -> Prepared:
        """What :meth:`forward` reads of a list."""
        words = replace(nbest.sentence.words, heads=None, labels=None, allowed=None)
        for reader in (self.features, self.parser):
            if reader is not None:
                reader.check(words)
        return Prepared(words, Forest.of(nbest, self.labels.index))

    def forward(self, lists: Sequence[Prepared]) -> Tensor:
        """The scores of all trees of the lists, one list behind the other."""
        encoded = self._encoded([each.sentence for each in lists])
        forest = Forest.joined([each.forest for each in lists], encoded.shape[1])
        encoded = encoded.flatten(0, 1)
        words = self.dropout(self.words(encoded))[forest.nodes]
        vectors = self.trees(forest, torch.cat([words, self.label_vectors(forest.labels)], -1))
        (heads, ends), (trees, arcs) = forest.arcs, forest.members
        # Nodes are numbered through, sentence after sentence, so that their difference is the distance.
        distances = (forest.nodes[ends] - heads).clamp(-FARTHEST, FARTHEST) + FARTHEST
        subtrees = self.arc_subtree(self.dropout(vectors))[ends]
        hidden = torch.relu(self.arc_head(encoded)[heads] + subtrees + self.distances(distances))
        scores = self.score(self.dropout(hidden)).squeeze(-1)
        return scores.new_zeros(forest.trees).index_add(0, trees, scores[arcs])

    def _encoded(self, sentences: Sequence[Sentence]) -> Tensor:
        """``(B, n+1, D)``: the vectors of the nodes."""
        parts: list[Tensor] = []
        if self.encoder is not None and self.features is not None:
            lengths, features = torch.tensor([*map(len, sentences)]), self.features(sentences)
            batch = Batch(lengths, torch.arange(len(lengths)), features, sentences=tuple(sentences))
            parts.append(self.encoder(batch))
        if self.parser is not None:
            parts.append(self.dropout(self.parser(sentences)))
        return torch.cat(parts, -1)
