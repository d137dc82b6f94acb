"""Progress of long work: bars on terminals of any width, and lines that announce slow steps."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from tqdm import tqdm

from treeparse import terminal

UNKNOWN_WIDTH, UNKNOWN_HEIGHT = 80, 24  # assumed for a terminal that does not report its size
DRAWN_EVERY = 0.1  # seconds between two drawings, at least
SILENCE = 2.0  # seconds without output, after which a command announces its work
SHORT = 0.5  # seconds of work that is never announced
NARROW = len("100%|█| 00:00:00 left")  # the part of a bar that every terminal shows

Base = tqdm[NoReturn] if TYPE_CHECKING else tqdm


class Bar(Base):
    """A progress bar that disappears when it is closed; a ``hidden`` bar shows nothing."""

    def __init__(self, total: int | None, *, stream: TextIO, hidden: bool, **options: Any) -> None:
        self.stream = stream
        # Without miniters tqdm would draw nothing until a step as long as the longest so far; without nrows it would
        # draw nothing on terminals that do not report their height.
        options = {"leave": False, "mininterval": DRAWN_EVERY, "miniters": 1, "nrows": UNKNOWN_HEIGHT, **options}
        super().__init__(total=total, file=stream, disable=hidden, **options)

    @property
    def format_dict(self) -> dict[str, Any]:
        """The values of tqdm's format."""
        return {**super().format_dict, "ncols": columns(self.stream)}


def columns(stream: TextIO) -> int:
    """Return the present width of lines on a terminal."""
    try:
        width = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        width = 0
    return (width or UNKNOWN_WIDTH) - 1  # because some terminals begin a new line after the last column


class ParsingBar(Bar):
    """Shows on a terminal the number of sentences parsed, words a second and, for a known total, the time left."""

    def __init__(self, total: int | None, *, hidden: bool, remark: str = "") -> None:
        """``total`` is the size of all sentences in any unit, None if unknown; the bar ends with the remark."""
        self.sentences: int = 0
        self.words: int = 0
        self.remark = remark
        form = "{percentage:3.0f}%|{bar}| {remaining} left{postfix}" if total else "{elapsed}{postfix}"
        hidden = hidden or not sys.stderr.isatty()
        super().__init__(total, stream=sys.stderr, hidden=hidden, bar_format=form, smoothing=0)

    @property
    def format_dict(self) -> dict[str, Any]:
        """The values of tqdm's format."""
        shown = super().format_dict
        speed = self.words / shown["elapsed"] if shown["elapsed"] else 0.0
        parts = [f"{self.sentences:,} sentences", f"{speed:,.0f} words/s", *filter(None, [self.remark])]
        while NARROW + sum(len(", " + part) for part in parts) > shown["ncols"] and parts:
            parts.pop()  # the whole part, because half a number would be another number
        return shown | {"postfix": ", ".join(parts)}

    def advance(self, sentences: int, words: int, size: int) -> None:
        """Count more sentences as parsed, with their words and their size."""
        self.sentences += sentences
        self.words += words
        self.update(size)

    def say(self, remark: str) -> None:
        """Show another remark."""
        self.remark: str = remark
        self.refresh()


@contextmanager
def parsing_bar(
    sentences: Sequence[Sized], *, hidden: bool, remark: str = ""
) -> Iterator[Callable[[Sequence[int]], None]]:
    """Show a bar for a list of sentences; yield the function that moves it, the ``progress`` of ``Parser.parse``."""
    with ParsingBar(sum(map(len, sentences)), hidden=hidden, remark=remark) as bar:

        def advance(indices: Sequence[int]) -> None:
            words = sum(len(sentences[index]) for index in indices)
            bar.advance(len(indices), words, words)

        yield advance


class Console:
    """Writes lines above the progress bar of a long command; a quiet console writes nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._last_announced = time.monotonic()

    @property
    def shows_bars(self) -> bool:
        """Whether standard output is a terminal that may show a progress bar."""
        return not self.quiet and sys.stdout.isatty()

    def bar(self, total: int, unit: str) -> Bar:
        """Return a progress bar on standard output, hidden unless `shows_bars`."""
        return Bar(total, stream=sys.stdout, hidden=not self.shows_bars, unit=unit, unit_scale=True)

    def remark(self, line: str) -> None:
        """Write a line to standard error."""
        if not self.quiet:
            tqdm.write(terminal.message(f"treeparse: {line}"), file=sys.stderr)

    def say(self, line: str) -> None:
        """Write a line to standard output."""
        if not self.quiet:
            tqdm.write(terminal.line(line))
            sys.stdout.flush()

    @contextmanager
    def during(self, work: str) -> Iterator[None]:
        """Announce the work of the block, such as "loading the model", on a terminal that was silent for `SILENCE`."""
        if self.quiet or not sys.stderr.isatty():
            yield
            return
        timer = Timer(max(SHORT, self._last_announced + SILENCE - time.monotonic()), self._announce, [work])
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _announce(self, work: str) -> None:
        self.remark(f"{work} ...")
        sys.stderr.flush()
        self._last_announced = time.monotonic()
