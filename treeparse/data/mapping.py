"""Convert sentences from users' types, add trees to them, and map functions over batches of similar length."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import torch

from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.data.conllu import ConlluSentence
from treeparse.data.docs import doc_sentences, fill_doc, is_doc, is_span, span_words
from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, Sentence

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span

T = TypeVar("T")

Progress = Callable[[Sequence[int]], object]
"""Called after each batch, with the indices of its sentences."""

Words: TypeAlias = (
    "Sentence | ConlluSentence | Sequence[str] | Sequence[Mapping[str, Any]] | Mapping[str, Any] | Doc | Span"
)
Parsed = TypeVar("Parsed", bound="Sentence | ConlluSentence | Sequence[Mapping[str, Any]] | Mapping[str, Any] | Doc")
READ = ("upos", "xpos", "feats", "misc")  # the columns of a row besides its words
FORMS = ("tokens", "form")  # names of the column of words in a row


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
    ended: Event | None = None,
) -> list[T]:
    """Return the results of a function for each sentence, in order; batches do not depend on the number of threads.

    Args:
        function: returns the results of a batch from the indices of its sentences and the sentences.
        sentences: the sentences.
        max_words: as for `BucketBatchSampler`.
        max_squared: as for `BucketBatchSampler`.
        length: returns the length of a sentence, as these bounds count it.
        threads: number of batches to compute at the same time, each in one thread.
        torch_threads: number of torch's threads in each of these.
        progress: called after each batch, by the calling thread.
        ended: set before an error or an interrupt waits for the batches in other threads; at it, a long one may raise.
    """
    batches = list(BucketBatchSampler([*map(length, sentences)], max_words=max_words, max_squared=max_squared))

    def results_of(indices: list[int]) -> Sequence[T]:
        return function(indices, [sentences[index] for index in indices])

    results: dict[int, T] = {}
    with _mapping(min(threads, len(batches)), torch_threads) as mapped:
        try:
            for indices, batch_results in zip(batches, mapped(results_of, batches), strict=True):
                results |= zip(indices, batch_results, strict=True)
                if progress is not None:
                    progress(indices)
        finally:
            if ended is not None:
                ended.set()
    return [results[index] for index in range(len(sentences))]


@contextmanager
def _mapping(threads: int, torch_threads: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a ``map`` over ``threads`` threads, which end with it, because a later pool would break forked workers.

    Batches are computed in parallel because they are too small for several threads to share one.
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
        torch.set_num_threads(before)  # because a thread of the pool sets the number for all later threads too


def check_several(sentences: object) -> None:
    """Raise for a single sentence, Doc or row instead of a list, and for a set."""
    if isinstance(sentences, str | Sentence | ConlluSentence) or is_doc(sentences) or is_span(sentences):
        one = "Doc" if is_doc(sentences) else "sentence"
        raise TreeparseError(f"Sentences must be a list of {one}s, got one {one}: put it into a list, [{one.lower()}].")
    if isinstance(sentences, Mapping):
        raise TreeparseError(
            f"Sentences must be a list, got a mapping with the keys {_keys(sentences)}: put a row into a list, [row]; "
            "of a slice of a data set, which is a mapping of columns, give the column of words, rows['tokens']."
        )
    if isinstance(sentences, Set):
        raise TreeparseError("Sentences must be a list, got a set, which has no order.")


def each_sentence(sentences: Iterable[Words]) -> Iterator[Words]:
    """Yield the sentences; a spaCy Doc is replaced by its sentences that have words."""
    for sentence in sentences:
        if not isinstance(sentence, Sentence) and is_doc(sentence):
            yield from map(span_words, doc_sentences(sentence))
        else:
            yield sentence


def as_sentences(sentences: Iterable[Words], first: int = 0) -> list[Sentence]:
    """Convert a list of sentences of any types that `as_sentence` takes; a spaCy ``Doc`` counts as its sentences.

    Args:
        sentences: the sentences.
        first: the index of the first sentence in messages.

    Raises:
        TreeparseError: for one sentence instead of a list, and as `as_sentence`.
    """
    check_several(sentences)
    return [as_sentence(words, index) for index, words in enumerate(each_sentence(sentences), first)]


def as_sentence(words: Words, index: int = 0) -> Sentence:
    """Convert one sentence of any of these types to a `Sentence`; ``index`` is its index in messages.

    - A `Sentence`, a `ConlluSentence`, or a list of words.
    - A list of mappings with ``id``, ``form`` and, optionally, ``upos``, ``xpos``, ``feats`` and ``misc``, such as a
      ``TokenList`` of the ``conllu`` library. Tokens with an integer ``id`` are words; multiword tokens and empty nodes
      are left out.
    - A row of a ``datasets.Dataset``, or another mapping with a list of words in the column ``tokens`` or ``form`` and,
      optionally, tags in ``upos``, ``xpos`` and ``feats``. Columns of numbers, such as ids of tags, are not read.
    - A spaCy ``Span``. Tokens of white space are left out.

    Only the first two keep their trees.

    Raises:
        TreeparseError: for a sentence that is a string, a set or another mapping, has no words, or has words that are
            empty or no strings.
    """
    if isinstance(words, ConlluSentence):  # whose words have been checked
        return words.words
    sentence = words if isinstance(words, Sentence) else _converted(words, index)
    if not len(sentence):
        raise TreeparseError(f"{_ordinal(index)} has no words: leave it out.")
    if "" in sentence.forms:
        raise TreeparseError(f"{_ordinal(index)} has an empty word, word {sentence.forms.index('') + 1}: leave it out.")
    if {*map(type, sentence.forms)} != {str}:  # a loop over all words is slow
        for form in sentence.forms:
            if not isinstance(form, str):
                raise TreeparseError(f"The words of {_ordinal(index).lower()} must be strings, got {form!r:.100}.")
    return sentence


def _converted(words: Any, index: int) -> Sentence:
    """Convert a sentence of another type than `Sentence`."""
    if isinstance(words, str):
        raise TreeparseError(
            f"{_ordinal(index)} must be a list of words, got a string, {words[:50]!r}: give a list of lists, such as "
            "[['They', 'saw']]."
        )
    if isinstance(words, Set):
        raise TreeparseError(
            f"{_ordinal(index)} must be a list of words, got a set, which has no order: {words!r:.100}."
        )
    if is_span(words):
        return span_words(words)
    if isinstance(words, Mapping):
        return _from_row(words, index)
    try:
        return _from_words(list(words), index)
    except TypeError as error:
        raise TreeparseError(f"{_ordinal(index)} must be a list of words, got {words!r:.100}.") from error


def with_trees(sentence: Parsed, parses: Sequence[Parse]) -> Parsed:
    """Return a copy of a sentence with the tree of its one parse; a spaCy ``Doc`` gets its trees in place.

    The words of a `Sentence` or `ConlluSentence` get heads and labels; DEPS becomes ``_``. In a list of mappings, such
    as a ``TokenList`` of the ``conllu`` library, they get ``head``, ``deprel``, and ``deps`` None. A row, which is a
    mapping with a column of words, becomes a dict with the columns ``head`` and ``deprel``.

    Raises:
        ValueError: if the parse has another number of words.
        TypeError: if the sentence has another type, such as a list of words, which cannot hold a tree.
    """
    if is_doc(sentence):
        fill_doc(sentence, parses)
        return sentence
    [parse] = parses
    if isinstance(sentence, Sentence):
        return cast(Parsed, sentence.with_tree(parse.heads, parse.labels))
    if isinstance(sentence, ConlluSentence):
        return cast(Parsed, sentence.with_parse(parse.heads, parse.labels))
    if isinstance(sentence, Mapping):
        return cast(Parsed, _row_with_tree(sentence, parse))
    if isinstance(sentence, str) or not all(isinstance(token, Mapping) for token in sentence):
        raise TypeError(f"A tree needs a sentence that can hold it, got {sentence!r:.100}: use Parser.parse instead.")
    copied: Any = copy.deepcopy(sentence)
    words = [token for token in copied if isinstance(token.get("id"), int)]
    for token, head, label in zip(words, parse.heads, parse.labels, strict=True):
        token.update(head=head, deprel=label, deps=None)
    return copied


def _row_with_tree(row: Mapping[str, Any], parse: Parse) -> dict[str, Any]:
    """Return a row with the columns of a tree; enhanced dependencies go, because they belong to the old tree."""
    words = row_words(row) or ()
    if len(words) != len(parse.heads):
        raise ValueError(f"A row of {len(words)} words cannot have a tree of {len(parse.heads)}.")
    new_row = {**row, "head": list(parse.heads), "deprel": list(parse.labels)}
    return new_row | ({"deps": [None] * len(words)} if "deps" in row else {})


def _ordinal(index: int) -> str:
    return f"Sentence {index} (counted from 0)"


def row_words(row: Mapping[str, Any]) -> list[Any] | None:
    """Return the words of a row, from its column `tokens` or `form`; None if no such column holds a list."""
    words = next((row[name] for name in FORMS if name in row), None)
    return None if isinstance(words, str | Mapping | Set) or not isinstance(words, Iterable) else list(words)


def _from_row(row: Mapping[str, Any], index: int) -> Sentence:
    words = row_words(row)
    if words is None:
        raise TreeparseError(
            f"{_ordinal(index)} is a mapping with the keys {_keys(row)}: a row must have a list of words in a column "
            "'tokens' or 'form'; put the tokens of a sentence into a list."
        )
    upos, xpos, feats, misc = (_column_of_row(row.get(name)) for name in READ)
    return Sentence(tuple(words), upos, xpos, feats, misc=misc)


def _column_of_row(values: Any) -> tuple[str, ...] | None:
    """Return tags as CoNLL-U writes them; None if they are no strings, or are mappings in Python's notation."""
    if values is None or isinstance(values, str):
        return None
    tags = tuple(EMPTY if value in (None, "") else value for value in values)
    return tags if all(isinstance(tag, str) and not tag.startswith("{") for tag in tags) else None


def _keys(mapping: Mapping[Any, Any]) -> str:
    """Return the first keys of a mapping, for messages."""
    return ", ".join(map(repr, list(mapping)[:5]))


def _from_words(words: list[Any], index: int) -> Sentence:
    if not words or not all(isinstance(word, Mapping) for word in words):
        return Sentence(tuple(words))
    for token in words:
        if "id" not in token or "form" not in token:
            raise TreeparseError(
                f"The tokens of {_ordinal(index).lower()} must have the keys 'id' and 'form', got one with "
                f"{_keys(token)}."
            )
    tokens = [token for token in words if isinstance(token["id"], int)]
    if not tokens:
        raise TreeparseError(f"{_ordinal(index)} has no words: the 'id' of a word must be an integer.")
    upos, xpos, feats, misc = (_column(tokens, name) for name in READ)
    return Sentence(tuple(token["form"] for token in tokens), upos, xpos, feats, misc=misc)


def _column(tokens: list[Mapping[str, Any]], name: str) -> tuple[str, ...] | None:
    """Return a column as CoNLL-U writes it; None if no token has it."""
    if not any(name in token for token in tokens):
        return None
    return tuple(_value(token.get(name)) for token in tokens)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        entries = (f"{key}={each}" if each else key for key, each in value.items())
        return "|".join(entries) or EMPTY
    return str(value) if value else EMPTY
