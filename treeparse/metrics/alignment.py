"""Scores of parses whose words and sentences are not gold's, as of raw text: words are aligned by their characters.

The alignment and the scores are those of the official scorer of the CoNLL 2018 shared task.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, zip_longest

from treeparse.errors import TreeparseError
from treeparse.metrics.counts import CONTENT_LABELS, PrecisionRecall, universal_label
from treeparse.metrics.tags import COLUMNS, TAG_SCORES, equal_tags
from treeparse.sentence import EMPTY, Sentence

SHOWN = 20  # characters of texts that differ
Span = tuple[int, int]
"""The first character of a text, from 0, and the one after the last."""
Tokenised = tuple[Sentence, Sequence[tuple[str, int]]]
"""A sentence, and its tokens in order: their forms and, of multiword tokens, numbers of words, otherwise 0."""


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a text; all words of a multiword token have the token's span."""

    span: Span
    is_multiword: bool
    form: str
    head: int | None  # index of the head among all words of the text; None for the root
    label: str
    tags: tuple[str, ...]  # by COLUMNS


@dataclass(frozen=True, slots=True)
class _Text:
    """The characters of a file without spaces, the spans of its sentences and tokens, and its words."""

    characters: str
    sentences: list[Span]
    tokens: list[Span]
    words: list[_Word]


def aligned_scores(gold: Sequence[Tokenised], system: Sequence[Tokenised]) -> dict[str, PrecisionRecall]:
    """Score a system's parses of a text against gold trees of the same text, whatever its words and sentences.

    Returns:
        Precision, recall and F1 by the official scorer's names: Tokens, Sentences and Words; UPOS, XPOS, UFeats and
        AllTags if both sides have these tags; UAS, LAS and CLAS.

    Raises:
        TreeparseError: the texts differ in more than spaces.
    """
    if difference := text_difference(gold, system):
        index, problem = difference
        raise TreeparseError(f"Sentence {index + 1}: {problem}.")
    ours, theirs = _text(gold), _text(system)
    pairs = [*_aligned_pairs(ours.words, theirs.words)]
    gold_words: dict[int | None, int | None] = {None: None} | {second: first for first, second in pairs}

    def score(is_right: Callable[[_Word, _Word], bool], among: Collection[str] | None = None) -> PrecisionRecall:
        """Score the words of the labels ``among``, of all labels if None."""
        in_gold, in_system = (
            sum(among is None or word.label in among for word in text.words) for text in (ours, theirs)
        )
        aligned = ((ours.words[first], theirs.words[second]) for first, second in pairs)
        right = sum(is_right(*pair) for pair in aligned if among is None or pair[0].label in among)
        return PrecisionRecall.from_counts(in_gold, in_system, right)

    def has_head(word: _Word, other: _Word) -> bool:
        return other.head in gold_words and gold_words[other.head] == word.head

    def has_arc(word: _Word, other: _Word) -> bool:
        return has_head(word, other) and word.label == other.label

    def has_tags(indices: Iterable[int], word: _Word, other: _Word) -> bool:
        return all(equal_tags(names[index], word.tags[index], other.tags[index]) for index in indices)

    scores = {
        "Tokens": PrecisionRecall.from_counts(*_counts(ours.tokens, theirs.tokens)),
        "Sentences": PrecisionRecall.from_counts(*_counts(ours.sentences, theirs.sentences)),
        "Words": score(lambda word, other: True),
    }
    names, titles = [*COLUMNS], [*TAG_SCORES.values()]
    known = [[any(word.tags[index] != EMPTY for word in text.words) for index in range(3)] for text in (ours, theirs)]
    shared = [index for index, both in enumerate(zip(*known, strict=True)) if all(both)]
    scores |= {titles[index]: score(partial(has_tags, [index])) for index in shared}
    if shared and known[0] == known[1]:
        scores[titles[-1]] = score(partial(has_tags, range(3)))
    return scores | {"UAS": score(has_head), "LAS": score(has_arc), "CLAS": score(has_arc, CONTENT_LABELS)}


def text_difference(gold: Sequence[Tokenised], system: Sequence[Tokenised]) -> tuple[int, str] | None:
    """Return the index of the system's first sentence of another text, and a clause; None if only spaces differ."""
    ours, theirs = _text(gold), _text(system)
    if ours.characters == theirs.characters:
        return None
    pairs = enumerate(zip_longest(ours.characters, theirs.characters))
    start = next(index for index, (one, other) in pairs if one != other)
    shown = (text.characters[start : start + SHOWN] or "nothing more" for text in (ours, theirs))
    index = next((index for index, span in enumerate(theirs.sentences) if start < span[1]), -1)
    problem = "the text is not gold's, from here on: {1!r}, in gold {0!r}; score a parse of the same text"
    return index % len(system), problem.format(*shown)


def _counts(gold: Sequence[Span], system: Sequence[Span]) -> tuple[int, int, int]:
    return len(gold), len(system), len({*gold} & {*system})


def _text(sentences: Sequence[Tokenised]) -> _Text:
    text, forms, position = _Text("", [], [], []), list[str](), 0
    for words, tokens in sentences:
        before, start = len(text.words), position
        empty = [EMPTY] * len(words)
        tags = zip(*(getattr(words, column) or empty for column in COLUMNS.values()), strict=True)
        columns = zip(words.forms, words.heads or (), words.labels or (), tags, strict=True)
        for form, count in tokens:
            forms.append(_without_spaces(form))
            span = position, position + len(forms[-1])
            position = span[1]
            text.tokens.append(span)
            for word, head, label, tags_of_word in islice(columns, count or 1):
                spelled = (word if count else forms[-1]).lower()
                parent = before + head - 1 if head else None
                text.words.append(_Word(span, count > 0, spelled, parent, universal_label(label), tags_of_word))
        text.sentences.append((start, position))
    return _Text("".join(forms), text.sentences, text.tokens, text.words)


def _without_spaces(form: str) -> str:
    return "".join(character for character in form if unicodedata.category(character) != "Zs")


def _aligned_pairs(gold: Sequence[_Word], system: Sequence[_Word]) -> Iterator[tuple[int, int]]:
    """Yield the indices of aligned words: of equal spans, and around multiword tokens of common forms in order."""
    first = second = 0
    while first < len(gold) and second < len(system):
        ours, theirs = gold[first], system[second]
        if ours.is_multiword or theirs.is_multiword:
            starts, (first, second) = _multiword_spans(gold, system, first, second)
            yield from _common_forms(gold, system, range(starts[0], first), range(starts[1], second))
        elif ours.span == theirs.span:
            yield first, second
            first, second = first + 1, second + 1
        elif ours.span[0] <= theirs.span[0]:
            first += 1
        else:
            second += 1


def _multiword_spans(
    gold: Sequence[_Word], system: Sequence[_Word], first: int, second: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return where the words of both sides start and end that overlapping multiword tokens cover together."""
    ours, theirs = gold[first], system[second]
    if ours.is_multiword:
        end = ours.span[1]
        second += not theirs.is_multiword and theirs.span[0] < ours.span[0]
    else:
        end = theirs.span[1]
        first += ours.span[0] < theirs.span[0]
    starts = first, second

    def is_within(words: Sequence[_Word], index: int) -> bool:
        if index >= len(words):
            return False
        word = words[index]
        return word.span[0] < end if word.is_multiword else word.span[1] <= end

    while is_within(gold, first) or is_within(system, second):
        is_gold = first < len(gold) and (second >= len(system) or gold[first].span[0] <= system[second].span[0])
        word = gold[first] if is_gold else system[second]
        first, second = first + is_gold, second + (not is_gold)
        if word.is_multiword:
            end = max(end, word.span[1])
    return starts, (first, second)


def _common_forms(
    gold: Sequence[_Word], system: Sequence[_Word], ours: range, theirs: range
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a longest common subsequence of forms."""
    longest = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]  # common subsequence of the words from here on
    for row in reversed(range(len(ours))):
        for column in reversed(range(len(theirs))):
            is_equal = gold[ours[row]].form == system[theirs[column]].form
            diagonal = longest[row + 1][column + 1] + is_equal
            longest[row][column] = max(diagonal, longest[row + 1][column], longest[row][column + 1])
    row = column = 0
    while row < len(ours) and column < len(theirs):
        if gold[ours[row]].form == system[theirs[column]].form:
            yield ours[row], theirs[column]
            row, column = row + 1, column + 1
        elif longest[row][column] == longest[row + 1][column]:
            row += 1
        else:
            column += 1
