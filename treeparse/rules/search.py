"""The labelled trees that satisfy rules, best first: exact, and without a look at most of those that do not.

Of the trees of a distribution the best one is found. If it breaks a rule, no tree that has all the parts of that
violation satisfies the rules: every one that does lacks one of the parts. So the trees are split into those that lack
the first part, those that lack the second and so on, each a distribution in which that part is forbidden, and the best
of these trees is looked at next (Lawler 1972; Land and Doig 1960).
"""

import heapq
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from treeparse.rules.labels import LabelSet
from treeparse.rules.rules import Rules
from treeparse.rules.violations import Part, Tree, Violation
from treeparse.trees import LabeledCRF
from treeparse.trees.labels.sources import ForbiddenLabels


class SatisfyingTree(NamedTuple):
    """A labelled tree as in tensors: heads and label ids of all nodes, -1 at node 0 and padding; its score."""

    heads: tuple[int, ...]
    labels: tuple[int, ...]
    score: float


class Words(NamedTuple):
    """A sentence as the search sees it: its words, their tags where they are known, and the labels by their ids."""

    forms: Sequence[str]
    upos: Sequence[str] | None
    names: Sequence[str]

    def first_violation(self, heads: Sequence[int], labels: Sequence[int], rules: Rules) -> Violation | None:
        """What the rules say first of a tree, of all nodes and perhaps padding; None where it satisfies them."""
        words = slice(1, len(self.forms) + 1)
        tree = Tree(self.forms, heads[words], [self.names[label] for label in labels[words]], self.upos)
        return next(rules.broken(tree), None)


class Satisfying(NamedTuple):
    """The best trees that satisfy rules, best first; ``complete`` unless more would be there beyond the bound."""

    trees: list[SatisfyingTree]
    complete: bool


def satisfying_trees(
    p: LabeledCRF, items: Sequence[int], words: Sequence[Words], rules: Rules, count: int, *, opened: int
) -> list[Satisfying]:
    """The best labelled trees of some items that satisfy the rules, exact and distinct.

    Args:
        p: the distribution of the trees of a flat batch; projective where the rules want that.
        items: the places of the sentences in it.
        words: these sentences.
        rules: the rules.
        count: trees of a sentence that are wanted.
        opened: trees of a sentence that are looked at, at most.
    """
    spaces = _Spaces(p, words[0].names) if words else None
    searches = [_Search(item, each, count, opened) for item, each in zip(items, words, strict=True)]
    while spaces is not None and (waiting := [search for search in searches if search.new]):
        wanted = [(search, lacking) for search in waiting for lacking in search.new]
        best = spaces.best_trees([(search.item, lacking) for search, lacking in wanted])
        for (search, lacking), tree in zip(wanted, best, strict=True):
            search.take(lacking, tree)
        for search in waiting:
            search.go_on(rules, spaces)
    return [Satisfying([*search.found.values()], search.complete) for search in searches]


class _Search:
    """The search for the trees of one sentence: spaces of trees, each of those that lack some parts.

    Attributes:
        new: the spaces whose best tree is wanted to go on.
        found: the trees that satisfy the rules.
        complete: whether these are all that were wanted or are there.
    """

    def __init__(self, item: int, words: Words, count: int, opened: int) -> None:
        self.item, self._words, self._count, self._left = item, words, count, opened
        self.new: list[frozenset[Part]] = [frozenset()]
        self.found: dict[tuple[tuple[int, ...], tuple[int, ...]], SatisfyingTree] = {}
        self.complete = False
        self._met = set(self.new)
        self._later: dict[frozenset[Part], Iterator[SatisfyingTree]] = {}  # the trees of a space behind the best
        self._heap: list[tuple[float, int, frozenset[Part], SatisfyingTree]] = []
        self._number = itertools.count()

    def take(self, lacking: frozenset[Part], tree: SatisfyingTree | None) -> None:
        """The next tree of a space is this one, None if there is none."""
        if tree is not None:
            heapq.heappush(self._heap, (-tree.score, next(self._number), lacking, tree))

    def go_on(self, rules: Rules, spaces: "_Spaces") -> None:
        """Look at the best trees until new spaces are to be searched, or all is done."""
        self.new = []
        while self._heap and self._left and not self.new:
            *_, lacking, tree = heapq.heappop(self._heap)
            self._left -= 1
            broken = self._words.first_violation(tree.heads, tree.labels, rules)
            if broken is not None:
                self.new = [space for part in broken.parts if (space := lacking | {part}) not in self._met]
                self._met.update(self.new)
                continue
            self.found.setdefault((tree.heads, tree.labels), tree)
            if len(self.found) == self._count:
                self.complete = True
                return
            if lacking not in self._later:
                self._later[lacking] = spaces.later_trees(self.item, lacking, tree)
            self.take(lacking, next(self._later[lacking], None))
        self.complete = not self._heap and not self.new


class _Spaces:
    """The trees of a batch's items that lack some parts."""

    def __init__(self, p: LabeledCRF, names: Sequence[str]) -> None:
        self._p, self._names, self._device = p, names, p.scores.device
        self._ids: dict[LabelSet | None, list[bool]] = {}

    def best_trees(self, spaces: Sequence[tuple[int, frozenset[Part]]]) -> list[SatisfyingTree | None]:
        """The best tree of each space; None where it has none."""
        p = self._lacking(spaces)
        heads, labels = p.mode
        scores = p.score(heads, labels).tolist()
        trees = zip(heads.tolist(), labels.tolist(), scores, strict=True)
        return [SatisfyingTree(tuple(h), tuple(y), score) if max(h) >= 0 else None for h, y, score in trees]

    def later_trees(self, item: int, lacking: frozenset[Part], best: SatisfyingTree) -> Iterator[SatisfyingTree]:
        """All trees of a space but its best, in order."""
        for heads, labels, scores in self._lacking([(item, lacking)]).best_first():
            tree = SatisfyingTree(tuple(heads[0].tolist()), tuple(labels[0].tolist()), float(scores[0]))
            if (tree.heads, tree.labels) != (best.heads, best.labels):
                yield tree

    def _lacking(self, spaces: Sequence[tuple[int, frozenset[Part]]]) -> LabeledCRF:
        """The distribution of each space."""
        p = self._p.of_items(self._tensor([item for item, _ in spaces]))
        parts = [(place, part) for place, (_, lacking) in enumerate(spaces) for part in lacking]
        if not parts:
            return p
        places = self._tensor([place for place, _ in parts])
        heads = self._tensor([-1 if part.head is None else part.head for _, part in parts])
        dependents = self._tensor([part.word for _, part in parts])
        labels = self._tensor([self._members(part.labels) for _, part in parts])
        return p.forbidding(ForbiddenLabels(places, heads, dependents, labels))

    def _members(self, labels: LabelSet | None) -> list[bool]:
        """Which labels are in a set; all in None."""
        if labels not in self._ids:
            self._ids[labels] = [labels is None or name in labels for name in self._names]
        return self._ids[labels]

    def _tensor(self, values: Sequence[Any]) -> Tensor:
        return torch.tensor(values, device=self._device)
