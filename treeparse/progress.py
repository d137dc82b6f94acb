"""What is shown of long work: progress bars on terminals of any width, and lines that say what takes long."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from tqdm import tqdm

UNKNOWN_WIDTH, UNKNOWN_HEIGHT = 80, 24  # of a terminal that does not know its own
DRAWN_EVERY = 0.1  # seconds, at most
SILENCE = 2.0  # seconds, after which a command says what it is doing
SHORT = 0.5  # seconds of work that is never announced
NARROW = len("100%|█| 00:00:00 left")  # what a bar shows on any terminal

Base = tqdm[NoReturn] if TYPE_CHECKING else tqdm


class Bar(Base):
    """A progress bar that is gone once it is closed; ``hidden`` ones show nothing."""

    def __init__(self, total: int | None, *, stream: TextIO, hidden: bool, **options: Any) -> None:
        self.stream = stream
        # miniters: after a long step tqdm would show nothing until there are as many again.
        # nrows: on terminals that do not know theirs it would show nothing at all.
        options = {"leave": False, "mininterval": DRAWN_EVERY, "miniters": 1, "nrows": UNKNOWN_HEIGHT, **options}
        super().__init__(total=total, file=stream, disable=hidden, **options)

    @property
    def format_dict(self) -> dict[str, Any]:
        """What tqdm fills its format with."""
        return {**super().format_dict, "ncols": columns(self.stream)}


def columns(stream: TextIO) -> int:
    """The width of lines on a terminal, which may change, or may not be known."""
    try:
        found = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        found = 0
    return (found or UNKNOWN_WIDTH) - 1  # in the last column some terminals begin a new line


class ParsingBar(Bar):
    """Shows on a terminal the number of sentences parsed, words a second and, where it can be known, the time left."""

    def __init__(self, total: int | None, *, hidden: bool, remark: str = "") -> None:
        """``total`` is the size of all sentences in any unit, None where it is unknown; the remark is shown besides."""
        self.sentences = self.words = 0
        self.remark = remark
        form = "{percentage:3.0f}%|{bar}| {remaining} left{postfix}" if total else "{elapsed}{postfix}"
        hidden = hidden or not sys.stderr.isatty()
        super().__init__(total, stream=sys.stderr, hidden=hidden, bar_format=form, smoothing=0)

    @property
    def format_dict(self) -> dict[str, Any]:
        """What tqdm fills the format with."""
        shown = super().format_dict
        speed = self.words / shown["elapsed"] if shown["elapsed"] else 0.0
        parts = [f"{self.sentences:,} sentences", f"{speed:,.0f} words/s", *filter(None, [self.remark])]
        while NARROW + sum(len(", " + part) for part in parts) > shown["ncols"] and parts:
            parts.pop()  # whole: half a number would be another one
        return shown | {"postfix": ", ".join(parts)}

    def advance(self, sentences: int, words: int, size: int) -> None:
        """Count more sentences as parsed, with their words and their size."""
        self.sentences += sentences
        self.words += words
        self.update(size)

    def say(self, remark: str) -> None:
        """Show another remark."""
        self.remark = remark
        self.refresh()


@contextmanager
def parsing_bar(
    sentences: Sequence[Sized], *, hidden: bool, remark: str = ""
) -> Iterator[Callable[[Sequence[int]], None]]:
    """A bar for sentences that are all at hand; gives what moves it, the argument ``progress`` of ``Parser.parse``."""
    with ParsingBar(sum(map(len, sentences)), hidden=hidden, remark=remark) as bar:

        def advance(indices: Sequence[int]) -> None:
            words = sum(len(sentences[index]) for index in indices)
            bar.advance(len(indices), words, words)

        yield advance


class Announcer:
    """Says on a terminal what a command is doing, once it has said nothing for a while."""

    def __init__(self, *, quiet: bool) -> None:
        self.hidden = quiet or not sys.stderr.isatty()
        self.heard = time.monotonic()

    @contextmanager
    def during(self, work: str) -> Iterator[None]:
        """Announce the work of the block, such as "loading the model", if it takes long."""
        timer = Timer(max(SHORT, self.heard + SILENCE - time.monotonic()), self._announce, [work])
        timer.daemon = True
        if not self.hidden:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _announce(self, work: str) -> None:
        tqdm.write(f"treeparse: {work} ...", file=sys.stderr)
        sys.stderr.flush()
        self.heard = time.monotonic()


class Console:
    """Writes lines above the progress bar of a long command; a quiet console writes nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.during = Announcer(quiet=quiet).during

    @property
    def shows_bars(self) -> bool:
        """Whether standard output is a terminal that may show a progress bar."""
        return not self.quiet and sys.stdout.isatty()

    def bar(self, total: int, unit: str) -> Bar:
        """Return a progress bar on standard output, which is gone at its end and hidden unless `shows_bars`."""
        return Bar(total, stream=sys.stdout, hidden=not self.shows_bars, unit=unit, unit_scale=True)

    def remark(self, line: str) -> None:
        """Write a line to standard error."""
        if not self.quiet:
            tqdm.write(f"treeparse: {line}", file=sys.stderr)

    def say(self, line: str) -> None:
        """Write a line to standard output."""
        if not self.quiet:
            tqdm.write(line)
            sys.stdout.flush()
