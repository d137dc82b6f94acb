"""Batches of scored graphs: random ones, and a treebank's sentences as a parser scores their arcs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.model import Parser
from treeparse.sentence import Sentence

Array = NDArray[np.float64]
Weights = Literal["uniform", "normal"]
BATCH_WORDS = 1000  # of a parser's batch


@dataclass(frozen=True)
class Scored:
    """A batch of sentences of like length as a parser scores their arcs."""

    scores: NDArray[np.float64]  # (B, n+1, n+1)
    lengths: NDArray[np.int64]  # (B,)


def random_graphs(words: int, count: int, weights: Weights, seed: int) -> Scored:
    """Graphs of so many words: weights uniform between 0 and 1, as [Samp]'s authors have them, or N(0, 1) scores."""
    stream = np.random.default_rng(seed)
    shape = count, words + 1, words + 1
    scores = stream.normal(size=shape) if weights == "normal" else np.log1p(-stream.random(shape))
    return Scored(scores, np.full(count, words))


@torch.inference_mode()
def scored_batches(parser: Parser, sentences: Sequence[Sentence]) -> Iterator[Scored]:
    """All sentences with the parser's scores of arcs, without the labels', each in one batch of like lengths."""
    for places in BucketBatchSampler(list(map(len, sentences)), max_words=BATCH_WORDS):
        batch = parser.collate([sentences[place] for place in places])
        scores = parser.distribution(batch).base.scores
        yield Scored(scores.double().numpy(), batch.lengths.numpy())


def by_length(batches: Iterable[Scored], bounds: Sequence[int], at_most: int) -> dict[str, Scored]:
    """The sentences of up to each bound in words, but longer than the one before; the first ``at_most`` of each."""
    found: dict[str, list[Array]] = {}
    ranges = {f"{low + 1} - {high}": (low, high) for low, high in zip([0, *bounds], bounds, strict=False)}
    for batch in batches:
        for scores, n in zip(batch.scores, batch.lengths.tolist(), strict=True):
            for name, (low, high) in ranges.items():
                if low < n <= high:
                    found.setdefault(name, []).append(scores[: n + 1, : n + 1])
    return {name: padded(found[name][:at_most]) for name in ranges if name in found}


def padded(items: Sequence[Array]) -> Scored:
    """Score matrices of any sizes as one batch."""
    lengths = np.array([len(item) - 1 for item in items])
    scores = np.zeros((len(items), lengths.max() + 1, lengths.max() + 1))
    for place, item in enumerate(items):
        scores[place, : len(item), : len(item)] = item
    return Scored(scores, lengths)
