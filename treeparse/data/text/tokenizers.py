"""Raw text split into sentences and words, by tokenisers of other libraries; what they give as CoNLL-U."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from treeparse.data.conllu import ConlluSentence
from treeparse.errors import DataError, TreeparseError
from treeparse.sentence import EMPTY

if TYPE_CHECKING:
    from spacy.language import Language

SPACE_AFTER_NO = "SpaceAfter=No"
UNKNOWN = [EMPTY] * 7  # the columns between FORM and MISC


class Token(NamedTuple):
    """A token of a text: its words, several of a multiword token, and the characters that it stands at."""

    words: tuple[str, ...]
    start: int
    end: int


Tokenizer = Callable[[str], Iterable[Sequence[Token]]]
"""Splits a text into sentences, and each into tokens."""


def tokenizer_named(name: str) -> Tokenizer:
    """The tokeniser of a name.

    ``spacy:en`` is spaCy's for a language, with rules for the ends of sentences; ``spacy:en_core_web_sm`` a spaCy
    pipeline that is installed, or its folder. ``stanza:en`` is Stanza's for a language, multiword tokens included.

    Raises:
        TreeparseError: there is no such tokeniser, or its library or model is not installed.
    """
    library, _, which = name.partition(":")
    if library == "spacy" and which:
        return _spacy_tokenizer(which)
    if library == "stanza" and which:
        return _stanza_tokenizer(which)
    raise TreeparseError(
        f"There is no tokenizer {name!r}: write spacy:en for spaCy's of a language, spacy:en_core_web_sm for one of "
        "its pipelines, or stanza:en for Stanza's."
    )


def tokenised(line: ConlluSentence, tokenizer: Tokenizer) -> Iterator[ConlluSentence]:
    """The sentences of a line of raw text, as `read_text` reads it.

    The line is a paragraph. Its text is normalised first (NFC, single spaces), as UD wants it. The ids of its sentences
    have their number behind the line's. Tokens of white space are left out, and others are split at it.

    Raises:
        DataError: the tokeniser fails.
    """
    text = unicodedata.normalize("NFC", " ".join(line.words.forms))
    try:
        found = [whole for tokens in tokenizer(text) if (whole := [*_whole_tokens(tokens, text)])]
    except Exception as error:  # there are as many kinds as tokenisers
        place = {"source": line.source, "line": line.line, "sent_id": line.sent_id}
        raise DataError(f"the tokenizer fails on the text ({type(error).__name__}: {error!s:.200})", **place) from error
    for number, tokens in enumerate(found, 1):
        yield _sentence(tokens, line, number)


class _Spaced(NamedTuple):
    """A token without white space."""

    form: str
    words: tuple[str, ...]
    space_after: bool


def _whole_tokens(tokens: Iterable[Token], text: str) -> Iterator[_Spaced]:
    for token in tokens:
        space_after = not text[token.end :][:1].strip()  # at the end of the text, too
        form = text[token.start : token.end]
        words = [part for word in token.words for part in word.split()]
        if len(words) > 1 and len(token.words) > 1 and len(form.split()) == 1:
            yield _Spaced(form.strip(), tuple(words), space_after)
        else:
            for place, word in enumerate(words, 1):
                yield _Spaced(word, (word,), place < len(words) or space_after)


def _sentence(tokens: Sequence[_Spaced], line: ConlluSentence, number: int) -> ConlluSentence:
    """The sentence, the ``number``-th of its line."""
    rows: list[list[str]] = []
    first = 1  # word of the token
    for token in tokens:
        behind, misc = first + len(token.words), EMPTY if token.space_after else SPACE_AFTER_NO
        if behind > first + 1:
            rows.append([f"{first}-{behind - 1}", token.form, *UNKNOWN, misc])
            misc = EMPTY
        rows += [[str(place), word, *UNKNOWN, misc] for place, word in enumerate(token.words, first)]
        first = behind
    text = "".join(token.form + " " * token.space_after for token in tokens).strip()
    words = ConlluSentence.from_forms([word for token in tokens for word in token.words])
    name = f"{line.sent_id}-{number}"
    comments = [*(["# newpar"] if number == 1 else []), f"# sent_id = {name}", f"# text = {text}"]
    block = "\n".join([*comments, *("\t".join(row) for row in rows), "", ""])
    return ConlluSentence(words.words, block, name, line.source, line.line, line.ordinal)


def _spacy_tokenizer(name: str) -> Tokenizer:
    try:
        import spacy
    except ImportError as error:
        raise TreeparseError(f"The tokenizer spacy:{name} needs spaCy: pip install treeparse[spacy].") from error
    try:
        is_pipeline = spacy.util.is_package(name) or Path(name, "config.cfg").is_file()
        nlp = spacy.load(name) if is_pipeline else spacy.blank(name)
    except (ImportError, OSError, ValueError) as error:
        raise TreeparseError(
            f"spaCy has no pipeline or language {name!r} that it can load ({error!s:.300}): name a language such as "
            f"en, or install the pipeline, python -m spacy download {name}."
        ) from error
    _add_sentences(nlp)
    from treeparse.data.docs import doc_sentences, word_tokens  # which needs numpy

    def tokenize(text: str) -> Iterator[list[Token]]:
        for span in doc_sentences(nlp(text)):
            yield [Token((token.text,), token.idx, token.idx + len(token.text)) for token in word_tokens(span)]

    return tokenize


def _add_sentences(nlp: "Language") -> None:
    """Let spaCy's rules end sentences where no component of the pipeline does."""
    assigned = {name for pipe in nlp.pipe_names for name in nlp.get_pipe_meta(pipe).assigns}
    if not assigned & {"doc.sents", "token.is_sent_start"}:
        nlp.add_pipe("sentencizer")


def _stanza_tokenizer(language: str) -> Tokenizer:
    try:
        import stanza  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise TreeparseError(f"The tokenizer stanza:{language} needs Stanza: pip install stanza.") from error
    try:
        pipeline: Any = stanza.Pipeline(language, processors="tokenize,mwt", download_method=None, verbose=False)
    except Exception as error:  # of many kinds, where files are missing
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
