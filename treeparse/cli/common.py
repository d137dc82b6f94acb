"""Types of arguments, arguments that several commands have, and the text of numbers and tables that they print."""

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from treeparse.data.files import check_compression
from treeparse.names import DECODERS, decoder_named
from treeparse.user_code import check_module, import_code

NOTHING = "-"  # in tables, instead of a score of no words
T = TypeVar("T")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as "2 files"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, with the first column left-aligned and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def percent(share: float, *, signed: bool = False) -> str:
    """Return a share in [0, 1] as a percentage with two decimals, with its sign if ``signed``; `NOTHING` for NaN."""
    if math.isnan(share):
        return NOTHING
    return f"{100 * share:+z.2f}" if signed else f"{100 * share:.2f}"


def tsv_line(values: Sequence[object]) -> str:
    """Return values as a tab-separated line; tabs and line breaks in a value become spaces."""
    return "\t".join(re.sub(r"[\t\n\r]", " ", str(value)) for value in values) + "\n"


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return the type of an argument: a whole number, at least ``least`` and at most ``most``."""
    bounds = f"of {least} or more" if most is None else f"from {least} to {most}"

    def convert(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 100 else -1
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"must be a whole number {bounds}, got {text!r:.100}")
        return number

    return convert


positive: Callable[[str], int] = whole(1)
seed: Callable[[str], int] = whole(0, 2**63 - 1)


def real(rule: str, is_valid: Callable[[float], bool]) -> Callable[[str], float]:
    """Return the type of an argument: a number that is valid; ``rule`` says which numbers are, and NaN never is."""

    def convert(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not is_valid(number):
            raise argparse.ArgumentTypeError(f"must be {rule}, got {text!r}")
        return number

    return convert


def checked_by(check: Callable[[str], T]) -> Callable[[str], T]:
    """Return the type of an argument: what ``check`` returns for a text; its errors become errors of usage."""

    def convert(text: str) -> T:
        try:
            return check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def output_file(text: str) -> str:
    """The type of an argument: a file to write."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"must name a file, got {text!r}")
    if text.endswith(".zst"):
        checked_by(check_compression)(text)
    return text


@contextmanager
def modules_of_current_folder() -> Iterator[None]:
    """Make modules of the current folder importable, after all installed modules."""
    before = list(sys.path)
    sys.path.append(os.getcwd())
    try:
        yield
    finally:
        sys.path[:] = before


def add_choice_argument(
    parser: argparse.ArgumentParser,
    option: str,
    check: Callable[[str], object],
    choices: Collection[str],
    *,
    help: str,
    default: str | None = None,
) -> None:
    """Declare an option whose value ``check`` returns for a name; help lists the choices."""
    metavar = f"{{{','.join(choices)}}}"
    parser.add_argument(option, type=checked_by(check), default=default, metavar=metavar, help=help)


def add_output_argument(parser: argparse.ArgumentParser, help: str) -> None:
    """Declare ``-o``, by default standard output, and ``--overwrite-input``."""
    parser.add_argument("-o", "--output", type=output_file, default="-", metavar="OUT", help=f"{help} (default: -)")
    add_overwrite_argument(parser)


def add_overwrite_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--overwrite-input``."""
    parser.add_argument("--overwrite-input", action="store_true", help="let a complete output replace an input")


def add_batch_words_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--batch-words``."""
    parser.add_argument(
        "--batch-words",
        type=positive,
        default=5000,
        metavar="N",
        help="words of a batch, which the model scores at once (default: 5000)",
    )


def add_treebank_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--treebank``."""
    parser.add_argument(
        "--treebank",
        metavar="NAME",
        help="parse as this treebank is annotated, of a model that was trained on several (default: their mean)",
    )


def add_drop_empty_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--drop-empty``."""
    parser.add_argument("--drop-empty", action="store_true", help="leave out empty nodes (8.1), invalid without DEPS")


def add_import_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--import``, modules with the classes of custom encoders."""
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this module first, also from the current folder: it holds the class of a custom encoder",
    )


def check_modules(args: argparse.Namespace) -> None:
    """Raise if a module of ``--import`` does not exist; import none."""
    with modules_of_current_folder():
        for module in args.modules:
            check_module(module)


def import_modules(args: argparse.Namespace) -> None:
    """Import the modules of ``--import``."""
    with modules_of_current_folder():
        for module in args.modules:
            import_code(module)


def add_decoder_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--decoder``, the choice of a parse among all trees."""
    add_choice_argument(
        parser,
        "--decoder",
        decoder_named,
        DECODERS,
        help="which tree is the parse: the best one, the best one without crossing arcs, or the one of the highest "
        "expected LAS (default: as the model's config says)",
    )
