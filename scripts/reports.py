"""Where the tables and plots of benchmarks and reproductions go."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path


def parse_with_plot(parser: ArgumentParser, arguments: Sequence[str] | None) -> Namespace:
    """Parse ``--output`` besides, beside whose file a plot is to be drawn."""
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here and the plot beside it")
    options = parser.parse_args(arguments)
    if options.output and find_spec("matplotlib") is None:
        parser.error("the plot needs matplotlib: pip install treeparse[bench]")
    return options


def report(lines: Iterable[str], output: Path | None) -> None:
    """Print the lines as they are measured, and write all of them in the end."""
    kept = []
    for line in lines:
        print(line, flush=True)
        kept.append(line)
    if output:
        output.write_text("\n".join(kept) + "\n", encoding="utf-8")
