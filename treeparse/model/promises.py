"""Promises about parses: thresholds of sets of heads and of parts of trees, from trees that a model was not trained on.

Training fits the thresholds of a few shares of errors to its dev set, and a model's config keeps them; other shares and
other trees need the trees themselves.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, get_args

from treeparse.errors import TreeparseError
from treeparse.metrics.conformal import conformal_threshold, conformal_trees
from treeparse.model.inference.any_parser import AnyParser
from treeparse.model.parser import Parse, Parser
from treeparse.sentence import EMPTY, Sentence

Promise = Literal["heads", "sentences", "words"]
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)


class HeldOut:
    """What a model says of the trees of sentences that it was not trained on.

    Args:
        model: the model.
        sentences: sentences with trees.
        options: of parsing, ``batch_words`` and ``treebank``.

    Attributes:
        head_probs: the probability of each word's own arc.
        certainties: of the words of each sentence's parse.
        right: whether the heads and labels of the parses are right.
    """

    def __init__(self, model: AnyParser, sentences: Sequence[Sentence], **options: Any) -> None:
        scored = model.score_trees(sentences, **options)
        self.head_probs: list[float] = [*chain.from_iterable(parse.arc_probs or () for parse in scored)]
        bare = [sentence.without_tree() for sentence in sentences]
        parses = model.parse(bare, certain=0.0, **options)
        self.certainties: list[tuple[float, ...]] = [parse.certainties or () for parse in parses]
        self.right: list[list[bool]] = [_right(*pair) for pair in zip(sentences, parses, strict=True)]

    def threshold(self, promise: Promise, alpha: float, delta: float | None = None) -> float:
        """Return the threshold of `conformal_threshold` for sets of ``heads``, or that of `conformal_trees`."""
        if promise == "heads":
            return conformal_threshold(self.head_probs, alpha)
        return conformal_trees(self.certainties, self.right, alpha, of=promise, delta=delta)


def _right(gold: Sentence, parse: Parse) -> list[bool]:
    """Return whether each word's head and label are right; an unknown label is."""
    labels = gold.labels or (EMPTY,) * len(gold)
    pairs = zip(zip(gold.heads or (), labels, strict=True), zip(parse.heads, parse.labels, strict=True), strict=True)
    return [head == own_head and label in (EMPTY, own_label) for (head, label), (own_head, own_label) in pairs]


def fit_promises(parser: Parser, sentences: Sequence[Sentence], *, batch_words: int = 5000) -> None:
    """Set the thresholds of a parser's config for some shares of errors, where sentences are enough for a promise.

    Trees without probabilities have none.
    """
    thresholds: dict[str, dict[str, float]] = {}
    if parser.config.tree_family.has_sums:
        held_out = HeldOut(parser, sentences, batch_words=batch_words)
        for promise in get_args(Promise):
            found = {f"{alpha:g}": held_out.threshold(promise, alpha) for alpha in SHARES}
            thresholds[promise] = {
                alpha: _rounded(threshold, up=promise != "heads")
                for alpha, threshold in found.items()
                if math.isfinite(threshold)
            }
    parser.config = replace(parser.config, promises=thresholds)


def _rounded(threshold: float, *, up: bool) -> float:
    """Round to four digits, to the side on which the promise holds: other machines have other last digits."""
    if not threshold:
        return 0.0
    shift = 10.0 ** (3 - math.floor(math.log10(threshold)))
    return float(f"{(math.ceil if up else math.floor)(threshold * shift) / shift:.4g}")


def kept_threshold(model: AnyParser, promise: Promise, alpha: float) -> float:
    """Return the threshold of a promise that a model's config keeps, for ``alpha`` or else the next lower share.

    Raises:
        TreeparseError: the config has none.
    """
    kept = model.networks[0].config.promises.get(promise, {}) if len(model.networks) == 1 else {}
    shares = [share for share in map(float, kept) if share <= alpha * (1 + 1e-9)]
    if not shares:
        has = f"those of {', '.join(kept)}" if kept else "none"
        raise TreeparseError(
            f"There is no threshold for a share of {alpha:g} with the model, which has {has}: name by --held-out trees "
            "that it was not trained on, or calibrate the model with such trees."
        )
    return kept[f"{max(shares):g}"]
