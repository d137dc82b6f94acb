"""The reranker's model: a weight for each feature, and a tree's score is their sum."""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.rerank.tree_features import NodeNames, columns, configurations, differing, features, shifted
from treeparse.sentence import Sentence


@dataclass(frozen=True)
class LogLinearConfig:
    """The settings of a reranker's model.

    Attributes:
        bits: the number of weights is 2 ** bits; features are hashed to them.
        min_count: the least count of a word in the training sentences that features name.
        upos: whether features name words by their UPOS; then lists must have UPOS.
    """

    bits: int = 21
    min_count: int = 5
    upos: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 28:
            raise TreeparseError(f"bits must be an integer from 1 to 28, got {self.bits}.")


class Bags(NamedTuple):
    """The trees of a list: features of the configurations in which trees differ, and each tree's configurations."""

    features: Tensor  # (F,) ids
    starts: Tensor  # (C,) of each configuration's features
    members: Tensor  # (2, M) tree and configuration
    trees: int


class LogLinear(nn.Module):
    """Scores trees, up to a constant for each list: features that all trees of a list have are left out."""

    config: LogLinearConfig
    words: Vocabulary

    def __init__(self, config: LogLinearConfig, words: Vocabulary) -> None:
        super().__init__()
        self.config, self.words = config, words
        self.counts: dict[str, int] = dict(zip(words.items, words.counts, strict=True))
        self.weights: nn.Parameter = nn.Parameter(torch.zeros(2**config.bits, 1))

    @classmethod
    def build(cls, config: LogLinearConfig, sentences: Sequence[Sentence]) -> Self:
        """Return a model for the words of these sentences, with all weights 0."""
        words = (form.lower() for sentence in sentences for form in sentence.forms)
        return cls(config, Vocabulary.build(words, min_count=config.min_count))

    @classmethod
    def restore(cls, config: LogLinearConfig, vocabulary: dict[str, Any]) -> Self:
        """Return the model whose `vocabulary` was saved; its weights must still be loaded."""
        return cls(config, Vocabulary.from_json(vocabulary["words"]))

    def vocabulary(self) -> dict[str, Any]:
        """Return plain data for ``restore``."""
        return {"words": self.words.to_json()}

    def prepare(self, nbest: NBestList) -> Bags:
        """Return a list in the form that ``forward`` reads."""
        trees = [configurations(parse.heads, parse.labels) for parse in nbest.parses]
        parts, members = differing(trees)
        names = NodeNames.of(nbest.sentence.words, self.counts, upos=self.config.upos)
        bags = [self.ids(features(part, names)) for part in parts]
        starts = torch.tensor([0, *map(len, bags)]).cumsum(0)[:-1]
        ids = torch.tensor([each for bag in bags for each in bag], dtype=torch.int64)
        return Bags(ids, starts, columns(members, 2), len(trees))

    def ids(self, names: Iterable[str]) -> list[int]:
        """Return the indices of features among the weights."""
        mask = 2**self.config.bits - 1
        return [zlib.crc32(name.encode()) & mask for name in names]

    def forward(self, lists: Sequence[Bags]) -> Tensor:
        """Return the scores ``(trees,)`` of all trees of the lists, list after list."""
        ids, counts = torch.cat([each.features for each in lists]), [each.trees for each in lists]
        starts = shifted([each.starts for each in lists], [len(each.features) for each in lists])
        of_trees, of_parts = zip(*(each.members for each in lists), strict=True)
        trees, parts = shifted(of_trees, counts), shifted(of_parts, [len(each.starts) for each in lists])
        values = functional.embedding_bag(ids, self.weights, starts, mode="sum").squeeze(-1)
        return values.new_zeros(sum(counts)).index_add(0, trees, values[parts])
