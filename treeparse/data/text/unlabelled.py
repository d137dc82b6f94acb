"""Unlabelled text of any size: streamed, so much of it an epoch, from its start again when it ends."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from treeparse.data.compression import plain_name
from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.files import expand_paths
from treeparse.data.text.tokenised import read_text
from treeparse.errors import DataError, TreeparseError
from treeparse.sentence import Sentence

TEXT_SUFFIXES = (".txt", ".tok")
DIGESTED = 1 << 20  # bytes of each file


@dataclass(frozen=True, slots=True)
class UnlabelledSentence:
    """A sentence without a tree; ``place`` is its place in the whole text, from 0, ``name`` its file and line."""

    words: Sentence
    place: int
    name: str


class UnlabelledText:
    """Sentences of files that are read as they are needed, in order, and from the first one again at their end.

    A file whose name ends in ``.txt`` or ``.tok``, or is that of such a file compressed, is tokenised text, a sentence
    a line; another is CoNLL-U, of which trees are ignored. Epoch ``e`` takes the sentences that begin behind ``e *
    words`` words of the endless text, and not behind ``(e + 1) * words``: a function of the files and the epoch alone.

    Args:
        patterns: files or globs, see `expand_paths`.
        words: of an epoch.
        max_words: a longer sentence is left out.
        on_invalid: is told of each faulty sentence, which is left out, every time that it is read; without it its fault
            is raised when it is met.

    Raises a ``TreeparseError`` where there is no such file, or none that can be read more than once.
    """

    def __init__(
        self,
        patterns: Sequence[str | Path],
        *,
        words: int,
        max_words: int,
        on_invalid: Callable[[DataError], None] | None = None,
    ) -> None:
        if not patterns:
            raise TreeparseError("Unlabelled text needs at least one file.")
        self.paths = expand_paths(patterns)
        for path in self.paths:
            if not path.is_file():
                raise TreeparseError(f"Unlabelled text is read more than once, so {path} cannot be: name a file.")
        self.words, self.max_words, self.on_invalid = max(words, 1), max_words, on_invalid
        self._epoch: int | None = None
        self._share: list[UnlabelledSentence] = []
        self._rewind()

    def share(self, epoch: int) -> Sequence[UnlabelledSentence]:
        """The sentences of an epoch, counted from 0; reads on where the last one ended, if it was an earlier one.

        Raises:
            TreeparseError: no sentence in the files can be used.
            DataError: a sentence is faulty and ``on_invalid`` is not given.
        """
        if epoch != self._epoch:
            start = epoch * self.words
            if self._epoch is None or epoch < self._epoch:
                self._rewind()
            for _ in self._read_to(start, skip=True):
                pass
            self._share = list(self._read_to(start + self.words))
            self._epoch = epoch
        return self._share

    def name(self, place: int) -> str:
        """File and line of a sentence of the epoch that was asked for last."""
        return next(sentence.name for sentence in self._share if sentence.place == place)

    def digests(self) -> list[tuple[int, str]]:
        """The size of each file in bytes and a digest of its first MiB: soon read, and enough to tell it apart."""
        digests = []
        for path in self.paths:
            with path.open("rb") as stream:
                digests.append((path.stat().st_size, hashlib.sha256(stream.read(DIGESTED)).hexdigest()))
        return digests

    def once(self) -> Iterator[ConlluSentence]:
        """Yield the sentences of all files once, as they stand there, without those that are too long.

        Raises:
            DataError: a sentence is faulty and ``on_invalid`` is not given.
        """
        for sentence in chain.from_iterable(map(self._sentences, self.paths)):
            if len(sentence.words) <= self.max_words:
                yield sentence

    def _rewind(self) -> None:
        self._done = self._before = 0  # words of the endless text, to here and to the start of this pass
        self._pass = self._one_pass()

    def _read_to(self, end: int, *, skip: bool = False) -> Iterator[UnlabelledSentence]:
        """The sentences that begin before ``end`` words of the endless text; to ``skip`` them, only some are read."""
        while self._done < end:
            if (sentence := next(self._pass, None)) is not None:
                self._done += len(sentence.words)
                yield sentence
                continue
            whole = self._done - self._before
            if not whole:
                raise TreeparseError(
                    f"No sentence in {', '.join(map(str, self.paths))} can be used: none is valid and has at most "
                    f"{self.max_words} words."
                )
            self._done += (end - self._done) // whole * whole if skip else 0
            self._before, self._pass = self._done, self._one_pass()

    def _one_pass(self) -> Iterator[UnlabelledSentence]:
        """Yield the sentences of all files once, without their trees."""
        for place, found in enumerate(self.once()):
            words = Sentence(found.words.forms, found.words.upos, found.words.xpos, found.words.feats)
            yield UnlabelledSentence(words, place, f"{found.source}:{found.line}")

    def _sentences(self, path: Path) -> Iterator[ConlluSentence]:
        read = read_text if plain_name(path).endswith(TEXT_SUFFIXES) else read_conllu
        return read(path, on_invalid=self.on_invalid)
