"""The global reranker's model: a weight for each feature, and a tree's score is their sum."""

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
from treeparse.rerank.configurations import configurations, differing
from treeparse.rerank.features import NodeNames, features
from treeparse.sentence import Sentence


@dataclass(frozen=True)
class LogLinearConfig:
    """The settings of the global reranker.

    Attributes:
        bits: features are hashed to 2 ** bits weights.
        min_count: how often a word has to be in the training sentences to be told from others.
        upos: whether features name words by their UPOS, which lists must have then.
    """

    bits: int = 21
    min_count: int = 5
    upos: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 28:
            raise TreeparseError(f"bits is {self.bits}, but must be from 1 to 28.")


class Bags(NamedTuple):
    """The trees of a list: the features of the configurations in which they differ, and who has which."""

    features: Tensor  # (F,) ids
    starts: Tensor  # (C,) of each configuration's features
    members: Tensor  # (2, M) tree and configuration
    trees: int


class LogLinear(nn.Module):
    """Scores of trees, up to a constant for each list: features that all its trees have are left out."""

    def __init__(self, config: LogLinearConfig, words: Vocabulary) -> None:
        super().__init__()
        self.config, self.words = config, words
        self.counts = dict(zip(words.items, words.counts, strict=True))
        self.weights = nn.Parameter(torch.zeros(2**config.bits, 1))

    @classmethod
    def build(cls, config: LogLinearConfig, sentences: Sequence[Sentence]) -> Self:
        """All weights 0, for the words of these sentences."""
        words = (form.lower() for sentence in sentences for form in sentence.forms)
        return cls(config, Vocabulary.build(words, min_count=config.min_count))

    @classmethod
    def restore(cls, config: LogLinearConfig, vocabulary: dict[str, Any]) -> Self:
        """The model of which `vocabulary` was saved; its weights are to be loaded."""
        return cls(config, Vocabulary.from_json(vocabulary["words"]))

    def vocabulary(self) -> dict[str, Any]:
        """Plain data for :meth:`restore`."""
        return {"words": self.words.to_json()}

    def prepare(self, nbest: NBestList) -> Bags:
        """What :meth:`forward` reads of a list."""
        trees = [configurations(parse.heads, parse.labels) for parse in nbest.parses]
        parts, members = differing(trees)
        names = NodeNames.of(nbest.sentence.words, self.counts, upos=self.config.upos)
        bags = [self.ids(features(part, names)) for part in parts]
        starts = torch.tensor([0, *map(len, bags)]).cumsum(0)[:-1]
        ids = torch.tensor([each for bag in bags for each in bag], dtype=torch.int64)
        return Bags(ids, starts, torch.tensor(members, dtype=torch.int64).reshape(-1, 2).T, len(trees))

    def ids(self, names: Iterable[str]) -> list[int]:
        """The places of features among the weights."""
        mask = 2**self.config.bits - 1
        return [zlib.crc32(name.encode()) & mask for name in names]

    def forward(self, lists: Sequence[Bags]) -> Tensor:
        """The scores of all trees of the lists, one list behind the other."""
        ids = torch.cat([each.features for each in lists])
        starts, parts, trees, feature_count, part_count, tree_count = [], [], [], 0, 0, 0
        for each in lists:
            starts.append(each.starts + feature_count)
            trees.append(each.members[0] + tree_count)
            parts.append(each.members[1] + part_count)
            feature_count, part_count = feature_count + len(each.features), part_count + len(each.starts)
            tree_count += each.trees
        values = functional.embedding_bag(ids, self.weights, torch.cat(starts), mode="sum").squeeze(-1)
        return values.new_zeros(tree_count).index_add(0, torch.cat(trees), values[torch.cat(parts)])
