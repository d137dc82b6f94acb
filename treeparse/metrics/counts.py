"""Counts of right heads and labels, one row a sentence: their sums make every score and the bootstrap."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, Sentence, tree_problem

PUNCTUATION_TAG = "PUNCT"
REMEDY = "compare parses of the same sentences, split into the same words, in the same order"

# The relations that CLAS counts, as the official scorer of the CoNLL 2018 shared task lists them.
# fmt: off
CONTENT_LABELS = frozenset((
    "nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated", "advcl", "advmod",
    "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound", "list", "parataxis",
    "orphan", "goeswith", "reparandum", "root", "dep",
))
# fmt: on


class Count(IntEnum):
    """The columns of the counts, of all words, or of all words but gold punctuation."""

    SENTENCES = 0  # sentences with at least one such word
    WORDS = 1
    HEADS = 2  # words with the right head
    LABELED = 3  # right head and universal label
    LABELED_SUBTYPES = 4  # right head and full label
    LABELS = 5  # right universal label, whatever the head
    CONTENT_GOLD = 6  # words with a content relation in gold
    CONTENT_SYSTEM = 7  # words with a content relation in the system's parse
    CONTENT_CORRECT = 8  # words with a content relation in gold and the right head and universal label
    WITH_LABEL = 9  # words with a label in gold: only these count in the columns of labels and content relations
    ROOTS = 10  # sentences with the right words under the root
    COMPLETE_UNLABELED = 11  # sentences with all heads right
    COMPLETE = 12  # sentences with all heads and universal labels right
    WITH_LABELS = 13  # sentences with a label of every word in gold


def ratio(part: int, whole: int) -> float:
    """Return ``part / whole``; 0 if there is nothing to count, as in the official scorer."""
    return part / whole if whole else 0.0


def label_ratio(part: int, whole: int, labels: int, words: int) -> float:
    """Return the `ratio` of a score of labels; NaN if there are words (or sentences), but none with gold labels."""
    return ratio(part, whole) if labels or not words else math.nan


def mean_of_known(values: Sequence[float]) -> float:
    """Return the mean of the values that are numbers; NaN if none is."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def without_nan(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping with None for NaN, which JSON lacks."""
    return {name: None if value != value else value for name, value in items}


@dataclass(frozen=True, slots=True)
class PrecisionRecall:
    """Precision and recall of arcs with one universal label, or of one length: ``correct`` arcs are in both trees.

    ``gold`` and ``system`` are the numbers of such arcs in each tree; scores are 0 if there is nothing to count.
    """

    gold: int
    system: int
    correct: int
    precision: float
    recall: float
    f1: float

    @classmethod
    def from_counts(cls, gold: int, system: int, correct: int) -> Self:
        """Return the scores of these counts."""
        precision, recall, f1 = ratio(correct, system), ratio(correct, gold), ratio(2 * correct, gold + system)
        return cls(gold, system, correct, precision, recall, f1)


def universal_label(label: str) -> str:
    """Return the part of a relation before its subtype: ``acl`` of ``acl:relcl``."""
    return label.partition(":")[0]


def universal_arcs(sentence: Sentence) -> list[tuple[int, str]]:
    """Return the head and universal label of each word."""
    return list(zip(sentence.heads or (), map(universal_label, sentence.labels or ()), strict=True))


def is_right(gold: tuple[int, str], system: tuple[int, str]) -> bool:
    """Return whether a system's arc has the head and universal label of gold; any label is right if gold has none."""
    return gold[0] == system[0] and gold[1] in (EMPTY, system[1])


def is_punctuation(form: str, upos: str = EMPTY) -> bool:
    """Whether a word is punctuation: by its UPOS or, if that is unknown, by a form of Unicode category P alone.

    Symbols (``$``, ``+``; category S) are not punctuation, nor are they tagged so in Universal Dependencies.
    """
    if upos != EMPTY:
        return upos == PUNCTUATION_TAG
    return form != "" and all(unicodedata.category(character)[0] == "P" for character in form)


def word_mismatch(gold: Sentence, system: Sentence) -> str | None:
    """Return a clause about the first different word of two sentences; None if they have the same words."""
    for word, (ours, theirs) in enumerate(zip_longest(gold.forms, system.forms), 1):
        if theirs is None:
            return f"word {word} ({ours!r}) of gold is missing in the system's parse"
        if ours is None:
            return f"word {word} ({theirs!r}) of the system's parse is missing in gold"
        if ours != theirs:
            return f"word {word} is {ours!r} in gold but {theirs!r} in the system's parse"
    return None


def check_comparable(gold: Sequence[Sentence], system: Sequence[Sentence], *, trees: bool = True) -> None:
    """Check that the system parsed the words of gold, in the same sentences and, with ``trees``, that both have trees.

    Raises:
        TreeparseError: if not; it names the sentence, counted from 1, and a remedy.
    """
    for number, (ours, theirs) in enumerate(zip(gold, system, strict=False), 1):
        if problem := word_mismatch(ours, theirs) or (_missing_tree(ours, theirs) if trees else None):
            raise TreeparseError(f"Sentence {number}: {problem}; {REMEDY}.")
    if len(gold) != len(system):
        raise TreeparseError(f"Gold has {len(gold)} sentences but the system parsed {len(system)}; {REMEDY}.")


def _missing_tree(gold: Sentence, system: Sentence) -> str | None:
    for name, sentence in (("gold", gold), ("the system's parse", system)):
        if sentence.heads is None or sentence.labels is None:
            return f"{name} has no heads or no labels"
    problem = tree_problem(gold.heads or (), single_root=False)
    return f"gold has no tree: {problem}" if problem else None


def sentence_counts(gold: Sequence[Sentence], system: Sequence[Sentence]) -> NDArray[np.int64]:
    """Return counts ``(sentences, 2, len(Count))``: of all words, and of all but gold punctuation.

    Labels are compared as the official scorer does (CoNLL 2018 shared task). A system head of -1 is a wrong head.

    Raises:
        TreeparseError: if words differ, gold is not a tree, or heads or labels are missing.
    """
    check_comparable(gold, system)
    tags = chain.from_iterable(s.upos if s.upos is not None else [EMPTY] * len(s) for s in gold)
    forms = chain.from_iterable(sentence.forms for sentence in gold)
    is_punct = np.fromiter(map(is_punctuation, forms, tags), dtype=bool)
    counted = np.stack([np.ones_like(is_punct), ~is_punct], axis=1)
    ends = np.cumsum([len(sentence) for sentence in gold], dtype=np.int64)

    words = _word_facts(gold, system)[:, None, :] & counted[:, :, None]
    sums = np.zeros((len(words) + 1, *words.shape[1:]), dtype=np.int64)
    np.cumsum(words, axis=0, out=sums[1:])
    sums = np.diff(sums[ends], axis=0, prepend=0)  # sums over each sentence, from the running sums at their ends

    counts = np.empty((len(gold), 2, len(Count)), dtype=np.int64)
    counts[..., Count.WORDS : Count.ROOTS] = sums[..., : Count.ROOTS - Count.WORDS]
    wrong_roots = sums[..., -1]
    present = counts[..., Count.WORDS] > 0
    counts[..., Count.SENTENCES] = present
    counts[..., Count.ROOTS] = present & (wrong_roots == 0)
    counts[..., Count.COMPLETE_UNLABELED] = present & (counts[..., Count.HEADS] == counts[..., Count.WORDS])
    counts[..., Count.COMPLETE] = present & (counts[..., Count.LABELED] == counts[..., Count.WORDS])
    counts[..., Count.WITH_LABELS] = present & (counts[..., Count.WITH_LABEL] == counts[..., Count.WORDS])
    return counts


def _word_facts(gold: Sequence[Sentence], system: Sequence[Sentence]) -> NDArray[np.bool_]:
    """Return ``(words, 10)``: the columns WORDS to WITH_LABEL, then whether the word is a root in one tree only."""
    ids: dict[str, int] = {}
    gold_heads, system_heads = (_flat(sentence.heads or () for sentence in side) for side in (gold, system))
    gold_labels, system_labels = (
        _flat((ids.setdefault(label, len(ids)) for label in sentence.labels or ()) for sentence in side)
        for side in (gold, system)
    )
    universal_names = [universal_label(name) for name in ids]
    index = {name: number for number, name in enumerate(universal_names)}
    universal = np.array([index[name] for name in universal_names], dtype=np.int64)
    content = np.array([name in CONTENT_LABELS for name in universal_names], dtype=bool)

    head, known = gold_heads == system_heads, gold_labels != ids.get(EMPTY, -1)
    label = known & (universal[gold_labels] == universal[system_labels])
    columns = [
        np.ones_like(head),
        head,
        head & label,
        head & known & (gold_labels == system_labels),
        label,
        content[gold_labels],
        content[system_labels] & known,
        head & label & content[gold_labels],
        known,
        (gold_heads == 0) != (system_heads == 0),
    ]
    return np.stack(columns, axis=1)


def _flat(rows: Iterable[Iterable[int]]) -> NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64)
