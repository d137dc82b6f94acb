"""The models of a command: one parser, or several that parse as one."""

import argparse
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from treeparse.cli.common import check_modules, import_modules, named
from treeparse.model.folder.hub import check_local_model
from treeparse.names import (
    COMBINATIONS,
    LISTING_COMBINATIONS,
    PRECISIONS,
    Combination,
    Precision,
    combination_named,
    listing_combination_named,
    precision_named,
)
from treeparse.progress import Announcer

if TYPE_CHECKING:
    from treeparse.model import Ensemble, Parser

SEVERAL = """\
Several models, one folder after the other, parse as one: by the mean of their scores (--combine scores, a product of
experts) or of the log probabilities of labelled arcs (log_probs). They must be trained for the same kind of trees, and
may differ in everything else; labels are matched by name."""

EXPECTED_TREE = """\
With --combine marginals and any decoder, the parse is the tree of the highest expected LAS under the mean of the
probabilities of the models."""


def add_combine_argument(parser: argparse.ArgumentParser, *, lists: bool = False) -> None:
    """Declare ``--combine``; with ``lists``, of those ways that have lists of the best trees."""
    known = LISTING_COMBINATIONS if lists else COMBINATIONS
    parser.add_argument(
        "--combine",
        type=_listing_combination if lists else _combination,
        metavar=f"{{{','.join(known)}}}",
        help="several models parse by the mean of these, see below (default: scores)",
    )


def _combination(text: str) -> Combination:
    return named(combination_named, text)


def _listing_combination(text: str) -> Combination:
    return named(listing_combination_named, text)


def add_precision_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--precision``, of the scores."""
    parser.add_argument(
        "--precision",
        type=_precision,
        default="32",
        metavar=f"{{{','.join(PRECISIONS)}}}",
        help="of the scorer's products: single, bfloat16, eight bits (on CPUs; trees may change a little), or auto: "
        "bfloat16 where the device has instructions for it (default: 32)",
    )


def _precision(text: str) -> Precision:
    return named(precision_named, text)


def leading_models(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split arguments into folders of models, the first word and the folders that follow it, and the other words."""
    count = next((place for place, word in enumerate(words) if place and not os.path.isdir(word)), len(words))
    return list(words[:count]), list(words[count:])


def check_models(directories: Sequence[str], args: argparse.Namespace) -> None:
    """Raise, before torch is loaded, if a folder holds no model or a module of ``--import`` does not exist."""
    check_modules(args)
    for directory in directories:
        check_local_model(directory)


def load_model(directory: str | Path, args: argparse.Namespace) -> "Parser":
    """Return the parser of a folder, on the device of the arguments."""
    with _announced(args):
        from treeparse.batch import pick_device
        from treeparse.model import Parser

        import_modules(args)
        return Parser.from_pretrained(directory).to(pick_device(args.device))


def load_models(directories: Sequence[str], args: argparse.Namespace) -> "Parser | Ensemble":
    """Return the parser of a folder, or the ensemble of several, with the device and precision of the arguments."""
    if len(directories) == 1 and args.combine is None:
        return load_model(directories[0], args).use_precision(args.precision)
    with _announced(args):
        from treeparse.batch import pick_device
        from treeparse.model import Ensemble

        import_modules(args)
        model = Ensemble.from_pretrained(directories, args.combine or "scores")
        return model.to(pick_device(args.device)).use_precision(args.precision)


def _announced(args: argparse.Namespace) -> AbstractContextManager[None]:

    return Announcer(quiet=args.quiet).during("loading the model")
