"""The sentences of a corpus, in order, with their ordinals, and counts of the sentences that a request leaves out."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from treeparse.corpus.progress import CorpusSummary
from treeparse.corpus.request import CorpusInput, CorpusPart, CorpusRequest
from treeparse.data.conllu import NO_SENTENCE, ConlluSentence, read_conllu
from treeparse.data.text.tokenised import read_text
from treeparse.data.text.tokenizers import Tokenizer, tokenised
from treeparse.errors import DataError, TreeparseError

if TYPE_CHECKING:
    from treeparse.model import Ensemble, Parser

LONGEST_FILE = 2**32  # sentences of a file, at most: the distance of the ordinals of two files' first sentences
LONGEST_INPUT = 2**64  # lines of all files, at most: the distance of the ordinals of a raw line's sentences


class OrderedSentence(NamedTuple):
    """A sentence and its ordinal in the whole input, which neither left-out sentences nor shards change."""

    sentence: ConlluSentence
    ordinal: int


SentenceOrEnd = OrderedSentence | None
"""A sentence, or None after the last sentence of an output."""


def read_parts(
    parts: Sequence[CorpusPart], request: CorpusRequest, summary: CorpusSummary, *, single_root: bool
) -> Iterator[SentenceOrEnd]:
    """Read the sentences of all parts; None comes after the last sentence of each part.

    Raises:
        DataError: a sentence is faulty and must not be left out.
        TreeparseError: an output would have no sentence, unless it is one of a folder or of a shard.
    """
    may_be_empty = request.shard is not None or request.has_folder
    tokenizer, longest = request.load_tokenizer(), request.max_words
    for part in parts:
        is_empty = True
        for each in _read(part.inputs, request, summary, tokenizer, single_root=single_root):
            if longest is not None and len(each.sentence.words) > longest:
                summary.long_sentences += 1
            else:
                is_empty = False
                yield each
        if is_empty and not may_be_empty:
            limit = f" of at most {longest:,} words" if longest is not None and summary.long_sentences else ""
            raise TreeparseError(f"no valid sentence{limit} is left in {', '.join(str(i.path) for i in part.inputs)}")
        yield None


def _read(
    inputs: Sequence[CorpusInput],
    request: CorpusRequest,
    summary: CorpusSummary,
    tokenizer: Tokenizer | None,
    *,
    single_root: bool,
) -> Iterator[OrderedSentence]:
    """Read the valid sentences of an output, of any length."""
    read = _conllu_reader(request, summary, single_root=single_root)
    lines_before = 0  # of the files before, because sentences of text are named by the number of their line
    for source in inputs:
        try:
            last = -1
            if request.format == "text":
                sentences = read_text(source.path, first=lines_before + 1, span=source.span)
            else:
                sentences = read(source.path, span=source.span)
            for sentence in sentences if source.span is None or source.span else ():
                last = sentence.ordinal
                first = source.number * LONGEST_FILE + last
                sentences_of_line = (sentence,) if tokenizer is None else tokenised(sentence, tokenizer)
                for number, each in enumerate(sentences_of_line):
                    yield OrderedSentence(each, number * LONGEST_INPUT + first)
            begun = source.span is not None and source.span.start > 0  # by another shard
            if request.format == "text":
                lines_before += sum(1 for _ in read_text(source.path)) if begun else last + 1
        except DataError as fault:
            if not (fault.problem == NO_SENTENCE and request.skip_invalid and request.has_folder):
                raise
            summary.empty_files += 1


def _conllu_reader(
    request: CorpusRequest, summary: CorpusSummary, *, single_root: bool
) -> Callable[..., Iterator[ConlluSentence]]:
    """Return `read_conllu` with the options of the request."""

    def leave_out(fault: DataError) -> None:
        if fault.line is None:  # the file holds no sentence at all
            raise fault
        summary.invalid_sentences += 1

    trees = request.trees
    known = {"require_trees": trees.keep_heads, "partial": trees.keep_heads, "possible_heads": trees.within}
    on_invalid = leave_out if request.skip_invalid else None
    prompt = request.chunk == 1
    return functools.partial(read_conllu, prompt=prompt, on_invalid=on_invalid, single_root=single_root, **known)


def check_tags(items: Iterable[SentenceOrEnd], model: "Parser | Ensemble") -> Iterator[SentenceOrEnd]:
    """Yield the sentences; raise with file and line if a sentence lacks tags that the model reads."""
    for item in items:
        if item is not None:
            check_sentence(item.sentence, model)
        yield item


def check_sentence(sentence: ConlluSentence, model: "Parser | Ensemble") -> None:
    """Raise with file and line if a sentence lacks tags that the model reads."""
    try:
        model.check(sentence.words)
    except TreeparseError as error:
        raise sentence.fault(str(error)) from error


def chunks_of(items: Iterable[SentenceOrEnd], size: int, words: int) -> Iterator[list[SentenceOrEnd]]:
    """Yield lists of ``size`` sentences, shorter ones if they reach ``words`` words, with the Nones between outputs.

    An error is raised after the last list before it, so that the sentences before it are parsed and written.
    """
    chunk: list[SentenceOrEnd] = []
    sentences = length = 0
    try:
        for item in items:
            chunk.append(item)
            if item is not None:
                sentences += 1
                length += len(item.sentence.words)
            if sentences == size or length >= words:
                yield chunk
                chunk, sentences, length = [], 0, 0
    except (TreeparseError, OSError):
        yield chunk
        raise
    yield chunk
