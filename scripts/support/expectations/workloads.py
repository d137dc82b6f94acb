"""The sentences over which ``reproduce_expectations`` times algorithms: lengths, random scores, features of arcs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.sentence import Sentence

BATCH_WORDS = 5000  # of a batch, as Parser.parse has it
Pair = tuple[str, str]  # the tags of a head and its dependent


@dataclass(frozen=True)
class Batch:
    """Padded sentences; features and targets only where an objective needs them."""

    scores: torch.Tensor  # (B, n+1, n+1) float64
    lengths: torch.Tensor  # (B,) int64
    features: torch.Tensor  # (B, n+1, n+1, R) float64
    targets: torch.Tensor  # (B, R) float64


def draw_lengths(stream: np.random.Generator, mean: float, count: int) -> list[int]:
    """Sentence lengths with a treebank's spread: a standard deviation of 0.7 means, where UD has 0.6 to 0.9."""
    return [max(1, round(length)) for length in stream.gamma(2, mean / 2, count)]


def random_batches(lengths: Sequence[int], *, seed: int, max_cells: int) -> list[Batch]:
    """Batches of sentences of these lengths, without features, of up to ``max_cells`` cells of score matrices.

    Sentences come by falling length, with N(0, 1) scores that depend on the seed and not on the batch.
    """
    stream = np.random.default_rng(seed)
    batches = []
    for places in BucketBatchSampler(lengths, max_words=BATCH_WORDS, max_squared=max_cells, step=1):
        own = torch.tensor([lengths[place] for place in places])
        size = int(own.max()) + 1
        scores = torch.zeros(len(places), size, size, dtype=torch.float64)
        for item, length in enumerate(own.tolist()):
            scores[item, : length + 1, : length + 1] = torch.from_numpy(stream.normal(size=(length + 1, length + 1)))
        none = torch.zeros(*scores.shape, 0, dtype=torch.float64)
        batches.append(Batch(scores, own, none, none[:, 0, 0]))
    return batches


def tagged_batches(sentences: Sequence[Sentence], count: int, *, seed: int, max_cells: int) -> list[Batch]:
    """Batches of these sentences, with features of arcs.

    Features are the ``count`` most frequent pairs of a head's and a dependent's tag, as in Druck, Mann and McCallum
    2009, and a sentence's targets are their rates a word times its words.
    """
    ordered = sorted(sentences, key=len, reverse=True)
    rates = pair_rates(ordered, count)
    batches, done = [], 0
    for batch in random_batches(list(map(len, ordered)), seed=seed, max_cells=max_cells):
        own = ordered[done : done + len(batch.lengths)]
        done += len(own)
        targets = batch.lengths.unsqueeze(1) * torch.tensor(list(rates.values()), dtype=torch.float64)
        batches.append(Batch(batch.scores, batch.lengths, pair_features(own, rates), targets))
    return batches


def pair_rates(sentences: Sequence[Sentence], count: int) -> dict[Pair, float]:
    """The most frequent tag pairs of trees, with their numbers over that of words."""
    pairs = Counter(
        (tags[head], tag)
        for sentence, tags in zip(sentences, map(node_tags, sentences), strict=True)
        for head, tag in zip(sentence.heads or (), tags[1:], strict=True)
    )
    return {pair: number / pairs.total() for pair, number in pairs.most_common(count)}


def pair_features(sentences: Sequence[Sentence], pairs: Mapping[Pair, float]) -> torch.Tensor:
    """Which arcs (B, n+1, n+1, R) join each of the tag pairs, as 0 and 1."""
    number = {pair: place for place, pair in enumerate(pairs)}
    size = max(map(len, sentences)) + 1
    features = torch.zeros(len(sentences), size, size, len(pairs), dtype=torch.float64)
    for item, tags in enumerate(map(node_tags, sentences)):
        for i, head in enumerate(tags):
            for j, dependent in enumerate(tags[1:], 1):
                if i != j and (head, dependent) in number:
                    features[item, i, j, number[head, dependent]] = 1.0
    return features


def node_tags(sentence: Sentence) -> list[str]:
    """The universal tags of all nodes."""
    return ["ROOT", *(sentence.upos or ())]
