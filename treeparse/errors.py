"""The errors of the package, and messages that suggest a name. Imports no torch."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from typing import Self, TypeVar

N = TypeVar("N", bound=str)


class TreeparseError(ValueError):
    """An error that the caller can correct. Its message is a sentence, which commands print without a traceback."""


class DataError(TreeparseError):
    """A fault in an input file; the message starts with file, line and ``sent_id`` as far as they are known."""

    problem: str
    source: str | None
    line: int | None
    sent_id: str | None

    def __init__(
        self, problem: str, *, source: str | None = None, line: int | None = None, sent_id: str | None = None
    ) -> None:
        self.problem, self.source, self.line, self.sent_id = problem, source, line, sent_id
        place = ":".join(str(part) for part in (source, line) if part is not None)
        sentence = f"sentence {sent_id}" if sent_id is not None else ""
        super().__init__(": ".join(part for part in (place, sentence, problem) if part))

    def at(self, source: str) -> Self:
        """Return the fault of a file of another name."""
        return type(self)(self.problem, source=source, line=self.line, sent_id=self.sent_id)

    def __reduce__(self) -> tuple[object, ...]:
        place = {"source": self.source, "line": self.line, "sent_id": self.sent_id}
        return partial(type(self), **place), (self.problem,)  # for errors of another process


class NoTreeError(TreeparseError):
    """A batch item has no spanning tree of finite score."""


class NoItemError(TreeparseError, IndexError):
    """An index selects what is not in a batch."""


class MissingPackageError(TreeparseError, ImportError):
    """A package that something needs is not installed."""


@contextmanager
def naming_missing_packages(what: str) -> Iterator[None]:
    """Say in a sentence which package of others ``what`` needs, where an import in the block finds none.

    Raises:
        MissingPackageError: instead of a ``ModuleNotFoundError``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "treeparse"):
            raise
        name = {"yaml": "PyYAML"}.get(package, package.replace("_", "-"))
        raise MissingPackageError(
            f"{what} needs the package {name}, which is not installed: pip install {name} brings it, and pip install "
            "treeparse all that treeparse needs."
        ) from error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean ...?`` with the known name that is most like an unknown one, or "" if none is like it."""
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def name_among(name: str, known: Sequence[N], problem: str) -> N:
    """Return the known name that equals a name up to hyphens; if none does, raise an error that starts ``problem``."""
    spelled = str(name).replace("-", "_")
    for candidate in known:
        if spelled == candidate:
            return candidate
    raise TreeparseError(f"{problem}: choose one of {', '.join(known)}" + (did_you_mean(spelled, known) or "."))
