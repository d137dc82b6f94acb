"""What ``treeparse predict --head-sets`` asks for: the arguments, and the threshold of a model."""

import argparse
from typing import TYPE_CHECKING

from treeparse.cli.common import number
from treeparse.errors import TreeparseError

if TYPE_CHECKING:
    from treeparse.model import Ensemble, Parser

EXPLAINED = """\
With --head-sets 0.05 MISC of words gets Heads=2,5: the heads that are so probable that the true one is among them for
95% of the words, on average; HEAD is always one of them. How probable that is, trees say that the model was not trained
on, --held-out (split conformal prediction). It holds for words that could as well have been among those: of the same
kind of text. Training takes such sets for what is known of heads."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--head-sets`` and ``--held-out``."""
    parser.add_argument(
        "--head-sets", type=_share, metavar="ALPHA", help="write sets that hold the head of 1 - ALPHA of the words"
    )
    parser.add_argument(
        "--held-out", action="append", default=[], metavar="GOLD", help="CoNLL-U with trees for --head-sets; a glob"
    )


def _share(text: str) -> float:
    value = number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share of words, above 0 and below 1")
    return value


def check(args: argparse.Namespace) -> None:
    """Raise where one of the two came without the other."""
    if (args.head_sets is None) != (not args.held_out):
        raise TreeparseError("Sets of heads need both, --head-sets ALPHA and --held-out GOLD: how sure, and by what.")


def threshold(parser: "Parser | Ensemble", args: argparse.Namespace) -> float | None:
    """The probability from which on a head is in the set, found once; None without ``--head-sets``."""
    from treeparse.data import load_treebank
    from treeparse.metrics import conformal_threshold

    if args.head_sets is None:
        return None
    if not hasattr(args, "head_threshold"):
        held_out = [sentence.words for sentence in load_treebank(args.held_out, single_root=False)]
        found = parser.score_trees(held_out, batch_words=args.batch_words)
        probs = [prob for parse in found for prob in parse.arc_probs or ()]
        args.head_threshold = conformal_threshold(probs, args.head_sets)
    return args.head_threshold
