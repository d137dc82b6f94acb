"""The neural reranker's model: a Tree-LSTM over each tree of a list, above an encoder of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from treeparse.core import Batch, Sentence, TreeparseError
from treeparse.data.features import Features
from treeparse.data.parses import NBestList
from treeparse.data.vocabulary import Vocabulary
from treeparse.model.encoders import encoder_kind
from treeparse.nn import BiLSTMConfig, EncoderConfig
from treeparse.rerank.configurations import dependents_of, differing, upwards

UNKNOWN = "?"
LEFT, RIGHT = 0, 1
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
    """

    encoder: EncoderConfig = field(default_factory=small_encoder)
    size: int = 128
    label_size: int = 32
    dropout: float = 0.3

    def __post_init__(self) -> None:
        if min(self.size, self.label_size) < 1 or not 0 <= self.dropout < 1:
            raise TreeparseError("size and label_size must be 1 or more, and dropout from 0 to less than 1.")


class Forest(NamedTuple):
    """The trees of a list: their different subtrees, each once, and the arcs in which the trees differ."""

    sentence: Sentence
    nodes: Tensor  # (S,) of the subtrees, each behind those below it
    labels: Tensor  # (S,)
    heights: Tensor  # (S,)
    edges: Tensor  # (3, E) subtree, the one above it, and the side on which it hangs there
    arcs: Tensor  # (2, A) head and the subtree that hangs from it
    members: Tensor  # (2, M) tree and arc
    trees: int


class TreeNetwork(nn.Module):
    """Scores of trees, up to a constant for each list: a sum over arcs, each of which sees the whole subtree below it.

    A subtree's vector is that of a child-sum Tree-LSTM (Tai et al. 2015) with other weights for dependents on the left
    and on the right, from the encoder's vector of its top node and the label of the arc above. An arc's score comes
    from it, the encoder's vector of the head, and the direction and length.
    """

    def __init__(self, config: TreeNetworkConfig, features: Features, labels: Vocabulary) -> None:
        super().__init__()
        self.config, self.features, self.labels = config, features, labels
        size = config.size
        self.encoder = encoder_kind(config.encoder).module(features)
        self.nodes = nn.Linear(self.encoder.output_size, size)
        self.label_vectors = nn.Embedding(len(labels), config.label_size)
        self.inputs = nn.Linear(size + config.label_size, 4 * size)
        self.below = nn.ModuleList(nn.Linear(size, 3 * size, bias=False) for _ in (LEFT, RIGHT))
        self.forget = nn.Linear(size, size, bias=False)
        self.arc_head, self.arc_subtree = nn.Linear(self.encoder.output_size, size), nn.Linear(size, size, bias=False)
        self.distances = nn.Embedding(2 * FARTHEST + 1, size)
        self.score = nn.Linear(size, 1, bias=False)
        self.dropout = nn.Dropout(config.dropout)

    @classmethod
    def build(cls, config: TreeNetworkConfig, sentences: Sequence[Sentence]) -> Self:
        """A new network, for the words and the labels of these sentences."""
        features = encoder_kind(config.encoder).features(sentences, None)
        names = (label for sentence in sentences for label in sentence.labels or ())
        return cls(config, features, Vocabulary.build(names, specials=(UNKNOWN,), unknown=UNKNOWN))

    @classmethod
    def restore(cls, config: TreeNetworkConfig, vocabulary: dict[str, Any]) -> Self:
        """The network of which `vocabulary` was saved; its weights are to be loaded."""
        features = encoder_kind(config.encoder).restored(vocabulary["features"])
        return cls(config, features, Vocabulary.from_json(vocabulary["labels"]))

    def vocabulary(self) -> dict[str, Any]:
        """Plain data for :meth:`restore`."""
        return {"features": self.features.to_json(), "labels": self.labels.to_json()}

    def prepare(self, nbest: NBestList) -> Forest:
        """What :meth:`forward` reads of a list."""
        self.features.check(nbest.sentence.words)
        table: dict[tuple[int, int, tuple[int, ...]], int] = {}
        trees = [self._subtrees(parse.heads, parse.labels, table) for parse in nbest.parses]
        nodes, labels, heights, edges = [], [], [], []
        for place, (node, label, below) in enumerate(table):
            nodes.append(node)
            labels.append(label)
            heights.append(1 + max((heights[each] for each in below), default=-1))
            edges += [(each, place, LEFT if nodes[each] < node else RIGHT) for each in below]
        parts, members = differing(trees)
        return Forest(
            nbest.sentence.words,
            torch.tensor(nodes),
            torch.tensor(labels),
            torch.tensor(heights),
            _columns(edges, 3),
            _columns(parts, 2),
            _columns(members, 2),
            len(trees),
        )

    def _subtrees(
        self, heads: Sequence[int], labels: Sequence[str], table: dict[tuple[int, int, tuple[int, ...]], int]
    ) -> list[tuple[int, int]]:
        """The arcs of a tree, head and subtree; subtrees that are not in the table are added to it."""
        dependents, ids, arcs = dependents_of(heads), [0] * (len(heads) + 1), []
        for node in upwards(dependents)[:-1]:
            key = (node, self.labels.index(labels[node - 1]), tuple(ids[each] for each in dependents[node]))
            ids[node] = table.setdefault(key, len(table))
            arcs.append((heads[node - 1], ids[node]))
        return arcs

    def forward(self, lists: Sequence[Forest]) -> Tensor:
        """The scores of all trees of the lists, one list behind the other."""
        sentences = [each.sentence for each in lists]
        lengths = torch.tensor([*map(len, sentences)])
        batch = Batch(lengths, torch.arange(len(lists)), self.features(sentences), sentences=tuple(sentences))
        encoded = self.encoder(batch)
        rows = torch.arange(len(lists)) * encoded.shape[1]
        encoded = encoded.flatten(0, 1)
        nodes = torch.cat([each.nodes + row for each, row in zip(lists, rows, strict=True)])
        heads = torch.cat([each.arcs[0] + row for each, row in zip(lists, rows, strict=True)])
        subtrees = _shifted([each.edges[:2] for each in lists], [len(each.nodes) for each in lists])
        ends = _shifted([each.arcs[1] for each in lists], [len(each.nodes) for each in lists])
        trees = _shifted([each.members[0] for each in lists], [each.trees for each in lists])
        arcs = _shifted([each.members[1] for each in lists], [each.arcs.shape[1] for each in lists])
        words = self.dropout(self.nodes(encoded))[nodes]
        labels = self.label_vectors(torch.cat([each.labels for each in lists]))
        inputs = self.inputs(torch.cat([words, labels], -1))
        sides, heights = torch.cat([each.edges[2] for each in lists]), torch.cat([each.heights for each in lists])
        vectors = self._subtree_vectors(inputs, subtrees, sides, heights)
        # Nodes are numbered by rows of equal length, so that their difference is the distance.
        distances = (nodes[ends] - heads).clamp(-FARTHEST, FARTHEST) + FARTHEST
        hidden = (
            self.arc_head(encoded)[heads] + self.arc_subtree(self.dropout(vectors))[ends] + self.distances(distances)
        )
        scores = self.score(self.dropout(torch.relu(hidden))).squeeze(-1)
        return scores.new_zeros(sum(each.trees for each in lists)).index_add(0, trees, scores[arcs])

    def _subtree_vectors(self, inputs: Tensor, edges: Tensor, sides: Tensor, heights: Tensor) -> Tensor:
        """``(S, size)``: the Tree-LSTM, from what each subtree's top node puts in; all of one height at once."""
        size = self.config.size
        gates = inputs.new_zeros(len(inputs), 3 * size)  # what comes from below, by the subtree above
        carried = inputs.new_zeros(len(inputs), size)
        vectors, order = [], []
        lower, upper = edges
        for height in range(int(heights.max()) + 1 if len(heights) else 0):
            rows = (heights == height).nonzero().squeeze(-1)
            enter, leave, update = (inputs[rows, : 3 * size] + gates[rows]).chunk(3, -1)
            cells = carried[rows] + torch.sigmoid(enter) * torch.tanh(update)
            vector = torch.sigmoid(leave) * torch.tanh(cells)
            vectors.append(vector)
            order.append(rows)
            places = torch.full((len(inputs),), -1)
            places[rows] = torch.arange(len(rows))
            out = places[lower] >= 0
            below, above, side = places[lower[out]], upper[out], sides[out]
            for which, weights in enumerate(self.below):
                mine = side == which
                gates = gates.index_add(0, above[mine], weights(vector)[below[mine]])
            kept = torch.sigmoid(self.forget(vector)[below] + inputs[above, 3 * size :])
            carried = carried.index_add(0, above, kept * cells[below])
        if not vectors:
            return inputs.new_zeros(0, size)
        return torch.cat(vectors)[torch.cat(order).argsort()]


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> Tensor:
    return torch.tensor(rows, dtype=torch.int64).reshape(-1, width).T


def _shifted(parts: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Places within each list as places within all of them, one behind the other."""
    starts = torch.tensor([0, *sizes]).cumsum(0)
    return torch.cat([part + start for part, start in zip(parts, starts, strict=False)], -1)
