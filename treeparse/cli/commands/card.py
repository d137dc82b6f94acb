"""``treeparse card``: write the card of a run's model, with its scores on test files."""

import argparse
from pathlib import Path

from treeparse import terminal
from treeparse.cli.common import add_import_argument, add_overwrite_argument
from treeparse.cli.models import check_models, load_model
from treeparse.corpus.request import check_outputs
from treeparse.data import load_treebank
from treeparse.data.outputs import check_folder
from treeparse.data.parses import with_parses
from treeparse.metrics import AttachmentReport, attachment_scores
from treeparse.model import Parser
from treeparse.model.folder import CARD, RUN_MODEL
from treeparse.progress import parsing_bar
from treeparse.training.release import write_card
from treeparse.training.run_directory import RunDirectory

EPILOG = """examples:
  treeparse card runs/english en-test.conllu
  treeparse card runs/english en-test.conllu other-test.conllu --model-name en_ewt

The card, README.md in the model's folder, describes the model, its scores, its training data with their licence, and
its training. Training writes a card without test scores. Writing the card again loses changes made by hand."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="the run's folder, train's --output")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="CoNLL-U with gold trees, to be parsed and scored")
    parser.add_argument("--model-name", metavar="NAME", help="the card's title (default: the name of the run's folder)")
    add_overwrite_argument(parser)
    add_import_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Parse the test files and write the card."""
    model = Path(args.run, RUN_MODEL)
    check_folder(args.run)
    check_folder(model)
    check_outputs([str(model / CARD)], inputs=args.tests, others=[args.run], overwrite_input=args.overwrite_input)
    check_models([args.run], args)
    run = RunDirectory(args.run)
    parser = load_model(run.model, args)
    tests = {Path(path).name: _scores(parser, path, args) for path in args.tests}
    card = write_card(run.model, run, parser, run.read_history(), tests, title=args.model_name)
    if not args.quiet:
        terminal.warn(f"card: {card}")
    return 0


def _scores(parser: Parser, path: str, args: argparse.Namespace) -> AttachmentReport:
    gold = [sentence.words for sentence in load_treebank(path)]
    with parsing_bar(gold, hidden=args.quiet) as progress:
        parses = parser.parse(gold, progress=progress)
    return attachment_scores(gold, with_parses(gold, parses))
