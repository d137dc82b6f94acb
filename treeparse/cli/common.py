"""Types of arguments, and arguments that several commands have."""

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from treeparse.data.compression import check_compression
from treeparse.names import DECODERS, LISTING_DECODERS, Decoder, decoder_named, listing_decoder_named
from treeparse.user_code import check_module, import_code

T = TypeVar("T")

INTERRUPTED = 128 + 2  # as the shell reports SIGINT

LARGEST_SEED = 2**63 - 1
MOST_THREADS = 1024
MOST_RESAMPLES = 10**7


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as "2 files"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def positive(text: str) -> int:
    """The type of an argument: a whole number, 1 or more."""
    return _whole(text, least=1)


def seed(text: str) -> int:
    """The type of an argument: a whole number from 0 to 2**63 - 1."""
    return _whole(text, least=0, most=LARGEST_SEED)


def threads(text: str) -> int:
    """The type of an argument: a number of threads."""
    return _whole(text, least=1, most=MOST_THREADS)


def resamples(text: str) -> int:
    """The type of an argument: a number of samples of a bootstrap, which are all in memory at once."""
    return _whole(text, least=1, most=MOST_RESAMPLES)


def port(text: str) -> int:
    """The type of an argument: a port to listen at, 0 for any free one."""
    return _whole(text, least=0, most=2**16 - 1)


def number(text: str) -> float:
    """Return the number that a text holds, or NaN, which every type of argument refuses."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def output_file(text: str) -> str:
    """The type of an argument: a file to write."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"must name a file, got {text!r}")
    if text.endswith(".zst"):
        named(check_compression, text)
    return text


def _whole(text: str, *, least: int, most: int | None = None) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 100 else -1
    if number < least or (most is not None and number > most):
        bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise argparse.ArgumentTypeError(f"must be a whole number {bounds}, got {text!r:.100}")
    return number


def decoder(text: str) -> Decoder:
    """The type of an argument: any decoder."""
    return named(decoder_named, text)


def listing_decoder(text: str) -> Decoder:
    """The type of an argument: a decoder that has lists of trees."""
    return named(listing_decoder_named, text)


def named(look_up: Callable[[str], T], text: str) -> T:
    """Return what has a name; raise an error of argparse if nothing has it."""
    try:
        return look_up(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


@contextmanager
def modules_of_current_folder() -> Iterator[None]:
    """Make modules of the current folder importable, after all installed modules."""
    before = list(sys.path)
    sys.path.append(os.getcwd())
    try:
        yield
    finally:
        sys.path[:] = before


def add_overwrite_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--overwrite-input``."""
    parser.add_argument(
        "--overwrite-input", action="store_true", help="let an output replace an input, once it is complete"
    )


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
    parser.add_argument(
        "--decoder",
        type=decoder,
        metavar=f"{{{','.join(DECODERS)}}}",
        help="which tree is the parse: the best one, the best one without crossing arcs, or the one of the highest "
        "expected LAS (default: as the model's config says)",
    )


def add_listing_decoder_argument(parser: argparse.ArgumentParser, *, help: str) -> None:
    """Declare ``--decoder``, the choice of the trees that are listed."""
    parser.add_argument("--decoder", type=listing_decoder, metavar=f"{{{','.join(LISTING_DECODERS)}}}", help=help)
