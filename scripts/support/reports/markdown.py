"""Where the tables and plots of benchmarks and reproductions go."""

import os
import platform
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

Plot = Callable[[Path], None]  # draws the picture beside a report, from its tables


@dataclass(frozen=True)
class Opening:
    """How a report begins: what it shows, in five lines, and then whatever else there is to know."""

    title: str
    measured: str
    on: str
    read: str
    repeat: str
    details: str = ""

    def text(self, machine: str | None = None) -> str:
        """The lines, with this machine's description or another's."""
        points = {
            "Measured": self.measured,
            "On": self.on,
            "To read": self.read,
            "Machine": machine or this_machine(),
            "To repeat": f"`{self.repeat}`",
        }
        lines = [f"# {self.title}", "", *(f"- **{name}**: {point}" for name, point in points.items())]
        return "\n".join([*lines, *(["", self.details] if self.details else [])])


def this_machine() -> str:
    """The processor, its cores, and versions."""
    return f"{cpu_name()}, {os.cpu_count()} cores, torch {version('torch').partition('+')[0]}."


def cpu_name() -> str:
    """The processor, as Linux names it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def parse_with_plot(parser: ArgumentParser, arguments: Sequence[str] | None) -> Namespace:
    """Parse ``--output`` besides, beside whose file a plot is to be drawn, and ``--replot``."""
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here and the plot beside it")
    parser.add_argument(
        "--replot", type=Path, metavar="FILE", help="measure nothing: draw the plot of these tables anew"
    )
    options = parser.parse_args(arguments)
    if (options.output or options.replot) and find_spec("matplotlib") is None:
        parser.error("the plot needs matplotlib: pip install treeparse[bench]")
    return options


def report(lines: Iterable[str], output: Path | None, plot: Plot | None = None) -> None:
    """Print the lines as they are measured, write all of them in the end, and draw their picture if there is one."""
    kept = []
    for line in lines:
        print(line, flush=True)
        kept.append(line)
    if output:
        output.write_text("\n".join(kept) + "\n", encoding="utf-8")
        if plot:
            plot(output)
