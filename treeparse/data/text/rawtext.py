"""Warnings about raw text as tokens: a parser that was trained on "duck" and "." parses "duck." badly."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from treeparse.data.conllu import ConlluSentence
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.validation import FORM, ID

LOOKED_AT = 100  # sentences
SELDOM = 20  # sentences with one unsplit multiword token among them, which may be a mistake of annotation
MOST_ATTACHED = 0.25  # marks attached in training for each that stands alone: above it, "duck." may be how words are
MOST_MULTIWORD = 500  # multiword tokens that a model stores
RARELY_WHOLE = 0.1  # the most occurrences of a form as one word, for each one as a multiword token

_ENDS = ".?!…。！？؟।։።"  # marks that end sentences  # noqa: RUF001
_PAUSES = ",;:、，；：،؛"  # noqa: RUF001
_MARKS = _ENDS + _PAUSES
_STOPS = ".…"  # marks of abbreviations, too
_OPENING, _CLOSING = "\"'“‘«‹„([{¿¡", "\"'”’»›)]}"  # noqa: RUF001
_INSIDE_WORDS = "-'’‑"  # noqa: RUF001
_TOOLS = "UDPipe, Stanza or spaCy"


class RawTextCheck:
    """Checks the first sentences of a parser's input, and reports once if they were not tokenised or split.

    The sign of raw text is punctuation at the end of words ("duck.", "well,") where the model's training data has it as
    tokens of its own: more of it than stands alone. A full stop counts only at the last token of a sentence; forms that
    training knows ("Mr."), initials, numbers, addresses and whatever else is no plain word do not count. Marks that
    training has not as tokens say nothing.

    The sign of a paragraph are sentence ends, as tokens, in the middle of sentences, one a sentence or more.

    The sign of a tokeniser that knows no multiword tokens are forms that training splits into words, such as French
    "du", in one of twenty sentences or more.
    """

    def __init__(self, words: Vocabulary | None, multiword: Mapping[str, str] = MappingProxyType({})) -> None:
        """``words`` are the words of the training data, lower-cased; without them the check finds only paragraphs.

        ``multiword`` are its multiword tokens, lower-cased, with their words.
        """
        self._words = Vocabulary((), ()) if words is None else words
        self._marks: str | None = None  # those that training has as tokens; found when first needed
        self._sentences = self._attached = self._alone = self._inner_ends = 0
        self._example: str | None = None
        self._multiword, self._unsplit = multiword, 0
        self._unsplit_example: str | None = None
        self._settled = False

    def look(self, sentences: Iterable[Sequence[str]]) -> str | None:
        """Look at more sentences; what is wrong with the input and what to do, the first time that it shows."""
        for forms in sentences:
            if self._settled or self._sentences == LOOKED_AT:
                break
            if forms:
                self._sentences += 1
                self._count(forms)
        problem = None if self._settled else self._problem()
        self._settled |= problem is not None
        return problem

    def _count(self, forms: Sequence[str]) -> None:
        last = len(forms) - 1
        for place, form in enumerate(forms):
            if not form:
                continue
            if form.lower() in self._multiword:
                self._unsplit += 1
                self._unsplit_example = self._unsplit_example or form
            if not form.rstrip(_MARKS):
                self._alone += 1
                self._inner_ends += place < last and form[0] in _ENDS and _starts_sentence(forms[place + 1])
            elif (mark := attached_mark(form)) is not None and (place == last or mark not in _STOPS):
                self._notice(form, mark)

    def _notice(self, form: str, mark: str) -> None:
        if mark in self._known_marks() and form.lower() not in self._words:
            self._attached += 1
            self._example = self._example or form

    def _problem(self) -> str | None:
        looked_at = "the first sentence" if self._sentences == 1 else f"the first {self._sentences} sentences"
        if self._example is not None and self._attached > self._alone:
            one = f"the token {self._example!r} ends"
            tokens = one if self._attached == 1 else f"{self._attached} tokens, {self._example!r} the first, end"
            return (
                f"this looks like raw text: in {looked_at}, {tokens} in punctuation that the model knows as a word of "
                "its own, and it parses such tokens badly. Tokenise the text first, one sentence a line, spaces around "
                f"punctuation ({_spaced(self._example)!r}), for example by {_TOOLS}."
            )
        if self._inner_ends >= max(2, self._sentences):
            return (
                f"this looks like paragraphs: in {looked_at}, {self._inner_ends} ends of sentences stand before the "
                f"last word. A tree is for one sentence: split the text first, one a line, for example by {_TOOLS}."
            )
        if self._unsplit_example is not None and self._unsplit >= self._sentences / SELDOM:
            words = " ".join(map(repr, self._multiword[self._unsplit_example.lower()].split()))
            tokens = "token that is" if self._unsplit == 1 else "tokens that are"
            return (
                f"multiword tokens are not split here: {looked_at} {'has' if self._sentences == 1 else 'have'} "
                f"{self._unsplit} {tokens} several words in the model's training data, such as "
                f"{self._unsplit_example!r}, there {words}, and it parses such tokens badly. Split them first, for "
                "example by UDPipe or Stanza (--format text --tokenizer stanza:LANGUAGE)."
            )
        return None

    def _known_marks(self) -> str:
        """The marks that stand alone in training, if they mostly do."""
        if self._marks is None:
            counts = dict(zip(self._words.items, self._words.counts, strict=True))
            alone = sum(count for form, count in counts.items() if not form.rstrip(_MARKS))
            attached = sum(count for form, count in counts.items() if attached_mark(form))
            usual = attached <= MOST_ATTACHED * alone
            self._marks = "".join(mark for mark in _MARKS if mark in counts) if usual else ""
        return self._marks


def attached_mark(form: str) -> str | None:
    """The first punctuation mark behind a plain word of two letters or more: the full stop of "duck." or 'duck."'."""
    bare = form.lstrip(_OPENING).rstrip(_CLOSING)
    stem = bare.rstrip(_MARKS)
    if len(stem) < 2 or stem == bare or not _is_letter(stem[-1]):
        return None
    plain = all(_is_letter(character) or character in _INSIDE_WORDS for character in stem)
    return bare[len(stem)] if plain else None


def _spaced(form: str) -> str:
    """A form with a space before its punctuation."""
    stem = form.rstrip(_CLOSING + _MARKS)
    return f"{stem} {form[len(stem) :]}"


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"  # M: vowel signs


def _starts_sentence(form: str) -> bool:
    """Whether a word may start a sentence: it has a capital, or letters that have no case."""
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
