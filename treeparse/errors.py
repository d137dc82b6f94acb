"""The package's errors, and the endings of messages that suggest a name. Imports no torch."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

N = TypeVar("N", bound=str)


class TreeparseError(ValueError):
    """Something that the caller can mend; its message is a whole sentence. Commands print it without a traceback."""


class DataError(TreeparseError):
    """A fault in an input file; the message starts with file, line and ``sent_id`` as far as they are known."""

    def __init__(
        self, problem: str, *, source: str | None = None, line: int | None = None, sent_id: str | None = None
    ) -> None:
        self.problem, self.source, self.line, self.sent_id = problem, source, line, sent_id
        place = ":".join(str(part) for part in (source, line) if part is not None)
        sentence = f"sentence {sent_id}" if sent_id is not None else ""
        super().__init__(": ".join(part for part in (place, sentence, problem) if part))


class NoTreeError(TreeparseError):
    """A batch item has no spanning tree of finite score."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that does not exist: ``; did you mean ...?``, or nothing if none is like it."""
    [*close] = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def name_among(name: str, known: Sequence[N], problem: str) -> N:
    """The known name that is meant, hyphen or underscore; for any other raises ``problem``, a sentence's start."""
    spelled = str(name).replace("-", "_")
    for each in known:
        if spelled == each:
            return each
    raise TreeparseError(f"{problem}: choose one of {', '.join(known)}" + (did_you_mean(spelled, known) or "."))
