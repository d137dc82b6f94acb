"""Counts of a treebank: sentences, words, trees, labels, tags; the sentences that files share; and what is odd in them.

What is odd is no fault, because every command reads it.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from heapq import nsmallest
from itertools import combinations
from statistics import median
from typing import Any, Self

from treeparse.data.conllu import ConlluSentence
from treeparse.data.validation import FORM, ID, MISC, shown
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, nonprojective_words

EXAMPLES = 3  # sentences that two files share
FEW_FORMS = 10  # at most one word in ten is taken for an underscore
_LENGTH_BITS = 16


@dataclass(frozen=True, slots=True)
class TreebankStatistics:
    """Counts over sentences; the counts of two parts of a treebank can be added.

    ``trees`` counts the sentences whose heads are a tree, with one root or more. Arcs, roots, and non-projective
    sentences and arcs are counted in these trees alone.
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


class Doubts:
    """The doubts about the sentences of one file: words without form, ids, texts and characters.

    Universal Dependencies ask for forms, for a ``sent_id`` of each sentence, for the ``# text`` that its words and
    their ``SpaceAfter=No`` make, and for composed characters (NFC), without which a word has two spellings.
    """

    def __init__(self) -> None:
        self._words = self._bare = 0
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._lines: dict[str, int] = {}  # of each sent_id

    def add(self, sentence: ConlluSentence) -> None:
        """Look at a sentence."""
        self._words += len(sentence.words)
        self._bare += sentence.words.forms.count(EMPTY)
        for kind, example in self._of(sentence):
            self._counts[kind] += 1
            self._first.setdefault(kind, f"{sentence.source}:{sentence.line}, {example}")

    def _of(self, sentence: ConlluSentence) -> Iterator[tuple[str, str]]:
        if sentence.sent_id:
            line = self._lines.setdefault(sentence.sent_id, sentence.line)
            if line != sentence.line:
                yield "the sent_id of an earlier sentence", f"{shown(sentence.sent_id)}, as in line {line}"
        text = surface(sentence)
        for written in sentence.comments("text")[:1]:
            if written.split() != text.split() and EMPTY not in sentence.words.forms:
                yield "a # text that differs from the words", first_difference(written, text)
        if not unicodedata.is_normalized("NFC", text):
            words = (word for word in text.split() if not unicodedata.is_normalized("NFC", word))
            yield "characters that are not composed (NFC)", shown(next(words, text))

    def clauses(self) -> Iterator[str]:
        """Yield a clause for each kind, such as "3 sentences have ... (the first: FILE:LINE, ...)"."""
        if clause := missing_forms(self._bare, self._words):
            yield clause
        for kind, count in self._counts.items():
            yield f"{count:,} sentence{'s have' if count > 1 else ' has'} {kind} (the first: {self._first[kind]})"


def missing_forms(missing: int, words: int) -> str | None:
    """Return a clause about the words whose form is ``_``, as treebanks are shipped without their text; None if few."""
    if missing * FEW_FORMS <= words:
        return None
    return f"{missing:,} of {words:,} words have the form _: was the treebank shipped without its text?"


def surface(sentence: ConlluSentence) -> str:
    """Return the text that the tokens of a sentence and their ``SpaceAfter=No`` make."""
    rows = (row for row, *_ in sentence.tokens())
    return "".join(row[FORM] + " " * ("SpaceAfter=No" not in row[MISC].split("|")) for row in rows).strip()


def first_difference(written: str, text: str) -> str:
    """Quote a text from its first difference to the text of the words, and that text."""
    pairs = zip(written, text, strict=False)
    place = next((index for index, (left, right) in enumerate(pairs) if left != right), min(len(written), len(text)))
    return f"{shown(written[place:])} where the words have {shown(text[place:])}"
