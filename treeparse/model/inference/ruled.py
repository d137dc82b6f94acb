"""Lists of trees of which each satisfies rules: the best ones by search, drawn ones by rejection."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from treeparse.model.inference.draws import DistinctDraws, IndependentDraws, Row
from treeparse.rules import NamedWords, RuleSearch, RuleTally, SatisfyingTree, satisfying_trees
from treeparse.sentence import EMPTY, Sentence
from treeparse.trees import LabeledCRF


@dataclass(frozen=True)
class RuledBatch:
    """The sentences of a batch with what rules read of them, and the search for trees that satisfy the rules."""

    search: RuleSearch
    words: Sequence[NamedWords]

    @classmethod
    def of(
        cls, search: RuleSearch, sentences: Sequence[Sentence], names: Sequence[str], tags: list[Sequence[str]] | None
    ) -> "RuledBatch":
        """The batch of sentences; a word without UPOS gets that of ``tags``, of all nodes and padding."""
        found = []
        for place, sentence in enumerate(sentences):
            likeliest = None if tags is None else tags[place][1 : len(sentence) + 1]
            found.append(NamedWords(sentence.forms, _upos(sentence, likeliest), names))
        return cls(search, found)

    def is_fine(self, item: int, row: Row) -> bool:
        """Whether a tree of an item satisfies the rules."""
        return self.words[item].first_violation(*row, self.search.rules) is None


class ItemList(NamedTuple):
    """The trees of an item: heads, labels and scores, one a tree."""

    rows: list[Row]
    scores: list[float]


def mended_lists(lists: Sequence[ItemList], p: LabeledCRF, count: int, batch: RuledBatch) -> list[ItemList]:
    """The best trees of each item that satisfy the rules, as many as there are up to ``count``.

    Where none was found among those that were opened, the best of all is kept.

    Args:
        lists: the best of all trees.
        p: the distribution of all trees among which is searched.
        count: the trees that are wanted.
        batch: the sentences and the rules.
    """
    result, search = list(lists), batch.search
    broken = [i for i, found in enumerate(lists) if not all(batch.is_fine(i, row) for row in found.rows)]
    words = [batch.words[item] for item in broken]
    mended = satisfying_trees(p, broken, words, search.rules, count, opened=search.opened + count)
    for item, (trees, complete) in zip(broken, mended, strict=True):
        result[item] = _item_list(trees) if trees else ItemList(lists[item].rows[:1], lists[item].scores[:1])
        search.tally.add(RuleTally(broken=1, mended=int(bool(trees) and complete)))
    search.tally.add(RuleTally(sentences=len(lists)))
    return result


def accepted_lists(drawing: IndependentDraws | DistinctDraws, count: int, batch: RuledBatch) -> list[list[Row]]:
    """Of the trees drawn for each item, in order, the first ones that satisfy the rules, up to ``count``.

    There are fewer where as many are rejected as are to be opened. Where all are, the first is kept.
    """
    items = [_Acceptance() for _ in batch.words]
    search = batch.search
    while left := [item for item, each in enumerate(items) if not each.done]:
        for item, rows in zip(left, drawing.next_round(left), strict=True):
            items[item].take(rows, count, search.opened, functools.partial(batch.is_fine, item))
    for each in items:
        drawn, accepted, broken = len(each.kept) + each.rejected, len(each.kept), each.rejected > 0
        mended = broken and accepted > 0 and each.rejected < search.opened
        search.tally.add(RuleTally(1, int(broken), int(mended), drawn, accepted))
    return [each.kept or each.first for each in items]


@dataclass
class _Acceptance:
    """The trees of an item so far."""

    kept: list[Row] = field(default_factory=list)
    first: list[Row] = field(default_factory=list)  # the first one drawn
    rejected: int = 0
    done: bool = False

    def take(self, rows: Sequence[Row], count: int, most: int, is_fine: Callable[[Row], bool]) -> None:
        """Look at more trees until so many are kept, or as many rejected as may be; no trees are the end, too."""
        self.first = self.first or list(rows[:1])
        for row in rows:
            if is_fine(row):
                self.kept.append(row)
            else:
                self.rejected += 1
            if len(self.kept) == count or self.rejected == most:
                self.done = True
                return
        self.done = not rows


def _upos(sentence: Sentence, likeliest: Sequence[str] | None) -> Sequence[str] | None:
    """The tags that a sentence has, and where it has none the likeliest."""
    if likeliest is None or sentence.upos is None:
        return sentence.upos if likeliest is None else likeliest
    return [other if tag == EMPTY else tag for tag, other in zip(sentence.upos, likeliest, strict=True)]


def _item_list(trees: Sequence[SatisfyingTree]) -> ItemList:
    rows = [(list(tree.heads), list(tree.labels)) for tree in trees]
    return ItemList(rows, [tree.score for tree in trees])
