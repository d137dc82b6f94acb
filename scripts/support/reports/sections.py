"""Reports that are measured in parts: what is measured anew takes its place, all else stays as it stood."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from scripts.support.reports.markdown import Opening, this_machine

HEADING = "\n## "
MACHINE = "- **Machine**: "


@dataclass(frozen=True)
class Section:
    """Tables that are measured together: what all their headings begin with, and the lines, which start with one."""

    heading: str
    lines: Callable[[], Iterable[str]]


def renewed(
    before: str,
    opening: Opening,
    sections: Mapping[str, Section],
    chosen: Collection[str],
    closing: str,
    here: str | None = None,
) -> Iterator[str]:
    """The lines of a report whose chosen sections are measured now, and whose others are those of the report before.

    The opening keeps the machine of the report before; tables that were measured on another one say so, on the one that
    is ``here``, or this machine as its processor describes it. Sections that
    are not chosen and were not there are left out, as are tables that belong to no section.
    """
    here = here or this_machine()
    machine = machine_of(before) or here
    note = "" if machine == here else f"\nMeasured on {here}"
    yield opening.text(machine)
    for name, section in sections.items():
        if name in chosen:
            yield from (with_note(line, note) for line in section.lines())
        else:
            yield from (block for block in blocks(before) if block.startswith(HEADING + section.heading))
    yield closing


def machine_of(report: str) -> str:
    """The machine in a report's opening, nothing if there is no report."""
    lines = (line for line in report.splitlines() if line.startswith(MACHINE))
    return next(lines, "").removeprefix(MACHINE)


def blocks(report: str) -> list[str]:
    """A report's tables, each from the empty line above its heading to the last line before the next heading's."""
    _, *found = f"\n{report}".split(HEADING)
    return [HEADING + text.rstrip("\n") for text in found]


def with_note(line: str, note: str) -> str:
    """The line, with the note below its heading if it has one."""
    if not line.startswith(HEADING) or not note:
        return line
    heading, _, rest = line.removeprefix("\n").partition("\n")
    return f"\n{heading}\n{note}\n{rest}"
