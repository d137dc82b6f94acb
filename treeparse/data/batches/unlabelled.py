"""Unlabelled text of any size: streamed, a number of words an epoch, and read again from the start at its end."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.files import check_rereadable, expand_paths, plain_name
from treeparse.data.tokenised import read_text
from treeparse.errors import DataError, TreeparseError
from treeparse.sentence import Sentence

TEXT_SUFFIXES = (".txt", ".tok")
DIGESTED = 1 << 20  # bytes of each file


@dataclass(frozen=True, slots=True)
class UnlabelledSentence:
    """A sentence without a tree; ``index`` is its index in the whole text, ``name`` its file and line."""

    words: Sentence
    index: int
    name: str


class UnlabelledText:
    """The sentences of files, read in order when needed; after the last file reading starts again at the first.

    A file whose name ends in ``.txt`` or ``.tok``, before a suffix of compression, is tokenised text, one sentence a
    line. Other files are CoNLL-U, whose trees are ignored. Let the endless text repeat all files: epoch ``e`` takes the
    sentences with at least ``e * words`` and less than ``(e + 1) * words`` words before them. The sentences of an epoch
    depend on the files and the epoch alone.

    Args:
        patterns: files or globs, see `expand_paths`.
        words: number of words of an epoch.
        max_words: longer sentences are left out.
        on_invalid: called with the fault of a faulty sentence, which is left out, each time that it is read; if None,
            the fault is raised.

    Raises:
        TreeparseError: a pattern matches no file, or a file cannot be read more than once.
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
        self.paths: list[Path] = expand_paths(patterns)
        for path in self.paths:
            check_rereadable(path, "every epoch reads unlabelled text on")
        self.words, self.max_words, self.on_invalid = max(words, 1), max_words, on_invalid
        self._epoch: int | None = None
        self._share: list[UnlabelledSentence] = []
        self._rewind()

    def share(self, epoch: int) -> Sequence[UnlabelledSentence]:
        """Return the sentences of an epoch, from 0; reading continues after the previous call's epoch if it is earlier.

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

    def name(self, index: int) -> str:
        """Return the file and line of a sentence of the epoch that `share` returned last."""
        return next(sentence.name for sentence in self._share if sentence.index == index)

    def digests(self) -> list[tuple[int, str]]:
        """Return the size of each file in bytes and a digest of its first MiB, by which a run recognises the files."""
        digests = []
        for path in self.paths:
            with path.open("rb") as stream:
                digests.append((path.stat().st_size, hashlib.sha256(stream.read(DIGESTED)).hexdigest()))
        return digests

    def once(self) -> Iterator[ConlluSentence]:
        """Yield the sentences of all files once, with their trees, except those that are too long.

        Raises:
            DataError: a sentence is faulty and ``on_invalid`` is not given.
        """
        for path in self.paths:
            read = read_text if plain_name(path).endswith(TEXT_SUFFIXES) else read_conllu
            for sentence in read(path, on_invalid=self.on_invalid):
                if len(sentence.words) <= self.max_words:
                    yield sentence

    def _rewind(self) -> None:
        self._done = self._before = 0  # words of the endless text, to here and to the start of this pass
        self._pass = self._one_pass()

    def _read_to(self, end: int, *, skip: bool = False) -> Iterator[UnlabelledSentence]:
        """Yield the sentences before word ``end`` of the endless text; with ``skip``, whole passes are not read."""
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
        for index, sentence in enumerate(self.once()):
            words = sentence.words
            bare = Sentence(words.forms, words.upos, words.xpos, words.feats)
            yield UnlabelledSentence(bare, index, f"{sentence.source}:{sentence.line}")
