"""Read CoNLL-U files and treebanks of them, and write them without loss: a sentence stays byte for byte as it was read.

A parse replaces HEAD, DEPREL and DEPS, and the tags that it predicts.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import NamedTuple, Self

from treeparse.data.files import MAX_LINE, InMemory, display_name, expand_paths, numbered_lines, open_input
from treeparse.data.outputs import atomic_output
from treeparse.data.validation import (
    BYTE_ORDER_MARK,
    DEPREL,
    FEATS,
    FORM,
    HEAD,
    ID,
    MISC,
    UPOS,
    XPOS,
    TreeCheck,
    possible_heads,
    shown,
    undecodable_lines,
    word_columns,
)
from treeparse.errors import DataError, TreeparseError
from treeparse.sentence import EMPTY, Sentence

NO_TAGS: Mapping[str, Sequence[str]] = MappingProxyType({})
LONGEST_FILE = 2**32  # sentences of a file, at most: the distance of the ordinals of two files' first sentences
LONGEST_INPUT = 2**64  # lines of all files, at most: the distance of the ordinals of a raw line's sentences
NO_SENTENCE = "the file holds no sentence"  # the fault of an empty file

_MAX_SENTENCE = 2 * MAX_LINE  # bytes, half a million words: a longer block lacks the blank lines between sentences
_BLANK_LINES = (b"\n", b"\r\n", b"\r", b"")  # the last two can only end a file
_TAG_COLUMNS = {"upos": UPOS, "xpos": XPOS, "feats": FEATS}
_COLUMNS_OF_SENTENCES = itemgetter(FORM, UPOS, XPOS, FEATS, HEAD, DEPREL, MISC)
LINE_BREAKS, COLUMN_BREAKS = re.compile(r"[\n\r]"), re.compile(r"[\t\n\r]")  # no comment or column holds one


class RawSentence(NamedTuple):
    """The bytes of a sentence, a line of text or a document, and where they stand.

    Attributes:
        text: the bytes.
        source: the name of the file.
        line: the number of their first line, or of the row, from 1.
        ordinal: their index in the file, from 0.
        file: the index of the file among all inputs, from 0.
        before: the number of sentences, lines or documents in the files before, where they are counted.
    """

    text: bytes
    source: str
    line: int
    ordinal: int
    file: int = 0
    before: int = 0


@dataclass(frozen=True, slots=True)
class ConlluSentence:
    """A sentence of a CoNLL-U file: its words, and its text exactly as it was read.

    Attributes:
        words: the words; a head is -1 if HEAD names no node of the sentence.
        text: the lines, with the blank lines after the sentence and, for the first one, those before it.
        sent_id: the sentence's id, None without one.
        source: the name of the file.
        line: the line number of the first comment or word, from 1.
        ordinal: the index among the file's sentences, faulty ones included, from 0. In a corpus, a file's first
            sentence has its index among the files, times `LONGEST_FILE`.
    """

    words: Sentence
    text: str
    sent_id: str | None
    source: str
    line: int
    ordinal: int = field(default=0, compare=False)

    @classmethod
    def from_forms(
        cls,
        forms: Sequence[str],
        *,
        text: str | None = None,
        sent_id: str | None = None,
        source: str = "<forms>",
        line: int = 1,
        ordinal: int = 0,
    ) -> Self:
        """Return a new sentence with ``sent_id`` and ``text`` comments; all columns except ID and FORM are ``_``.

        ``text`` is by default the forms, joined by spaces.

        Raises:
            DataError: no form is given, a form is empty or holds a tab or a line break, or ``text`` or ``sent_id``
                holds a line break.
        """
        for name, comment in (("sent_id", sent_id), ("text", text)):
            if comment is not None and LINE_BREAKS.search(comment):
                problem = f"the {name} must have no line break, got {shown(comment)}: replace line breaks by spaces"
                raise DataError(problem, source=source, line=line)
        for form in forms or [""]:
            if not form or COLUMN_BREAKS.search(form):
                problem = f"a form must have a character, and no tab or line break, got {form!r}"
                raise DataError(problem, source=source, line=line, sent_id=sent_id)
        rows = [[str(number), form, *[EMPTY] * 8] for number, form in enumerate(forms, 1)]
        comments = [] if sent_id is None else [f"# sent_id = {sent_id}"]
        lines = [*comments, f"# text = {text or ' '.join(forms)}", *("\t".join(row) for row in rows)]
        return cls(_words([*zip(*rows, strict=True)]), "\n".join(lines) + "\n\n", sent_id, source, line, ordinal)

    def rows(self) -> list[list[str]]:
        """Return the ten columns of every word, multiword token and empty node."""
        _, lines = self.mark_and_lines()
        return [line.removesuffix("\r").split("\t") for line in lines if is_row(line)]

    def tokens(self) -> Iterator[tuple[list[str], int, int]]:
        """Yield the columns of every multiword token and of every word outside of one, and the first and last word."""
        end = 0
        for row in self.rows():
            first, _, last = row[ID].partition("-")
            if first.isdecimal() and int(first) > end:
                end = int(last or first)
                yield row, int(first), end

    def comments(self, key: str) -> list[str]:
        """Return the values of the comments ``# key = value`` with a key."""
        _, lines = self.mark_and_lines()
        pairs = (key_and_value(line) for line in lines if line.startswith("#"))
        return [value for name, value in pairs if name == key]

    def fault(self, problem: str) -> DataError:
        """Return the error for a problem of the sentence, with its file, line and id."""
        return DataError(problem, source=self.source, line=self.line, sent_id=self.sent_id)

    def alone(self) -> Self:
        """Return the sentence without a byte order mark, ending in one blank line, so that another may follow."""
        end = "\r\n" if "\r\n" in self.text else "\n"
        return replace(self, text=self.text.removeprefix(BYTE_ORDER_MARK).strip("\r\n") + 2 * end)

    def mark_and_lines(self) -> tuple[str, list[str]]:
        """Return the byte order mark, or an empty string, and the lines, which may end in a carriage return."""
        body = self.text.removeprefix(BYTE_ORDER_MARK)
        return self.text[: len(self.text) - len(body)], body.split("\n")

    def word_lines(self) -> list[int]:
        """Return the line number of every word in the file, from 1."""
        _, lines = self.mark_and_lines()
        first = next(index for index, line in enumerate(lines) if line.removesuffix("\r"))
        numbered = enumerate(lines, self.line - first)
        return [number for number, line in numbered if is_word_row(line)]

    def with_parse(
        self,
        heads: Sequence[int],
        labels: Sequence[str],
        *,
        tags: Mapping[str, Sequence[str]] = NO_TAGS,
        drop_empty: bool = False,
    ) -> Self:
        """Return the sentence with another tree: HEAD and DEPREL of its words are replaced, and DEPS becomes ``_``.

        Args:
            heads: the head of each word.
            labels: the label of each word.
            tags: replacements of whole columns, by their names: upos, xpos and feats.
            drop_empty: leave out the empty nodes (8.1), which the UD validator refuses without enhanced arcs.

        Raises:
            ValueError: ``heads``, ``labels`` or one of the ``tags`` do not have one entry a word, or a label or tag is
                empty or holds a tab or a line break.
        """
        text = self.text_with_parse(heads, labels, tags=tags, drop_empty=drop_empty)
        new_tags = {name: tuple(values) for name, values in tags.items()}
        return replace(self, words=replace(self.words.with_tree(heads, labels), **new_tags), text=text)

    def text_with_parse(
        self,
        heads: Sequence[int],
        labels: Sequence[str],
        *,
        tags: Mapping[str, Sequence[str]] = NO_TAGS,
        drop_empty: bool = False,
    ) -> str:
        """Return the text of the sentence with another tree, as for ``with_parse``, which takes longer."""
        counts = {name: len(values) for name, values in {"heads": heads, "labels": labels, **tags}.items()}
        if set(counts.values()) != {len(self.words)}:
            got = " and ".join(f"{count} {name}" for name, count in counts.items())
            raise ValueError(f"A parse must have one head and one label a word, got {got} for {len(self.words)} words.")
        for name, column in {"label": labels, **tags}.items():
            if "" in column or COLUMN_BREAKS.search(" ".join(column)):
                value = next(value for value in column if not value or COLUMN_BREAKS.search(value))
                raise TreeparseError(f"A {name} must have a character, and no tab or line break, got {value!r}.")
        mark, old_lines = self.mark_and_lines()
        lines, tree = [], zip(heads, labels, strict=True)
        new_tags = zip(*tags.values(), strict=True)
        for line in old_lines:
            parts = line.rsplit("\t", MISC - FEATS)  # the columns up to FEATS, HEAD, DEPREL, DEPS, MISC
            if len(parts) > 1:
                identifier = parts[0].partition("\t")[0]
                if identifier.isdecimal():
                    head, label = next(tree)
                    front = _with_tags(parts[0], dict(zip(tags, next(new_tags), strict=True))) if tags else parts[0]
                    line = f"{front}\t{EMPTY if head < 0 else head}\t{label}\t{EMPTY}\t{parts[-1]}"
                elif drop_empty and "." in identifier and not line.startswith("#"):
                    continue
            lines.append(line)
        return mark + "\n".join(lines)


def _with_tags(front: str, tags: Mapping[str, str]) -> str:
    """Return the columns up to FEATS with other tags."""
    columns = front.split("\t")
    for name, tag in tags.items():
        columns[_TAG_COLUMNS[name]] = tag
    return "\t".join(columns)


def read_conllu(
    path: str | Path | InMemory,
    *,
    require_trees: bool = False,
    partial: bool = False,
    single_root: bool = True,
    on_invalid: Callable[[DataError], None] | None = None,
) -> Iterator[ConlluSentence]:
    """Read the sentences of a CoNLL-U file, a compressed file or ``-`` (standard input), one at a time.

    Args:
        path: the file, or its bytes.
        require_trees: HEAD must hold a tree; otherwise a HEAD that is no node of the sentence becomes -1.
        partial: with ``require_trees``, a HEAD of ``_`` is unknown, -1; the other HEADs must be part of a tree. MISC
            may name several possible heads: ``Heads=2,5``.
        single_root: exactly one word of a tree must hang from the root.
        on_invalid: called with the first fault of every faulty sentence, which is left out; if None, the fault is
            raised.

    Raises:
        DataError: the lines of a sentence are not CoNLL-U, HEAD holds no tree although one is required, or the file has
            no sentence; with file, line and ``sent_id``.
        OSError: the file cannot be read.
    """
    check = TreeCheck(single_root, partial) if require_trees else None
    for result in scan_conllu(path, check):
        if isinstance(result, ConlluSentence):
            yield result
        elif on_invalid is None:
            raise result[0]
        else:
            on_invalid(result[0])


def scan_conllu(
    path: str | Path | InMemory, check: TreeCheck | None = None
) -> Iterator[ConlluSentence | tuple[DataError, ...]]:
    """Read as `read_conllu`, but yield all faults of a faulty sentence, or that a file has none, instead of raising.

    Args:
        path: as for `read_conllu`.
        check: the rules for heads; None reads any HEAD, and one that is no node of the sentence becomes -1.
    """
    try:
        for raw in raw_conllu(path):
            yield parse_conllu(raw, check)
    except DataError as error:
        if error.problem != NO_SENTENCE:
            raise
        yield (error,)


def raw_conllu(
    path: str | Path | InMemory, *, prompt: bool = False, span: range | None = None
) -> Iterator[RawSentence]:
    """Yield the sentences of a CoNLL-U file as bytes, each with its blank lines.

    Args:
        path: as for `read_conllu`.
        prompt: yield a sentence as soon as a blank line closes it, for input that is typed or comes from a program that
            waits. Further blank lines then belong to the next sentence, and are lost at the end of the file.
        span: yield only the sentences that start at these bytes of the file (from 0, decompressed).

    Raises:
        DataError: the file is compressed, or holds no sentence.
        OSError: the file cannot be read.
    """
    source, empty, end = display_name(path), True, 0
    with open_input(path) as stream:
        for ordinal, (line, block) in enumerate(_blocks(numbered_lines(stream, source), source, prompt)):
            empty, start, end = False, end, end + len(block)
            if span is not None and start >= span.stop:
                break
            if span is None or start >= span.start:
                yield RawSentence(block, source, line, ordinal)
    if empty:
        raise DataError(NO_SENTENCE, source=source)


def load_treebank(
    patterns: str | Path | Sequence[str | Path],
    *,
    require_trees: bool = True,
    partial: bool = False,
    single_root: bool = True,
    on_invalid: Callable[[DataError], None] | None = None,
) -> list[ConlluSentence]:
    """Read one or more files or globs (see `expand_paths`) as one treebank, with the options of `read_conllu`.

    Raises:
        TreeparseError: if a pattern matches no file, there is no pattern, or no sentence is valid.
        DataError: if a sentence is faulty and ``on_invalid`` is None.
    """
    if not patterns:
        raise TreeparseError("A treebank needs at least one file.")
    paths = expand_paths([patterns] if isinstance(patterns, str | Path) else patterns)
    read = functools.partial(read_conllu, require_trees=require_trees, partial=partial, single_root=single_root)
    sentences = [_interned(sentence) for path in paths for sentence in read(path, on_invalid=on_invalid)]
    if not sentences:
        raise TreeparseError(f"No sentence is valid in {', '.join(map(str, paths))}.")
    return sentences


def _interned(sentence: ConlluSentence) -> ConlluSentence:
    """Return the sentence with interned strings, because equal strings of a treebank then share memory."""
    words = sentence.words
    columns = {name: getattr(words, name) for name in ("forms", "upos", "xpos", "feats", "labels", "misc")}
    shared = {name: tuple(map(intern, values)) for name, values in columns.items() if values is not None}
    return replace(sentence, words=replace(words, **shared))


def write_conllu(path: str | Path, sentences: Iterable[ConlluSentence]) -> None:
    """Write sentences unchanged, all or none; ``.gz`` and the like compress, ``-`` is standard output.

    Between sentences of two files, a missing blank line is added and a byte order mark left out.
    """
    with atomic_output(path) as output:
        for text in joinable_texts(sentence.text for sentence in sentences):
            output.write(text)


def joinable_texts(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts of sentences as they follow each other in one file."""
    before = ""
    for text in texts:
        yield following_text(before, text) if before else text
        before = text


def following_text(before: str, text: str) -> str:
    """Return a text of CoNLL-U that follows another one: after a blank line, and without a byte order mark."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    if before.endswith(("\n\n", "\n\r\n")):
        return text
    return ("\n" if before.endswith("\n") else "\n\n") + text


def _blocks(stream: Iterable[tuple[int, bytes]], source: str, prompt: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each sentence's first line, and the sentence's bytes; without ``prompt`` no byte is lost."""
    lines: list[bytes] = []
    size, first, has_content, closed = 0, 1, False, False
    for number, line in stream:
        body = line.removeprefix(BYTE_ORDER_MARK.encode()) if number == 1 else line
        if len(body) < 3 and body in _BLANK_LINES:
            closed = has_content
        else:
            if closed:
                yield first, b"".join(lines)
                lines.clear()
                size, first, closed = 0, number, False
            has_content = True
        lines.append(line)
        size += len(line)
        if size > _MAX_SENTENCE:
            problem = f"the sentence has more than {_MAX_SENTENCE >> 20} MiB; is the empty line after it missing?"
            raise DataError(problem, source=source, line=first)
        if closed and prompt:
            yield first, b"".join(lines)
            lines.clear()
            size, first, has_content, closed = 0, number + 1, False, False
    if has_content:
        yield first, b"".join(lines)


def parse_conllu(raw: RawSentence, check: TreeCheck | None = None) -> ConlluSentence | tuple[DataError, ...]:
    """Return the sentence that bytes of a CoNLL-U file hold, or its faults; ``check`` as for `scan_conllu`."""
    block, source, first_line, ordinal, *_ = raw
    text = block.decode(errors="replace")
    body = (text.removeprefix(BYTE_ORDER_MARK) if first_line == 1 else text).split("\n")
    if "\r" in text:
        body = [line.removesuffix("\r") for line in body]
    start = next((index for index, line in enumerate(body) if line), 0)
    first_line, lines = first_line + start, [line for line in body[start:] if line]  # blank lines are at either end
    comments = (key_and_value(line) for line in lines if line.startswith("#"))
    sent_id = next((value for key, value in comments if key == "sent_id"), "") or None
    words = None
    faults = undecodable_lines(block, raw.line) if "\ufffd" in text else []
    if not faults:
        numbers, columns, faults = word_columns(lines, first_line)
        words = None if faults else _words(columns)
        if words is not None and check is not None:
            faults = check.faults(columns, words.heads or (), numbers)
            if check.partial and not faults:
                words = replace(words, allowed=possible_heads(columns[MISC]))
    if words is None or faults:
        return tuple(DataError(problem, source=source, line=line, sent_id=sent_id) for line, problem in faults)
    return ConlluSentence(words, text, sent_id, source, first_line, ordinal)


def _words(columns: Sequence[Sequence[str]]) -> Sentence:
    """Return the words with their ten columns; a HEAD that is no node of the sentence becomes -1."""
    forms, upos, xpos, feats, heads, labels, misc = map(tuple, _COLUMNS_OF_SENTENCES(columns))
    nodes = _nodes(len(forms))
    known_heads = tuple([nodes.get(head, -1) for head in heads])
    return Sentence(forms, upos, xpos, feats, known_heads, labels, misc=misc)


@functools.lru_cache(200)
def _nodes(words: int) -> dict[str, int]:
    """Return the nodes of a sentence by their numbers in HEAD."""
    return {str(node): node for node in range(words + 1)}


def key_and_value(comment: str) -> tuple[str, str]:
    """Return the key and the value of a comment ``# key = value``."""
    key, _, value = comment[1:].partition("=")
    return key.strip(), value.strip()


def is_row(line: str) -> bool:
    """Return whether a line of a sentence holds columns: it is no comment and not blank."""
    return "\t" in line and not line.startswith("#")


def is_word_row(line: str) -> bool:
    """Return whether a line of a sentence holds a word, not a multiword token or an empty node."""
    return is_row(line) and line.split("\t", 1)[ID].isdecimal()
