"""The models of a command: one parser, or several that parse as one."""

import argparse
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from treeparse.batch import pick_device
from treeparse.cli.common import add_choice_argument, add_import_argument, check_modules, import_modules
from treeparse.corpus.sentences import mean_treebank_remark
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.model.folder import check_local_model
from treeparse.names import (
    COMBINATIONS,
    LISTING_COMBINATIONS,
    PRECISIONS,
    combination_named,
    listing_combination_named,
    precision_named,
)
from treeparse.progress import Console
from treeparse.shipped import shipped_model

SEVERAL = """\
Several models, one folder after the other, parse as one: by the mean of their scores (--combine scores, a product of
experts) or of the log probabilities of labelled arcs (log_probs). They must be trained for the same kind of trees and
may differ in everything else; labels are matched by name."""

EXPECTED_TREE = """\
With --combine marginals and any decoder, the parse is the tree of the highest expected LAS under the mean of the
models' probabilities."""


def add_model_arguments(parser: argparse.ArgumentParser, *, lists_of_best: bool = False) -> None:
    """Declare ``--combine``, ``--precision`` and ``--import``; ``lists_of_best`` restricts ``--combine``."""
    check = listing_combination_named if lists_of_best else combination_named
    names = LISTING_COMBINATIONS if lists_of_best else COMBINATIONS
    add_choice_argument(
        parser,
        "--combine",
        check,
        names,
        help="what several models average to parse as one, see below (default: scores)",
    )
    add_precision_argument(parser)
    add_import_argument(parser)


def add_precision_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--precision``, of the scores."""
    add_choice_argument(
        parser,
        "--precision",
        precision_named,
        PRECISIONS,
        help="precision of the scorer's products: 32-bit, bfloat16, or 8-bit on CPUs (trees may change a little); auto "
        "is bfloat16 if the device has instructions for it (default: 32)",
        default="32",
    )


def leading_models(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split arguments into folders of models, the first word and the folders that follow it, and the other words."""
    count = next((index for index, word in enumerate(words) if index and not os.path.isdir(word)), len(words))
    return list(words[:count]), list(words[count:])


def models_and_files(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split arguments into folders of models and files, which argparse cannot tell apart; raise if no file follows."""
    models, files = leading_models(words)
    if not files:
        raise TreeparseError(
            f"There is no input after the folders {', '.join(models)}, which are read as models: name files of "
            "sentences, or - for standard input."
        )
    return models, files


def tokenizer_of(models: Sequence[str]) -> str | None:
    """Return spaCy's tokenizer of the language of a model that comes with treeparse, if spaCy is installed."""
    comes_with_it = len(models) == 1 and shipped_model(models[0]) is not None
    return f"spacy:{models[0]}" if comes_with_it and find_spec("spacy") is not None else None


def check_models(directories: Sequence[str], args: argparse.Namespace) -> None:
    """Raise if a folder holds no model or a module of ``--import`` does not exist."""
    check_modules(args)
    for directory in directories:
        check_local_model(directory)


def load_model(directory: str | Path, args: argparse.Namespace, *, mapped: bool = False) -> Parser:
    """Return the parser of a folder, on the device of the arguments; ``mapped`` as for `Parser.from_pretrained`."""
    with Console(quiet=args.quiet).during("loading the model"):
        device = pick_device(args.device)
        import_modules(args)
        return Parser.from_pretrained(directory, mapped=mapped).to(device)


def warn_of_mean_treebank(model: Parser | Ensemble, treebank: str | None, args: argparse.Namespace) -> None:
    """Say that no treebank is named, if the model was trained on several."""
    if remark := mean_treebank_remark(model, treebank):
        Console(quiet=args.quiet).remark(f"warning: {remark}")


def load_models(directories: Sequence[str], args: argparse.Namespace, *, mapped: bool = False) -> Parser | Ensemble:
    """Return the parser of a folder, or the ensemble of several, with the device and precision of the arguments."""
    parsers = [load_model(directory, args, mapped=mapped) for directory in directories]
    if len(parsers) == 1 and args.combine is None:
        return parsers[0].use_precision(args.precision)
    return Ensemble(parsers, args.combine or "scores").use_precision(args.precision)
