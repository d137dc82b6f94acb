"""Split raw text into sentences and words by other libraries' tokenizers; the sentences become CoNLL-U."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from treeparse.data.conllu import ConlluSentence
from treeparse.data.docs import doc_sentences, word_tokens
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY

SPACE_AFTER_NO = "SpaceAfter=No"
UNKNOWN = [EMPTY] * 7  # the columns between FORM and MISC


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
    assigned = {name for pipe in nlp.pipe_names for name in nlp.get_pipe_meta(pipe).assigns}
    if not assigned & {"doc.sents", "token.is_sent_start"}:
        nlp.add_pipe("sentencizer")  # spaCy's rules for the ends of sentences

    def tokenize(text: str) -> Iterator[list[Token]]:
        for span in doc_sentences(nlp(text)):
            yield [Token((token.text,), token.idx, token.idx + len(token.text)) for token in word_tokens(span)]

    return tokenize


def _stanza_tokenizer(language: str) -> Tokenizer:
    try:
        import stanza  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise TreeparseError(f"The tokenizer stanza:{language} needs Stanza: pip install stanza.") from error
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
