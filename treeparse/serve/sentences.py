"""The sentences of a request, read from its data."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from treeparse.corpus.sentences import check_sentence
from treeparse.data.conllu import NO_SENTENCE, ConlluSentence, read_conllu
from treeparse.data.files import InMemory
from treeparse.errors import DataError
from treeparse.model import Ensemble, Parser
from treeparse.serve.limits import Limits, RequestError
from treeparse.serve.process_request import ProcessRequest

SOURCE = "data"  # the name of the parameter, for messages


def read_sentences(
    data: str, request: ProcessRequest, model: Parser | Ensemble, limits: Limits
) -> list[ConlluSentence]:
    """Read the sentences of a request's data.

    Raises:
        RequestError: there are too many words, a sentence is faulty or lacks tags that the model reads; the message
            names the line.
    """
    k, total = request.trees.k, 0

    def count(words: int, line: int) -> None:
        """Count the words of a sentence, once for each tree; raise if there are too many."""
        nonlocal total
        if words > limits.sentence_words:
            rule = f"a sentence must have at most {limits.sentence_words:,} words"
            raise RequestError(413, f"{SOURCE}:{line}: {rule}, got {words:,}: split it.")
        total += words * k
        if total > limits.request_words:
            trees = f", {k} trees of each sentence counted" if k > 1 else ""
            most = f"{limits.request_words:,} words{trees}"
            raise RequestError(413, f"{SOURCE}:{line}: the request has more than {most}: send several.")

    try:
        sentences = list(_sentences(data, request.input, count))
        if not sentences:
            raise DataError(NO_SENTENCE, source=SOURCE)
        for sentence in sentences:
            check_sentence(sentence, model)
    except DataError as error:
        raise RequestError(400, str(error)) from error
    return sentences


def _sentences(data: str, form: str, count: Callable[[int, int], None]) -> Iterator[ConlluSentence]:
    """Yield the sentences; call ``count`` with the number of words and the line of each before it is yielded."""
    if form == "conllu":
        for sentence in read_conllu(InMemory(SOURCE, data.encode())):
            count(len(sentence.words), sentence.line)
            yield sentence
        return
    read = horizontal if form == "horizontal" else vertical
    for ordinal, (line, forms) in enumerate(read(_lines(data))):
        count(len(forms), line)
        yield ConlluSentence.from_forms(forms, sent_id=str(ordinal + 1), source=SOURCE, line=line, ordinal=ordinal)


def horizontal(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of each line, separated by spaces and tabs; a no-break space is a space within a word."""
    for number, line in lines:
        forms = line.replace("\t", " ").split(" ")
        if words := [form.replace("\N{NO-BREAK SPACE}", " ") for form in forms if form]:
            yield number, words


def vertical(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of sentences, one a line up to a tab; empty lines separate sentences."""
    words = ((number, line.lstrip("\t").partition("\t")[0]) for number, line in lines)
    for is_sentence, group in groupby(words, key=lambda numbered: numbered[1] != ""):
        if is_sentence:
            numbers, forms = zip(*group, strict=True)
            yield numbers[0], list(forms)


def _lines(data: str) -> Iterator[tuple[int, str]]:
    """Yield the lines, counted from 1, without their ends and the byte order mark."""
    for number, line in enumerate(data.removeprefix("\ufeff").split("\n"), 1):
        yield number, line.removesuffix("\r")
