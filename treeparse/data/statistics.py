"""Counts of a treebank: sentences, words, trees, labels, tags; and the sentences that files share."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from heapq import nsmallest
from itertools import combinations
from statistics import median
from typing import Any, Self

from treeparse.data.conllu import ConlluSentence
from treeparse.data.validation import ID
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, nonprojective_words

EXAMPLES = 3  # sentences that two files share
_LENGTH_BITS = 16


@dataclass(frozen=True, slots=True)
class TreebankStatistics:
    """Counts over sentences; the counts of two parts of a treebank can be added.

    ``trees`` counts the sentences whose heads are a tree, with one root or more. Arcs, roots, and non-projective
    sentences and arcs are counted in these trees alone.
    """

    sentences: int = 0
    words: int = 0
    words_without_form: int = 0
    multiword_tokens: int = 0
    empty_nodes: int = 0
    trees: int = 0
    arcs: int = 0
    roots: int = 0
    nonprojective_sentences: int = 0
    nonprojective_arcs: int = 0
    lengths: Counter[int] = field(default_factory=Counter)  # words in a sentence -> sentences
    labels: Counter[str] = field(default_factory=Counter)  # label -> words
    upos: Counter[str] = field(default_factory=Counter)  # tag -> words; those without one are not counted
    features: Counter[str] = field(default_factory=Counter)  # name=value of FEATS -> words

    @classmethod
    def of(cls, sentences: Iterable[ConlluSentence]) -> Self:
        """Count sentences, reading them once, in constant memory."""
        counts: Counter[str] = Counter()
        lengths: Counter[int] = Counter()
        labels, upos, feats = Counter[str](), Counter[str](), Counter[str]()
        for sentence in sentences:
            identifiers = [row[ID] for row in sentence.rows()]
            counts.update(
                sentences=1,
                words=len(sentence.words),
                words_without_form=sentence.words.forms.count(EMPTY),
                multiword_tokens=sum("-" in identifier for identifier in identifiers),
                empty_nodes=sum("." in identifier for identifier in identifiers),
            )
            counts.update(_tree_counts(sentence.words.heads or ()))
            lengths[len(sentence.words)] += 1
            labels.update(sentence.words.labels or ())
            upos.update(sentence.words.upos or ())
            feats.update(sentence.words.feats or ())
        del upos[EMPTY], feats[EMPTY]
        features = Counter[str]()
        for column, words in feats.items():
            for feature in column.split("|"):
                features[feature] += words
        return cls(lengths=lengths, labels=labels, upos=upos, features=features, **counts)

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, count.name) + getattr(other, count.name) for count in fields(self)))

    @property
    def length_summary(self) -> dict[str, float]:
        """The minimum, median, mean and maximum number of words in a sentence; empty without sentences."""
        if not self.lengths:
            return {}
        return {
            "min": min(self.lengths),
            "median": median(self.lengths.elements()),
            "mean": self.words / self.sentences,
            "max": max(self.lengths),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON values: lengths as a summary; labels, tags and features by descending frequency."""
        counts = {count.name: getattr(self, count.name) for count in fields(self)}
        by_frequency = {name: dict(counts[name].most_common()) for name in ("labels", "upos", "features")}
        return counts | {"lengths": self.length_summary} | by_frequency


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


class SentenceIndex:
    """Find the sentences that files share. The index stores hashes, lengths and line numbers, but no words."""

    def __init__(self) -> None:
        self._lines: dict[int, tuple[tuple[int, int], ...]] = {}  # key of words -> (file, line) of each file

    def add(self, file: int, sentence: ConlluSentence) -> None:
        """Add a sentence of a file; files are numbered from 0, and all sentences of one precede those of the next."""
        forms = sentence.words.forms
        key = (hash(forms) << _LENGTH_BITS) + min(len(forms), 2**_LENGTH_BITS - 1)
        lines = self._lines.get(key, ())
        if not lines or lines[-1][0] != file:
            self._lines[key] = (*lines, (file, sentence.line))

    def shared(self) -> list[tuple[tuple[int, int], int, list[tuple[int, int]]]]:
        """Return each pair of files that share sentences, their number, and both line numbers of the longest ones."""
        pairs: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for key, lines in self._lines.items():
            for (first, line), (second, other_line) in combinations(lines, 2):
                pairs.setdefault((first, second), []).append((-(key % 2**_LENGTH_BITS), line, other_line))
        return [
            (files, len(shared), [(line, other_line) for _, line, other_line in nsmallest(EXAMPLES, shared)])
            for files, shared in sorted(pairs.items())
        ]
