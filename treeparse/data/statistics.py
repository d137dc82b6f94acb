"""What a treebank holds, counted."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from statistics import median
from typing import Any, Self

from treeparse.data.conllu import ConlluSentence
from treeparse.data.validation import ID
from treeparse.errors import TreeparseError
from treeparse.sentence import nonprojective_words


@dataclass(frozen=True, slots=True)
class TreebankStatistics:
    """Counts over sentences; those of two parts of a treebank add up.

    ``trees`` are the sentences whose heads are a tree, with one root or more; ``arcs``, ``roots`` and what is
    non-projective are counted in these alone.
    """

    sentences: int = 0
    words: int = 0
    multiword_tokens: int = 0
    empty_nodes: int = 0
    trees: int = 0
    arcs: int = 0
    roots: int = 0
    nonprojective_sentences: int = 0
    nonprojective_arcs: int = 0
    lengths: Counter[int] = field(default_factory=Counter)  # words in a sentence -> sentences
    labels: Counter[str] = field(default_factory=Counter)  # label -> words

    @classmethod
    def of(cls, sentences: Iterable[ConlluSentence]) -> Self:
        """Count; the sentences are read once and not kept."""
        counts: Counter[str] = Counter()
        lengths: Counter[int] = Counter()
        labels: Counter[str] = Counter()
        for sentence in sentences:
            counts.update(_line_counts(sentence))
            counts.update(_tree_counts(sentence.words.heads or ()))
            lengths[len(sentence.words)] += 1
            labels.update(sentence.words.labels or ())
        return cls(lengths=lengths, labels=labels, **counts)

    def __add__(self, other: Self) -> Self:
        return type(self)(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    @property
    def length_summary(self) -> dict[str, float]:
        """Minimum, median, mean and maximum of the words in a sentence; empty without sentences."""
        if not self.lengths:
            return {}
        return {
            "min": min(self.lengths),
            "median": median(self.lengths.elements()),
            "mean": self.words / self.sentences,
            "max": max(self.lengths),
        }

    def to_json(self) -> dict[str, Any]:
        """The counts as JSON values, lengths summed up and labels in order of frequency."""
        counts = {each.name: getattr(self, each.name) for each in fields(self)}
        return counts | {"lengths": self.length_summary, "labels": dict(self.labels.most_common())}


def _line_counts(sentence: ConlluSentence) -> dict[str, int]:
    identifiers = [row[ID] for row in sentence.rows()]
    return {
        "sentences": 1,
        "words": len(sentence.words),
        "multiword_tokens": sum("-" in identifier for identifier in identifiers),
        "empty_nodes": sum("." in identifier for identifier in identifiers),
    }


def _tree_counts(heads: Sequence[int]) -> dict[str, int]:
    try:
        crossing = len(nonprojective_words(heads))
    except TreeparseError:  # no tree
        return {}
    return {
        "trees": 1,
        "arcs": len(heads),
        "roots": heads.count(0),
        "nonprojective_sentences": int(crossing > 0),
        "nonprojective_arcs": crossing,
    }
