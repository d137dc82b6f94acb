"""Scores of parses against gold trees: attachment, labels, roots, complete matches, overall and by kind of sentence."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treeparse.errors import naming_missing_packages
from treeparse.metrics.counts import (
    Count,
    PrecisionRecall,
    label_ratio,
    ratio,
    sentence_counts,
    universal_arcs,
    without_nan,
)
from treeparse.sentence import EMPTY, Sentence, nonprojective_words

if TYPE_CHECKING:
    from pandas import DataFrame

LENGTH_LIMITS = (10, 20, 30, 40, 50)
LENGTH_BUCKETS = ("1-10", "11-20", "21-30", "31-40", "41-50", "51+")
PROJECTIVITY = ("projective", "non-projective")
GROUPS_SHAPE = (len(LENGTH_BUCKETS), len(PROJECTIVITY), 2, len(Count))


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores in [0, 1] over ``words`` words in ``sentences`` sentences; 0 if there is nothing to count.

    Words without a gold label (``_``) do not count in scores of labels, nor their sentences in ``complete_match``. A
    score of labels is NaN if gold has no label for it.

    Labels are universal ones (``acl`` for ``acl:relcl``), as in the official scorer of the CoNLL 2018 shared task,
    except in ``las_subtypes``. ``clas`` is the F1 over words with a content relation, counted in gold for recall and in
    the system's parse for precision (Nivre and Fang 2017). ``label_accuracy`` ignores heads. ``root_accuracy`` and
    the complete matches are shares of sentences: with the right words under the root, with all heads right, with all
    heads and labels right.
    """

    sentences: int
    words: int
    uas: float
    las: float
    las_subtypes: float
    clas: float
    clas_precision: float
    clas_recall: float
    label_accuracy: float
    root_accuracy: float
    complete_match_unlabeled: float
    complete_match: float

    def as_dict(self) -> dict[str, Any]:
        """Return all values by name, nested as here, for JSON: None for NaN."""
        return asdict(self, dict_factory=without_nan)


SCORES = tuple(field.name for field in fields(Scores) if field.name not in ("sentences", "words"))


@dataclass(frozen=True, slots=True)
class GroupScores(Scores):
    """Scores of a group of sentences over all words, and in ``nopunct`` over all words but gold punctuation."""

    nopunct: Scores

    def values(self) -> dict[str, float]:
        """Return only the scores, flat: ``uas``, ``las``, ... and ``uas_nopunct``, ``las_nopunct``, ..."""
        both = (("", self), ("_nopunct", self.nopunct))
        return {f"{name}{suffix}": getattr(scores, name) for suffix, scores in both for name in SCORES}


@dataclass(frozen=True, slots=True)
class AttachmentReport(GroupScores):
    """Scores of one system on one treebank, overall and by group; groups without a sentence are left out.

    ``by_length`` groups by the number of words of the sentence (``"1-10"``, ...), ``by_projectivity`` by whether its
    gold tree is ``"projective"`` or ``"non-projective"``, ``by_label`` by universal label, in alphabetical order.
    """

    by_length: dict[str, GroupScores]
    by_projectivity: dict[str, GroupScores]
    by_label: dict[str, PrecisionRecall]

    def to_frame(self, *, by_label: bool = False) -> "DataFrame":
        """Return a pandas frame of scores, a row for all words and one for each group, or ``by_label`` for each label.

        ``to_latex`` of the frame makes a table of it for a paper.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        with naming_missing_packages("AttachmentReport.to_frame"):
            from pandas import DataFrame
        if by_label:
            return DataFrame.from_dict(
                {label: asdict(scores) for label, scores in self.by_label.items()}, orient="index"
            )
        groups: dict[str, Scores] = {"all": self, "no punctuation": self.nopunct}
        groups |= {f"{words} words": group for words, group in self.by_length.items()} | self.by_projectivity
        columns = ["sentences", "words", *SCORES]
        rows = {name: [getattr(group, column) for column in columns] for name, group in groups.items()}
        return DataFrame.from_dict(rows, orient="index", columns=columns)


def attachment_scores(gold: Sequence[Sentence], system: Sequence[Sentence]) -> AttachmentReport:
    """Score a system's parses against gold trees of the same sentences.

    UAS, LAS and CLAS equal the official scorer's of the CoNLL 2018 shared task for equal tokens. Gold trees may
    have several roots; a system head of -1 (unknown) is wrong.

    Raises:
        TreeparseError: if words differ, gold is not a tree, or heads or labels are missing; it names the sentence.
    """
    groups = grouped_counts(gold, sentence_counts(gold, system))
    overall = group_scores(groups.sum((0, 1)))
    of_labels = sorted(label_counts(gold, system).items())
    return AttachmentReport(
        **{name: getattr(overall, name) for name in ("sentences", "words", *SCORES, "nopunct")},
        by_length=_named(LENGTH_BUCKETS, groups.sum(1)),
        by_projectivity=_named(PROJECTIVITY, groups.sum(0)),
        by_label={label: PrecisionRecall.from_counts(*counts) for label, counts in of_labels},
    )


def group_scores(counts: ArrayLike) -> GroupScores:
    """Return scores from counts ``(2, len(Count))`` summed over sentences: of all words, and without punctuation."""
    everything, nopunct = np.asarray(counts, dtype=np.int64)
    return GroupScores(**_ratios(everything), nopunct=Scores(**_ratios(nopunct)))


def _ratios(counts: NDArray[np.int64]) -> dict[str, Any]:
    of = counts.tolist()
    words, sentences = of[Count.WORDS], of[Count.SENTENCES]
    labels, with_labels = of[Count.WITH_LABEL], of[Count.WITH_LABELS]
    gold, system, content = of[Count.CONTENT_GOLD], of[Count.CONTENT_SYSTEM], of[Count.CONTENT_CORRECT]
    return {
        "sentences": sentences,
        "words": words,
        "uas": ratio(of[Count.HEADS], words),
        "las": label_ratio(of[Count.LABELED], labels, labels, words),
        "las_subtypes": label_ratio(of[Count.LABELED_SUBTYPES], labels, labels, words),
        "clas": label_ratio(2 * content, gold + system, labels, words),
        "clas_precision": label_ratio(content, system, labels, words),
        "clas_recall": label_ratio(content, gold, labels, words),
        "label_accuracy": label_ratio(of[Count.LABELS], labels, labels, words),
        "root_accuracy": ratio(of[Count.ROOTS], sentences),
        "complete_match_unlabeled": ratio(of[Count.COMPLETE_UNLABELED], sentences),
        "complete_match": label_ratio(of[Count.COMPLETE], with_labels, with_labels, sentences),
    }


def _named(names: Sequence[str], counts: NDArray[np.int64]) -> dict[str, GroupScores]:
    groups = ((name, group_scores(group)) for name, group in zip(names, counts, strict=True))
    return {name: scores for name, scores in groups if scores.sentences}


def label_counts(gold: Sequence[Sentence], system: Sequence[Sentence]) -> dict[str, tuple[int, int, int]]:
    """Count words by universal label: in gold, in the system's parse, and in both with the right head.

    Words without a gold label do not count.
    """
    in_gold: Counter[str] = Counter()
    in_system: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    for trees in zip(gold, system, strict=True):
        arcs = [pair for pair in zip(*map(universal_arcs, trees), strict=True) if pair[0][1] != EMPTY]
        in_gold.update(ours[1] for ours, _ in arcs)
        in_system.update(theirs[1] for _, theirs in arcs)
        correct.update(ours[1] for ours, theirs in arcs if ours == theirs)
    return {label: (in_gold[label], in_system[label], correct[label]) for label in in_gold | in_system}


def grouped_counts(gold: Sequence[Sentence], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum counts of sentences ``(sentences, 2, len(Count))`` by length and projectivity, to ``GROUPS_SHAPE``."""
    groups = np.zeros(GROUPS_SHAPE, dtype=np.int64)
    length = [bisect_left(LENGTH_LIMITS, len(sentence)) for sentence in gold]
    crossing = [bool(nonprojective_words(sentence.heads or ())) for sentence in gold]
    np.add.at(groups, (np.array(length, dtype=np.intp), np.array(crossing, dtype=np.intp)), counts)
    return groups
