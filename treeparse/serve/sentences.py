"""The sentences of a request, from the data as it came."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from treeparse.data.conllu import NO_SENTENCE, ConlluSentence, read_conllu
from treeparse.data.files import InMemory
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.sentence import Sentence
from treeparse.serve.asked import Asked
from treeparse.serve.limits import Limits, RequestError

SOURCE = "data"  # how messages call what is read: by the name of the parameter
LIST_BYTES = 16  # the data of lists, once for each tree, may have so many times the bytes of a request


def read_sentences(data: bytes, asked: Asked, model: Parser | Ensemble, limits: Limits) -> list[ConlluSentence]:
    """The sentences of a request's data.

    Raises:
        RequestError: sentences in another form, with the line; too many words or bytes; tags that the model reads and
            that a sentence lacks.
    """
    if len(data) * asked.k > LIST_BYTES * limits.request_bytes:
        raise RequestError(413, f"Lists of {asked.k} trees of so much data are too long: send it in several requests.")
    words = _Words(asked.k, limits)
    try:
        found = list(_conllu(data, words) if asked.input == "conllu" else _tokenised(data, asked.input, words))
        if not found:
            raise DataError(NO_SENTENCE, source=SOURCE)
        for sentence in found:
            _check_tags(sentence, model)
    except DataError as error:
        raise RequestError(400, str(error)) from error
    return found


def _conllu(data: bytes, words: "_Words") -> Iterator[ConlluSentence]:
    for sentence in read_conllu(InMemory(SOURCE, data)):
        words.add(len(sentence.words), sentence.line)
        yield sentence


def _tokenised(data: bytes, form: str, words: "_Words") -> Iterator[ConlluSentence]:
    """Sentences of forms alone, which are counted before all else that a sentence needs is made."""
    read = horizontal if form == "horizontal" else vertical
    for ordinal, (line, forms) in enumerate(read(_lines(data))):
        words.add(len(forms), line)
        yield ConlluSentence.from_forms(forms, sent_id=str(ordinal + 1), source=SOURCE, line=line, ordinal=ordinal)


def horizontal(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """The words of each line, separated by spaces and tabs, as UDPipe reads them: a no-break space is one in a word."""
    for number, line in lines:
        forms = line.replace("\t", " ").split(" ")
        if words := [form.replace("\N{NO-BREAK SPACE}", " ") for form in forms if form]:
            yield number, words


def vertical(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """The words of sentences, one a line, of which a tab ends what is read; empty lines are between sentences."""
    first, words = 0, list[str]()
    for number, line in lines:
        word = line.lstrip("\t").partition("\t")[0]
        if word:
            first = first if words else number
            words.append(word)
        elif words:
            yield first, words
            words = []
    if words:
        yield first, words


def _lines(data: bytes) -> Iterator[tuple[int, str]]:
    """The lines, counted from 1, without their ends and the byte order mark."""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            yield number, line.removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            problem = f"byte {error.start + 1} of the line (0x{line[error.start]:02x}) is not valid UTF-8"
            raise DataError(problem, source=SOURCE, line=number) from error


@dataclass
class _Words:
    """How many words a request has so far, those of all its trees."""

    trees: int
    limits: Limits
    count: int = 0

    def add(self, words: int, line: int) -> None:
        limits = self.limits
        if words > limits.sentence_words:
            most = f"but {limits.sentence_words:,} are the most here"
            raise RequestError(413, f"{SOURCE}:{line}: the sentence has {words:,} words, {most}.")
        self.count += words * self.trees
        if self.count > limits.request_words:
            trees = f", {self.trees} trees of each sentence counted" if self.trees > 1 else ""
            most = f"{limits.request_words:,} words{trees}"
            raise RequestError(413, f"{SOURCE}:{line}: the request has more than {most}: send several.")


def _check_tags(sentence: ConlluSentence, model: Parser | Ensemble) -> None:
    try:
        model.check(sentence.words)
    except TreeparseError as error:
        place = {"source": sentence.source, "line": sentence.line, "sent_id": sentence.sent_id}
        raise DataError(str(error), **place) from error


def words_alone(sentence: ConlluSentence) -> Sentence:
    """What a parser is to see of a sentence: not the tree that it has."""
    words = sentence.words
    return Sentence(words.forms, words.upos, words.xpos, words.feats)
