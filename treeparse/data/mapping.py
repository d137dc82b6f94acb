"""Sentences in users' forms, and functions of many sentences: batches of similar length, results in input order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import torch

from treeparse.data.batches.batching import BucketBatchSampler
from treeparse.data.conllu import ConlluSentence
from treeparse.data.docs import doc_words, is_doc, is_span, span_words
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, Sentence

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span

T = TypeVar("T")

Progress = Callable[[Sequence[int]], object]
"""What is called after each batch, with the indices of its sentences."""

Words: TypeAlias = (
    "Sentence | ConlluSentence | Sequence[str] | Sequence[Mapping[str, Any]] | Mapping[str, Any] | Doc | Span"
)
FORMS = ("tokens", "form")  # the columns of a row that may hold its words


def map_batches(
    function: Callable[[list[int], list[Sentence]], Sequence[T]],
    sentences: Sequence[Sentence],
    *,
    max_words: int,
    max_squared: int | None = None,
    length: Callable[[Sentence], int] = len,
    threads: int = 1,
    torch_threads: int = 1,
    progress: Progress | None = None,
) -> list[T]:
    """Return a function's result for each sentence.

    Batches are the same for any number of threads.

    Args:
        function: returns the results of a batch from the indices of its sentences and the sentences.
        sentences: the sentences.
        max_words: as for `BucketBatchSampler`.
        max_squared: as for `BucketBatchSampler`.
        length: the length of a sentence in these bounds.
        threads: how many batches to compute at once, each in one thread.
        torch_threads: how many threads torch uses in each of these.
        progress: called after each batch, by the calling thread.
    """
    batches = list(BucketBatchSampler([*map(length, sentences)], max_words=max_words, max_squared=max_squared))

    def results(places: list[int]) -> Sequence[T]:
        return function(places, [sentences[place] for place in places])

    found: dict[int, T] = {}
    with _mapping(min(threads, len(batches)), torch_threads) as mapped:
        for places, own in zip(batches, mapped(results, batches), strict=True):
            found |= zip(places, own, strict=True)
            if progress is not None:
                progress(places)
    return [found[place] for place in range(len(sentences))]


@contextmanager
def _mapping(threads: int, torch_threads: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a ``map`` over ``threads`` threads, which end with it: a pool that outlives it would break forked workers.

    Two threads that share every product wait for each other more than they work: batches are small.
    """
    if threads < 2:
        yield map
        return
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(torch_threads,))
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # a thread of the pool sets its own number, and that of all threads to come


def check_several(sentences: object) -> None:
    """Raise for one sentence, one Doc or one row instead of a list, and for a set."""
    if isinstance(sentences, str | Sentence | ConlluSentence) or is_doc(sentences) or is_span(sentences):
        one = "Doc" if is_doc(sentences) else "sentence"
        raise TreeparseError(f"This is one {one}, but a list of {one}s is wanted: put it into a list, [{one.lower()}].")
    if isinstance(sentences, Mapping):
        raise TreeparseError(
            f"This is a mapping with the keys {_keys(sentences)}, but a list of sentences is wanted: put a row into a "
            "list, [row]; of a slice of a data set, which is columns, give that of the words, rows['tokens']."
        )
    if isinstance(sentences, Set):
        raise TreeparseError("This is a set of sentences, which has no order: give a list.")


def each_sentence(sentences: Iterable[Words]) -> Iterator[Words]:
    """Yield `Sentence` objects, the sentences of spaCy's Docs one by one, without sentences of white space."""
    for held in sentences:
        yield from doc_words(held) if is_doc(held) else (held,)


def as_sentences(sentences: Iterable[Words], first: int = 0) -> list[Sentence]:
    """Sentences from a list of them, each in any of the forms that `as_sentence` takes; ``first`` is the first's place.

    A spaCy ``Doc`` counts as its sentences, as many as they are.

    Raises:
        TreeparseError: for one sentence instead of a list, and as `as_sentence`.
    """
    check_several(sentences)
    return [as_sentence(words, place) for place, words in enumerate(each_sentence(sentences), first)]


def as_sentence(words: Words, place: int = 0) -> Sentence:
    """One sentence, the ``place``-th of its list, from its words in any of these forms.

    A `Sentence`; a `ConlluSentence`; a list of words; or a list of mappings with ``id`` and ``form``, and perhaps
    ``upos``, ``xpos`` and ``feats``, such as a ``TokenList`` of the ``conllu`` library, without its tree; there only
    tokens whose ``id`` is a whole number are words, neither multiword tokens nor empty nodes. Or a row of a
    ``datasets.Dataset`` or any other mapping that has a list of words in its column ``tokens`` or ``form``, and perhaps
    tags in ``upos``, ``xpos`` and ``feats``, without its tree; columns of numbers, such as ids of tags, are not read.
    Or a ``Span`` of spaCy's, without its tree; there tokens of white space alone are no words.

    Raises:
        TreeparseError: for a sentence that is a string, a set or another mapping, has no words, or has words that are
            empty or no strings.
    """
    if isinstance(words, str):
        raise TreeparseError(
            f"{_ordinal(place)} is a string, {words[:50]!r}: give a list of words for every sentence, so a list of "
            "lists, such as [['They', 'saw']]."
        )
    if isinstance(words, Set):
        raise TreeparseError(f"{_ordinal(place)} is a set, {words!r:.100}, which has no order: give a list of words.")
    if isinstance(words, ConlluSentence):
        words = words.words
    if is_span(words):
        words = span_words(words)
    if isinstance(words, Mapping):
        words = _from_row(words, place)
    try:
        sentence = words if isinstance(words, Sentence) else _from_words(list(words), place)
    except TypeError as error:
        raise TreeparseError(f"{_ordinal(place)} is no list of words, but {words!r:.100}.") from error
    if not len(sentence):
        raise TreeparseError(f"{_ordinal(place)} has no words: leave it out.")
    if "" in sentence.forms:
        raise TreeparseError(f"{_ordinal(place)} has an empty word, word {sentence.forms.index('') + 1}: leave it out.")
    if {*map(type, sentence.forms)} != {str}:  # a loop over all words is slow
        for form in sentence.forms:
            if not isinstance(form, str):
                raise TreeparseError(f"{_ordinal(place)} holds {form!r:.100}, which is no word: words are strings.")
    return sentence


def _ordinal(place: int) -> str:
    return f"Sentence {place} (counted from 0)"


def row_words(row: Mapping[str, Any]) -> list[Any] | None:
    """The words of a row, from the first of its columns that may hold them; None where it has none."""
    held = next((row[name] for name in FORMS if name in row), None)
    return None if isinstance(held, str | Mapping | Set) or not isinstance(held, Iterable) else list(held)


def _from_row(row: Mapping[str, Any], place: int) -> Sentence:
    words = row_words(row)
    if words is None:
        raise TreeparseError(
            f"{_ordinal(place)} is a mapping with the keys {_keys(row)}: of rows, those are taken that have a list of "
            "words in a column 'tokens' or 'form'; of single tokens, a list for every sentence."
        )
    upos, xpos, feats = (_column_of_row(row.get(name)) for name in ("upos", "xpos", "feats"))
    return Sentence(tuple(words), upos, xpos, feats)


def _column_of_row(values: Any) -> tuple[str, ...] | None:
    """Tags as they stand in CoNLL-U; None where they are no strings, or Python's notation of mappings."""
    if values is None or isinstance(values, str):
        return None
    tags = tuple(EMPTY if value in (None, "") else value for value in values)
    return tags if all(isinstance(tag, str) and not tag.startswith("{") for tag in tags) else None


def _keys(mapping: Mapping[Any, Any]) -> str:
    """The first keys of a mapping, for messages."""
    return ", ".join(map(repr, list(mapping)[:5]))


def _from_words(words: list[Any], place: int) -> Sentence:
    if not words or not all(isinstance(word, Mapping) for word in words):
        return Sentence(tuple(words))
    for token in words:
        if "id" not in token or "form" not in token:
            raise TreeparseError(
                f"{_ordinal(place)} holds a token with the keys {_keys(token)}: tokens that are mappings have 'id' and "
                "'form'."
            )
    tokens = [token for token in words if isinstance(token["id"], int)]
    if not tokens:
        raise TreeparseError(f"{_ordinal(place)} has no words: the 'id' of a word is a whole number.")
    upos, xpos, feats = (_column(tokens, name) for name in ("upos", "xpos", "feats"))
    return Sentence(tuple(token["form"] for token in tokens), upos, xpos, feats)


def _column(tokens: list[Mapping[str, Any]], name: str) -> tuple[str, ...] | None:
    """A column as it stands in CoNLL-U; None where no token has it."""
    if not any(name in token for token in tokens):
        return None
    return tuple(_value(token.get(name)) for token in tokens)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "|".join(f"{feature}={each}" for feature, each in value.items()) or EMPTY
    return str(value) if value else EMPTY
