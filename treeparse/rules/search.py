"""The labelled trees that satisfy rules, best first: exact, and without a look at most of those that do not.

Of the trees of a distribution the best one is found. If it breaks a rule, no tree that has all the parts of that
violation satisfies the rules: every one that does lacks one of the parts. So the trees are split into those that lack
the first part, those that lack the second and so on, each a distribution in which that part is forbidden, and the best
of these trees is looked at next (Lawler 1972; Land and Doig 1960).
"""

import heapq
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

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


def satisfying_trees(p: LabeledCRF, item: int, words: Words, rules: Rules, count: int, *, opened: int) -> Satisfying:
    """The best labelled trees that satisfy the rules, exact and distinct.

    Args:
        p: the distribution of the trees of a flat batch; projective where the rules want that.
        item: the place of the sentence in it.
        words: the sentence.
        rules: the rules.
        count: trees that are wanted.
        opened: trees that are looked at, at most.
    """
    search = _Search(p.of_items(torch.tensor([item], device=p.scores.device)), words.names)
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], SatisfyingTree] = {}
    for _ in range(opened):
        next_one = search.next_tree()
        if next_one is None:
            return Satisfying([*found.values()], complete=True)
        space, tree = next_one
        broken = words.first_violation(tree.heads, tree.labels, rules)
        if broken is None:
            found.setdefault((tree.heads, tree.labels), tree)
            if len(found) == count:
                return Satisfying([*found.values()], complete=True)
            search.go_on(space)
        else:
            for part in broken.parts:
                search.add(space | {part})
    return Satisfying([*found.values()], complete=False)


class _Search:
    """The spaces of trees that are left, each by the parts that its trees lack, in order of their best trees."""

    def __init__(self, p: LabeledCRF, names: Sequence[str]) -> None:
        self._p, self._names = p, names
        self._spaces: dict[frozenset[Part], Iterator[SatisfyingTree]] = {}
        self._heap: list[tuple[float, int, frozenset[Part], SatisfyingTree]] = []
        self._number = itertools.count()
        self.add(frozenset())

    def add(self, lacking: frozenset[Part]) -> None:
        """Search the trees that lack these parts, too, unless they are searched already."""
        if lacking not in self._spaces:
            forbidden = [self._forbidden(part) for part in lacking]
            self._spaces[lacking] = _best_first(self._p.forbidding(forbidden) if forbidden else self._p)
            self.go_on(lacking)

    def go_on(self, space: frozenset[Part]) -> None:
        """Make the next tree of a space one of those to look at."""
        tree = next(self._spaces[space], None)
        if tree is not None:
            heapq.heappush(self._heap, (-tree.score, next(self._number), space, tree))

    def next_tree(self) -> tuple[frozenset[Part], SatisfyingTree] | None:
        """The best tree that was not looked at, and a space that it is from; None where there is none."""
        return heapq.heappop(self._heap)[2:] if self._heap else None

    def _forbidden(self, part: Part) -> ForbiddenLabels:
        labels = [part.labels is None or name in part.labels for name in self._names]
        return ForbiddenLabels(0, part.head, part.word, torch.tensor(labels, device=self._p.scores.device))


def _best_first(p: LabeledCRF) -> Iterator[SatisfyingTree]:
    """The trees of a batch of one: the best tree alone is found by less work than a list."""
    heads, labels = p.mode
    if bool((heads < 0).all()):
        return
    best = _plain(heads, labels, p.score(heads, labels))
    yield best
    for each in p.best_first():
        tree = _plain(*each)
        if (tree.heads, tree.labels) != (best.heads, best.labels):
            yield tree


def _plain(heads: Tensor, labels: Tensor, scores: Tensor) -> SatisfyingTree:
    return SatisfyingTree(tuple(heads[0].tolist()), tuple(labels[0].tolist()), float(scores[0]))
