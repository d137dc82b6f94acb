"""The labelled trees that satisfy rules, best first: exact, without opening most trees that break the rules.

The search opens the best tree of a distribution. If it breaks a rule, every tree that satisfies the rules lacks one of
the violation's parts. So the trees are split into trees that lack the first part, trees that lack the second and so on,
each a distribution in which that part is forbidden, and the search opens the best of these trees next (Lawler 1972;
Land and Doig 1960).
"""

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from treeparse.rules.rules import ArcPattern, CheckedTree, LabelSet, Rules, Violation, cost_of_broken
from treeparse.trees import LabeledCRF
from treeparse.trees.labels.sources import ForbiddenLabels


class SatisfyingTree(NamedTuple):
    """Heads and label ids of all nodes, as in tensors (-1 at node 0 and padding), and the score of a tree."""

    heads: tuple[int, ...]
    labels: tuple[int, ...]
    score: float


class NamedWords(NamedTuple):
    """The words of a sentence, their tags if known, and the names of labels by id."""

    forms: Sequence[str]
    upos: Sequence[str] | None
    names: Sequence[str]

    def first_violation(self, heads: Sequence[int], labels: Sequence[int], rules: Rules) -> Violation | None:
        """Return the first violation of the rules by a tree (all nodes, maybe padding), or None."""
        words = slice(1, len(self.forms) + 1)
        tree = CheckedTree(self.forms, heads[words], [self.names[label] for label in labels[words]], self.upos)
        return next(rules.broken(tree), None)


class Satisfying(NamedTuple):
    """The best trees that satisfy rules, best first; ``complete`` is False if the bound ended the search."""

    trees: list[SatisfyingTree]
    complete: bool


def satisfying_trees(
    p: LabeledCRF,
    items: Sequence[int],
    words: Sequence[NamedWords],
    rules: Rules,
    count: int,
    *,
    opened: int,
    check: Callable[[], None] = lambda: None,
) -> list[Satisfying]:
    """Return the best labelled trees of some items that satisfy the rules, exact and distinct.

    Args:
        p: the distribution of the trees of a flat batch; projective if the rules demand it.
        items: the indices of the sentences in the batch.
        words: the words of these sentences.
        rules: the rules.
        count: how many trees to find for a sentence.
        opened: how many trees of a sentence to open at most; one that breaks a rule counts as `cost_of_broken` says.
        check: called again and again; it may raise to end the search.
    """
    spaces = _Spaces(p, words[0].names) if words else None
    searches = [_Search(item, named, count, opened) for item, named in zip(items, words, strict=True)]
    while spaces is not None and (waiting := [search for search in searches if search.new]):
        check()
        requests = [(search, lacking) for search in waiting for lacking in search.new]
        best = spaces.best_trees([(search.item, lacking) for search, lacking in requests])
        for (search, lacking), tree in zip(requests, best, strict=True):
            search.take(lacking, tree)
        for search in waiting:
            search.resume(rules, spaces)
    return [Satisfying([*search.satisfying.values()], search.complete) for search in searches]


class _Search:
    """The search for the trees of one sentence in spaces of trees; the trees of a space lack some parts.

    Attributes:
        new: the spaces whose best tree the search needs next.
        satisfying: the trees that satisfy the rules.
        complete: whether these are ``count`` trees, or all.
    """

    def __init__(self, item: int, words: NamedWords, count: int, opened: int) -> None:
        self.item, self._words, self._count, self._left = item, words, count, opened
        self._cost = cost_of_broken(len(words.forms))
        self.new: list[frozenset[ArcPattern]] = [frozenset()]
        self.satisfying: dict[tuple[tuple[int, ...], tuple[int, ...]], SatisfyingTree] = {}
        self.complete = False
        self._seen = set(self.new)
        self._later: dict[frozenset[ArcPattern], Iterator[SatisfyingTree]] = {}  # the trees of a space after its best
        self._heap: list[tuple[float, int, frozenset[ArcPattern], SatisfyingTree]] = []
        self._number = itertools.count()

    def take(self, lacking: frozenset[ArcPattern], tree: SatisfyingTree | None) -> None:
        """Take the next tree of a space, or None if it has no more."""
        if tree is not None:
            heapq.heappush(self._heap, (-tree.score, next(self._number), lacking, tree))

    def resume(self, rules: Rules, spaces: "_Spaces") -> None:
        """Open the best trees until the search needs new spaces, or ends."""
        self.new = []
        while self._heap and self._left > 0 and not self.new:
            *_, lacking, tree = heapq.heappop(self._heap)
            broken = self._words.first_violation(tree.heads, tree.labels, rules)
            self._left -= 1 if broken is None else self._cost
            if broken is not None:
                self.new = [space for part in broken.parts if (space := lacking | {part}) not in self._seen]
                self._seen.update(self.new)
                continue
            self.satisfying.setdefault((tree.heads, tree.labels), tree)
            if len(self.satisfying) == self._count:
                self.complete = True
                return
            if lacking not in self._later:
                self._later[lacking] = spaces.later_trees(self.item, lacking, tree)
            self.take(lacking, next(self._later[lacking], None))
        self.complete = not self._heap and not self.new


class _Spaces:
    """The trees of a batch's items, in spaces that lack some parts."""

    def __init__(self, p: LabeledCRF, names: Sequence[str]) -> None:
        self._p, self._names, self._device = p, names, p.scores.device
        self._ids: dict[LabelSet | None, list[bool]] = {}

    def best_trees(self, spaces: Sequence[tuple[int, frozenset[ArcPattern]]]) -> list[SatisfyingTree | None]:
        """Return the best tree of each space, or None if it has none."""
        p = self._lacking(spaces)
        heads, labels = p.mode
        scores = p.score(heads, labels).tolist()
        trees = zip(heads.tolist(), labels.tolist(), scores, strict=True)
        return [SatisfyingTree(tuple(h), tuple(y), score) if max(h) >= 0 else None for h, y, score in trees]

    def later_trees(self, item: int, lacking: frozenset[ArcPattern], best: SatisfyingTree) -> Iterator[SatisfyingTree]:
        """Yield all trees of a space except its best, in order."""
        for heads, labels, scores in self._lacking([(item, lacking)]).best_first():
            tree = SatisfyingTree(tuple(heads[0].tolist()), tuple(labels[0].tolist()), float(scores[0]))
            if (tree.heads, tree.labels) != (best.heads, best.labels):
                yield tree

    def _lacking(self, spaces: Sequence[tuple[int, frozenset[ArcPattern]]]) -> LabeledCRF:
        """Return the distribution of each space."""
        p = self._p.of_items(self._tensor([item for item, _ in spaces]))
        parts = [(index, part) for index, (_, lacking) in enumerate(spaces) for part in lacking]
        if not parts:
            return p
        indices = self._tensor([index for index, _ in parts])
        heads = self._tensor([-1 if part.head is None else part.head for _, part in parts])
        dependents = self._tensor([part.word for _, part in parts])
        labels = self._tensor([self._members(part.labels) for _, part in parts])
        return p.forbidding(ForbiddenLabels(indices, heads, dependents, labels))

    def _members(self, labels: LabelSet | None) -> list[bool]:
        """Return which labels are in a set; None contains all."""
        if labels not in self._ids:
            self._ids[labels] = [labels is None or name in labels for name in self._names]
        return self._ids[labels]

    def _tensor(self, values: Sequence[Any]) -> Tensor:
        return torch.tensor(values, device=self._device)
