"""What several commands share: types of arguments and exit codes."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treeparse.trees.decoders import Decoder

INTERRUPTED = 128 + 2  # as the shell reports SIGINT
TERMINATED = 128 + 15  # as it reports SIGTERM

# The decoders as users write them, and the parser's names of them.
DECODERS: "dict[str, Decoder]" = {
    "nonprojective": "nonprojective",
    "projective": "projective",
    "minimum-risk": "minimum_risk",
}


def positive(text: str) -> int:
    """The type of an argument: a whole number, 1 or more."""
    return _whole(text, least=1)


def not_negative(text: str) -> int:
    """The type of an argument: a whole number, 0 or more."""
    return _whole(text, least=0)


def _whole(text: str, *, least: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() else -1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, {least} or more")
    return number


def add_decoder_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--decoder``, the choice of a parse among all trees."""
    parser.add_argument(
        "--decoder",
        choices=tuple(DECODERS),
        help="which tree is the parse: the best one, the best one without crossing arcs, or the one of the highest "
        "expected LAS (default: as the model's config says)",
    )


def decoder_name(args: argparse.Namespace) -> "Decoder | None":
    """The parser's name of the decoder that was asked for; None for the model's own."""
    return None if args.decoder is None else DECODERS[args.decoder]
