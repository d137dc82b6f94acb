"""Lists of trees that satisfy rules: search finds the best ones, rejection draws random ones."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from treeparse.rules import NamedWords, RuleSearch, RuleTally, SatisfyingTree, cost_of_broken, satisfying_trees
from treeparse.sentence import EMPTY, Sentence
from treeparse.trees import LabeledCRF

FIRST_ROUND = 16  # trees of an item; rounds double
LONGEST_ROUND = 1024

Row = tuple[list[int], list[int]]  # heads and labels of the nodes of one tree, with padding


@dataclass(frozen=True)
class RuledBatch:
    """The words of a batch, as rules read them, and the search for trees that satisfy the rules.

    ``check`` is called again and again in a search; it may raise to end it.
    """

    search: RuleSearch
    words: Sequence[NamedWords]
    check: Callable[[], None]

    @classmethod
    def of(
        cls,
        search: RuleSearch,
        sentences: Sequence[Sentence],
        names: Sequence[str],
        tags: list[Sequence[str]] | None,
        check: Callable[[], None],
    ) -> "RuledBatch":
        """Return the batch; a word without UPOS gets its tag in ``tags``, whose rows start with the root."""
        words = []
        for index, sentence in enumerate(sentences):
            likeliest = None if tags is None else tags[index][1 : len(sentence) + 1]
            words.append(NamedWords(sentence.forms, _upos(sentence, likeliest), names))
        return cls(search, words, check)

    def is_fine(self, item: int, row: Row) -> bool:
        """Whether a tree of an item satisfies the rules."""
        return self.words[item].first_violation(*row, self.search.rules) is None


class ItemList(NamedTuple):
    """The trees of an item: their heads and labels, and their scores."""

    rows: list[Row]
    scores: list[float]


def mended_lists(lists: Sequence[ItemList], p: LabeledCRF, count: int, batch: RuledBatch) -> list[ItemList]:
    """Return each item's best trees that satisfy the rules, ``count`` or fewer.

    An item for which the search finds none within its bound keeps its best tree.

    Args:
        lists: the best of all trees.
        p: the distribution of all trees.
        count: the greatest number of trees of an item.
        batch: the sentences and the rules.
    """
    result, search = list(lists), batch.search
    broken = [i for i, trees in enumerate(lists) if not all(batch.is_fine(i, row) for row in trees.rows)]
    words = [batch.words[item] for item in broken]
    opened = search.opened + count
    mended = satisfying_trees(p, broken, words, search.rules, count, opened=opened, check=batch.check)
    for item, (trees, complete) in zip(broken, mended, strict=True):
        result[item] = _item_list(trees) if trees else ItemList(lists[item].rows[:1], lists[item].scores[:1])
        search.tally.add(RuleTally(broken=1, mended=int(bool(trees) and complete), unfinished=int(not complete)))
    search.tally.add(RuleTally(sentences=len(lists)))
    return result


class IndependentDraws:
    """Draw independent trees.

    Args:
        p: the distribution of each item of a flat batch.
        generators: one for each item.
    """

    def __init__(self, p: LabeledCRF, generators: Sequence[Generator]) -> None:
        self._p, self._generators, self._size = p, generators, FIRST_ROUND

    def next_round(self, items: Sequence[int]) -> list[list[Row]]:
        """Draw more trees of some items, all of which took part in the previous rounds."""
        heads, labels = _some(self._p, items).sample((self._size,), generator=[self._generators[i] for i in items])
        self._size = min(2 * self._size, LONGEST_ROUND)
        return _rows(heads, labels)


class DistinctDraws:
    """Draw trees without replacement: each round draws the trees of the previous one again, and more.

    Args:
        p: the distribution of each item of a flat batch.
        generators: new generators of items, always in the same state.
        most: the greatest number of trees of an item.
    """

    def __init__(self, p: LabeledCRF, generators: Callable[[Sequence[int]], list[Generator]], most: int) -> None:
        self._p, self._generators, self._most = p, generators, most
        self._drawn, self._size = 0, min(FIRST_ROUND, most)

    def next_round(self, items: Sequence[int]) -> list[list[Row]]:
        """Draw more trees of some items; none if the items have no more."""
        if self._drawn == self._most:
            return [[] for _ in items]
        lists = _some(self._p, items).sample_without_replacement(self._size, generator=self._generators(items))
        new = [part[self._drawn :] for part in lists[:2]]
        self._drawn, self._size = self._size, min(2 * self._size, self._most)
        return _rows(*new)


def accepted_lists(drawing: IndependentDraws | DistinctDraws, count: int, batch: RuledBatch) -> list[list[Row]]:
    """Return each item's first ``count`` draws that satisfy the rules.

    An item gets fewer once the bound of the search is reached, and its first draw if all were rejected.
    """
    search = batch.search
    items = [_Acceptance(-(-search.opened // cost_of_broken(len(words.forms)))) for words in batch.words]
    while left := [item for item, acceptance in enumerate(items) if not acceptance.done]:
        batch.check()
        for item, rows in zip(left, drawing.next_round(left), strict=True):
            items[item].take(rows, count, functools.partial(batch.is_fine, item))
    for acceptance in items:
        accepted, rejected = len(acceptance.accepted), acceptance.rejected
        unfinished, drawn = rejected == acceptance.most, accepted + rejected
        mended = accepted > 0 and rejected > 0 and not unfinished
        search.tally.add(RuleTally(1, int(rejected > 0), int(mended), drawn, accepted, int(unfinished)))
    return [acceptance.accepted or acceptance.first for acceptance in items]


@dataclass
class _Acceptance:
    """The draws of an item so far; ``most`` rejected ones end its search."""

    most: int
    accepted: list[Row] = field(default_factory=list)
    first: list[Row] = field(default_factory=list)  # the first draw
    rejected: int = 0
    done: bool = False

    def take(self, rows: Sequence[Row], count: int, is_fine: Callable[[Row], bool]) -> None:
        """Take more draws until ``count`` are accepted or the most rejected; no draws end the item's search."""
        self.first = self.first or list(rows[:1])
        for row in rows:
            if is_fine(row):
                self.accepted.append(row)
            else:
                self.rejected += 1
            if len(self.accepted) == count or self.rejected == self.most:
                self.done = True
                return
        self.done = not rows


def _upos(sentence: Sentence, likeliest: Sequence[str] | None) -> Sequence[str] | None:
    """The sentence's tags; the likeliest tag for a word without one."""
    if likeliest is None or sentence.upos is None:
        return sentence.upos if likeliest is None else likeliest
    return [other if tag == EMPTY else tag for tag, other in zip(sentence.upos, likeliest, strict=True)]


def _item_list(trees: Sequence[SatisfyingTree]) -> ItemList:
    rows = [(list(tree.heads), list(tree.labels)) for tree in trees]
    return ItemList(rows, [tree.score for tree in trees])


def _some(p: LabeledCRF, items: Sequence[int]) -> LabeledCRF:
    return p if len(items) == len(p.scores) else p.of_items(torch.tensor(items, device=p.scores.device))


def _rows(heads: Tensor, labels: Tensor) -> list[list[Row]]:
    """The trees of each item, from heads and labels ``(T, I, n+1)``, without the padding trees of -1."""
    counts = (heads[..., 1] >= 0).sum(0).tolist()
    heads, labels = heads.transpose(0, 1), labels.transpose(0, 1)
    return [
        list(zip(some[:count], others[:count], strict=True))
        for count, some, others in zip(counts, heads.tolist(), labels.tolist(), strict=True)
    ]
