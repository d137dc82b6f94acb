"""Warnings about input that is not tokenised: a parser that was trained on "duck" and "." parses "duck." badly."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from treeparse.data.conllu import ConlluSentence
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.validation import FORM, ID

CHECKED = 100  # sentences
SELDOM = 20  # one unsplit multiword token in more sentences than these may be an error of annotation
MOST_ATTACHED = 0.25  # attached marks in training for each separate one; with more, "duck." may be a word
MOST_MULTIWORD = 500  # multiword tokens that a model stores
RARELY_WHOLE = 0.1  # the most occurrences of a form as one word, for each one as a multiword token

_ENDS = ".?!…。！？؟।։።"  # marks that end sentences  # noqa: RUF001
_PAUSES = ",;:、，；：،؛"  # noqa: RUF001
_MARKS = _ENDS + _PAUSES
_STOPS = ".…"  # marks of abbreviations too
_OPENING, _CLOSING = "\"'“‘«‹„([{¿¡", "\"'”’»›)]}"  # noqa: RUF001
_INSIDE_WORDS = "-'’‑"  # noqa: RUF001
_TOOLS = "UDPipe, Stanza or spaCy"


class RawTextCheck:
    """Check the first sentences of a parser's input, and report once if they are not tokenised or split.

    Raw text has more punctuation at the end of words ("duck.", "well,") than as separate tokens. Only marks count that
    the training data has as tokens; a full stop counts only in the last token of a sentence. Forms of the training data
    ("Mr."), initials, numbers, addresses and other forms that are no plain words do not count.

    Paragraphs have one or more ends of sentences, as tokens, before their last token.

    Unsplit multiword tokens are forms that the training data splits into words, such as French "du", in one of twenty
    sentences or more.

    Args:
        words: the words of the training data, in lower case; without them the check finds only paragraphs.
        multiword: its multiword tokens, in lower case, with their words.
    """

    def __init__(self, words: Vocabulary | None, multiword: Mapping[str, str] = MappingProxyType({})) -> None:
        self._words = Vocabulary((), ()) if words is None else words
        self._marks: str | None = None  # marks that training has as tokens; computed when first needed
        self._sentences = self._attached = self._separate = self._inner_ends = 0
        self._example: str | None = None
        self._multiword, self._unsplit = multiword, 0
        self._unsplit_example: str | None = None
        self._reported = False

    def check(self, sentences: Iterable[Sequence[str]]) -> str | None:
        """Check more sentences; return what is wrong with the input and what to do, but only once, otherwise None."""
        for forms in sentences:
            if self._reported or self._sentences == CHECKED:
                break
            if forms:
                self._sentences += 1
                self._count(forms)
        problem = None if self._reported else self._problem()
        self._reported |= problem is not None
        return problem

    def _count(self, forms: Sequence[str]) -> None:
        last = len(forms) - 1
        for index, form in enumerate(forms):
            if not form:
                continue
            if form.lower() in self._multiword:
                self._unsplit += 1
                self._unsplit_example = self._unsplit_example or form
            if not form.rstrip(_MARKS):
                self._separate += 1
                self._inner_ends += index < last and form[0] in _ENDS and _starts_sentence(forms[index + 1])
            elif self._has_raw_mark(form, is_last=index == last):
                self._attached += 1
                self._example = self._example or form

    def _has_raw_mark(self, form: str, *, is_last: bool) -> bool:
        mark = attached_mark(form)
        if mark is None or not (is_last or mark not in _STOPS):
            return False
        return mark in self._known_marks() and form.lower() not in self._words

    def _problem(self) -> str | None:
        checked = "the first sentence" if self._sentences == 1 else f"the first {self._sentences} sentences"
        if self._example is not None and self._attached > self._separate:
            one = f"the token {self._example!r} ends"
            tokens = one if self._attached == 1 else f"{self._attached} tokens, {self._example!r} the first, end"
            return (
                f"this looks like raw text: in {checked}, {tokens} in punctuation that is a separate word in the "
                "training data, and the model parses such tokens badly. Tokenise the text first, one sentence a line, "
                f"spaces around punctuation ({_spaced(self._example)!r}), for example by {_TOOLS}."
            )
        if self._inner_ends >= max(2, self._sentences):
            return (
                f"this looks like paragraphs: in {checked}, {self._inner_ends} ends of sentences are before the last "
                f"word. A tree is for one sentence: split the text first, one a line, for example by {_TOOLS}."
            )
        if self._unsplit_example is not None and self._unsplit >= self._sentences / SELDOM:
            words = " ".join(map(repr, self._multiword[self._unsplit_example.lower()].split()))
            tokens = "token that is" if self._unsplit == 1 else "tokens that are"
            return (
                f"multiword tokens are not split: {checked} {'has' if self._sentences == 1 else 'have'} "
                f"{self._unsplit} {tokens} several words in the training data, such as {self._unsplit_example!r}, "
                f"which is {words} there, and the model parses such tokens badly. Split them first, for "
                "example by UDPipe or Stanza (--format text --tokenizer stanza:LANGUAGE)."
            )
        return None

    def _known_marks(self) -> str:
        """Return the marks that are mostly separate tokens in training."""
        if self._marks is None:
            counts = dict(zip(self._words.items, self._words.counts, strict=True))
            separate = sum(count for form, count in counts.items() if not form.rstrip(_MARKS))
            attached = sum(count for form, count in counts.items() if attached_mark(form))
            usual = attached <= MOST_ATTACHED * separate
            self._marks = "".join(mark for mark in _MARKS if mark in counts) if usual else ""
        return self._marks


def attached_mark(form: str) -> str | None:
    """Return the first punctuation mark after a plain word of two letters or more: the stop of "duck." or 'duck."'."""
    bare = form.lstrip(_OPENING).rstrip(_CLOSING)
    stem = bare.rstrip(_MARKS)
    if len(stem) < 2 or stem == bare or not _is_letter(stem[-1]):
        return None
    plain = all(_is_letter(character) or character in _INSIDE_WORDS for character in stem)
    return bare[len(stem)] if plain else None


def _spaced(form: str) -> str:
    """Return a form with a space before its punctuation."""
    stem = form.rstrip(_CLOSING + _MARKS)
    return f"{stem} {form[len(stem) :]}"


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"  # M: vowel signs


def _starts_sentence(form: str) -> bool:
    """Return whether a word may start a sentence: it begins with a capital, or with a letter that has no case."""
    first = form.lstrip(_OPENING)[:1]
    return first != "" and _is_letter(first) and not first.islower()


def multiword_tokens(sentences: Iterable[ConlluSentence]) -> dict[str, str]:
    """Return the most frequent multiword tokens, lower-cased, with their usual words: ``{"du": "de le"}``.

    Forms that are often one word are left out, because they are no sign of unsplit text.
    """
    words: Counter[str] = Counter()
    splits: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        forms = [form.lower() for form in sentence.words.forms]
        words.update(forms)
        for row in sentence.rows():
            first, is_range, last = row[ID].partition("-")
            if is_range:
                splits[row[FORM].lower()][" ".join(forms[int(first) - 1 : int(last)])] += 1
    totals = {form: counts.total() for form, counts in splits.items() if words[form] <= RARELY_WHOLE * counts.total()}
    frequent = sorted(totals, key=lambda form: (-totals[form], form))[:MOST_MULTIWORD]
    return {form: splits[form].most_common(1)[0][0] for form in frequent}
