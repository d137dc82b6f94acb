"""Raw text: sentences and words by other libraries' tokenizers, and warnings about input that is not tokenised.

A parser that was trained on "duck" and "." parses "duck." badly.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from treeparse.data.conllu import ConlluSentence
from treeparse.data.docs import doc_sentences, word_tokens
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.validation import FORM, ID
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY

SPACE_AFTER_NO = "SpaceAfter=No"
UNKNOWN = [EMPTY] * 7  # the columns between FORM and MISC
CHECKED = 100  # sentences
SELDOM = 20  # one unsplit multiword token in more sentences than these may be an error of annotation
MOST_WHOLE = 4  # lines for each one that ends in mid-sentence; wrapped text has fewer than three
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


class Token(NamedTuple):
    """A token of a text: its words, two or more of a multiword token, and its span of characters."""

    words: tuple[str, ...]
    start: int
    end: int


Tokenizer = Callable[[str], Iterable[Sequence[Token]]]
"""Splits a text into sentences, and each sentence into tokens."""


def tokenizer_named(name: str) -> Tokenizer:
    """Return the tokenizer of a name.

    ``spacy:en`` is spaCy's tokenizer of a language, with rules for the ends of sentences; ``spacy:en_core_web_sm`` is
    that of an installed spaCy pipeline, or of its folder. ``stanza:en`` is Stanza's for a language, with multiword
    tokens.

    Raises:
        TreeparseError: the tokenizer does not exist, or its library or model is not installed.
    """
    library, _, which = name.partition(":")
    if library == "spacy" and which:
        return _spacy_tokenizer(which)
    if library == "stanza" and which:
        return _stanza_tokenizer(which)
    raise TreeparseError(
        f"A tokenizer must be spacy:LANGUAGE, spacy:PIPELINE (such as en_core_web_sm) or stanza:LANGUAGE, got {name!r}."
    )


def tokenised(line: ConlluSentence, tokenizer: Tokenizer) -> Iterator[ConlluSentence]:
    """Yield the sentences of a paragraph: a line of raw text, as `read_text` reads it.

    The text is normalised first (NFC, single spaces), as UD requires. A sentence's id is the line's, followed by its
    number. White space separates words; tokens of white space are left out.

    Raises:
        DataError: the tokenizer fails.
    """
    text = unicodedata.normalize("NFC", " ".join(line.words.forms))
    try:
        sentences = [spaced for tokens in tokenizer(text) if (spaced := [*_spaced_tokens(tokens, text)])]
    except Exception as error:  # every library has its own errors
        raise line.fault(f"the tokenizer fails on the text ({type(error).__name__}: {error!s:.200})") from error
    for number, tokens in enumerate(sentences, 1):
        yield _sentence(tokens, line, number)


class _Spaced(NamedTuple):
    """A token without white space."""

    form: str
    words: tuple[str, ...]
    space_after: bool


def _spaced_tokens(tokens: Iterable[Token], text: str) -> Iterator[_Spaced]:
    for token in tokens:
        space_after = not text[token.end :][:1].strip()  # True at the end of the text
        form = text[token.start : token.end]
        words = [part for word in token.words for part in word.split()]
        if len(words) > 1 and len(token.words) > 1 and len(form.split()) == 1:
            yield _Spaced(form.strip(), tuple(words), space_after)
        else:
            for number, word in enumerate(words, 1):
                yield _Spaced(word, (word,), number < len(words) or space_after)


def _sentence(tokens: Sequence[_Spaced], line: ConlluSentence, number: int) -> ConlluSentence:
    """Return sentence ``number`` of a line."""
    rows: list[list[str]] = []
    first = 1  # word of the token
    for token in tokens:
        after, misc = first + len(token.words), EMPTY if token.space_after else SPACE_AFTER_NO
        if after > first + 1:
            rows.append([f"{first}-{after - 1}", token.form, *UNKNOWN, misc])
            misc = EMPTY
        rows += [[str(index), word, *UNKNOWN, misc] for index, word in enumerate(token.words, first)]
        first = after
    text = "".join(token.form + " " * token.space_after for token in tokens).strip()
    words = ConlluSentence.from_forms([word for token in tokens for word in token.words])
    name = f"{line.sent_id}-{number}"
    documents = [f"# newdoc id = {document}" for document in line.comments("newdoc id")]
    comments = [*([*documents, "# newpar"] if number == 1 else []), f"# sent_id = {name}", f"# text = {text}"]
    block = "\n".join([*comments, *("\t".join(row) for row in rows), "", ""])
    return ConlluSentence(words.words, block, name, line.source, line.line, line.ordinal)


def _library(module: str, name: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise TreeparseError(f"The tokenizer {module}:{name} needs {package}.") from error


def _spacy_tokenizer(name: str) -> Tokenizer:
    spacy = _library("spacy", name, "spaCy: pip install treeparse[spacy]")
    try:
        is_pipeline = spacy.util.is_package(name) or Path(name, "config.cfg").is_file()
        nlp = spacy.load(name) if is_pipeline else spacy.blank(name)
    except (ImportError, OSError, ValueError) as error:
        raise TreeparseError(
            f"spaCy has no pipeline or language {name!r} that it can load ({error!s:.300}): name a language such as "
            f"en, or install the pipeline, python -m spacy download {name}."
        ) from error
    assigned = {name for pipe in nlp.pipe_names for name in nlp.get_pipe_meta(pipe).assigns}
    if not assigned & {"doc.sents", "token.is_sent_start"}:
        nlp.add_pipe("sentencizer")  # spaCy's rules for the ends of sentences

    def tokenize(text: str) -> Iterator[list[Token]]:
        for span in doc_sentences(nlp(text)):
            yield [Token((token.text,), token.idx, token.idx + len(token.text)) for token in word_tokens(span)]

    return tokenize


def _stanza_tokenizer(language: str) -> Tokenizer:
    stanza = _library("stanza", language, "Stanza: pip install stanza")
    try:
        pipeline: Any = stanza.Pipeline(language, processors="tokenize,mwt", download_method=None, verbose=False)
    except Exception as error:  # missing files raise errors of many classes
        raise TreeparseError(
            f"Stanza cannot load its tokenizer of {language!r} ({type(error).__name__}: {error}): download it first, "
            f"python -c \"import stanza; stanza.download('{language}', processors='tokenize,mwt')\"."
        ) from error

    def tokenize(text: str) -> Iterator[list[Token]]:
        for sentence in pipeline(text).sentences:
            yield [
                Token(tuple(word.text for word in token.words), token.start_char, token.end_char)
                for token in sentence.tokens
            ]

    return tokenize


class RawTextCheck:
    """Check the first sentences of a parser's input, and report once if they are not tokenised or split.

    Raw text has more punctuation at the end of words ("duck.", "well,") than as separate tokens. Only marks count that
    the training data has as tokens; a full stop counts only in the last token of a sentence. Forms of the training data
    ("Mr."), initials, numbers, addresses and other forms that are no plain words do not count.

    Paragraphs have one or more ends of sentences, as tokens, before their last token.

    Lines that end in mid-sentence have no mark at their end, and the next line begins with a small letter.

    Unsplit multiword tokens are forms that the training data splits into words, such as French "du", in one of twenty
    sentences or more.

    Args:
        words: the words of the training data, in lower case; without them the check finds no raw text.
        multiword: its multiword tokens, in lower case, with their words.
        has_lines: whether the sentences are lines of text, or of such lines, in order.
        is_raw: whether a tokenizer has made the words, so that a single unsplit multiword token is no error of
            annotation.
    """

    def __init__(
        self,
        words: Vocabulary | None,
        multiword: Mapping[str, str] = MappingProxyType({}),
        *,
        has_lines: bool = False,
        is_raw: bool = False,
    ) -> None:
        self._words = Vocabulary((), ()) if words is None else words
        self._marks: str | None = None  # marks that training has as tokens; computed when first needed
        self._sentences = self._attached = self._separate = self._inner_ends = 0
        self._example: str | None = None
        self._multiword, self._unsplit = multiword, 0
        self._unsplit_example: str | None = None
        self._has_lines, self._seldom = has_lines, CHECKED if is_raw else SELDOM
        self._is_open = False  # the last line: it ends in a letter or a comma
        self._cuts = self._ends = self._capitals = 0  # lines, by their ends and starts
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
        last, start, end = len(forms) - 1, forms[0][:1], forms[-1][-1:]
        self._cuts += self._is_open and start.islower()
        self._capitals += start.isupper()
        self._ends += end in _ENDS
        self._is_open = end == "," or (end != "" and _is_letter(end))
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
        is_cased = self._ends and self._capitals  # otherwise small letters say nothing
        if self._has_lines and is_cased and self._cuts >= max(2, self._sentences / MOST_WHOLE):
            return (
                f"lines end in mid-sentence: in {checked}, {self._cuts} go on in the next line with a small letter. "
                "Each line is parsed by itself: join the lines first, to a paragraph a line for --tokenizer, otherwise "
                "to a sentence a line."
            )
        if self._inner_ends >= max(2, self._sentences):
            return (
                f"this looks like paragraphs: in {checked}, {self._inner_ends} ends of sentences are before the last "
                f"word. A tree is for one sentence: split the text first, one a line, for example by {_TOOLS}."
            )
        if self._unsplit_example is not None and self._unsplit >= self._sentences / self._seldom:
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
        for row, first, last in sentence.tokens():
            if "-" in row[ID]:
                splits[row[FORM].lower()][" ".join(forms[first - 1 : last])] += 1
    totals = {form: counts.total() for form, counts in splits.items() if words[form] <= RARELY_WHOLE * counts.total()}
    frequent = sorted(totals, key=lambda form: (-totals[form], form))[:MOST_MULTIWORD]
    return {form: splits[form].most_common(1)[0][0] for form in frequent}
