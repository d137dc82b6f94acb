"""``treeparse calibrate``: fit a model's temperatures and promises to trees that it was not trained on."""

import argparse
from dataclasses import replace

from treeparse import terminal
from treeparse.cli.common import (
    add_batch_words_argument,
    add_import_argument,
    add_treebank_argument,
    output_file,
    percent,
)
from treeparse.cli.models import check_models, load_model, warn_of_mean_treebank
from treeparse.cli.score_reports import PARTS, calibration_of, lines_of
from treeparse.data import load_treebank
from treeparse.data.files import expand_paths
from treeparse.errors import TreeparseError
from treeparse.metrics import Calibration
from treeparse.model import Parser
from treeparse.model.folder import CARD, check_model_folder, model_folder
from treeparse.model.promises import fit_promises
from treeparse.model.temperature import fit_temperatures
from treeparse.sentence import Sentence

EPILOG = """examples:
  treeparse calibrate runs/english dev.conllu
  treeparse calibrate runs/english/model dev.conllu -o runs/english/calibrated
  treeparse evaluate --model runs/english/model test.conllu --calibration

Trained parsers are mostly overconfident, of arcs more than of labels. This command fits two temperatures: one divides
the scores of arcs, the other the scores of labels. No other two make the labelled trees of DEV more probable. Training
has fitted them to its own dev set. The best heads and the best labels of arcs stay the same; decoders that weigh arcs
against labels, all but arcs_first, may choose a few other trees.

The command prints both temperatures and the losses before and after: minus the log probability of the trees' arcs, and
of their labels given the arcs, in nats a word. Expected calibration errors on DEV follow (see treeparse evaluate
--calibration). Then it finds anew what predict --head-sets and --certain need.

DEV is a treebank that the model was not trained on. The model in its folder is changed, or with -o a new one is
written; calibrating again changes nothing. To undo it, set temperature and label_temperature to 1 in its
config.json."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="the folder of a model, or of its run")
    parser.add_argument("dev", nargs="+", metavar="DEV", help="CoNLL-U with trees, also compressed; globs; - for stdin")
    parser.add_argument(
        "-o", "--output", type=output_file, metavar="DIR", help="write a new model to DIR (default: change MODEL)"
    )
    parser.add_argument("--multi-root", action="store_true", help="allow trees of several roots")
    add_treebank_argument(parser)
    add_batch_words_argument(parser)
    add_import_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Fit the temperatures, write them, and print losses and calibration errors."""
    if args.output is not None:
        check_model_folder(args.output, "model", CARD)
    elif not model_folder(args.model).is_dir():
        raise TreeparseError(f"{args.model} is no folder that can be changed: say by -o DIR where the model goes.")
    check_models([args.model], args)
    expand_paths(args.dev)
    parser = load_model(args.model, args)
    parser.check_treebank(args.treebank)
    warn_of_mean_treebank(parser, args.treebank, args)
    trees = load_treebank(args.dev, single_root=not args.multi_root)
    sentences = [replace(sentence.words, treebank=args.treebank) for sentence in trees]
    before, errors_before = parser.config, _calibration(parser, sentences, args)
    fits = fit_temperatures(parser, sentences, batch_words=args.batch_words)
    fit_promises(parser, sentences, batch_words=args.batch_words)
    errors_after = _calibration(parser, sentences, args)
    if args.output is None:
        parser.save_config(model_folder(args.model))
    else:
        parser.save_pretrained(args.output)
    if args.quiet:
        return 0
    left_out = f"; {fits.left_out:,} left out, whose trees are impossible" if fits.left_out else ""
    rows = [["", "words", "temperature before", "after", "loss before", "after"]]
    temperatures = {"arcs": (fits.arcs, before.temperature), "labels": (fits.labels, before.label_temperature)}
    for name, (fit, temperature) in temperatures.items():
        if fit is not None:
            numbers = (temperature, fit.temperature, fit.before, fit.after)
            rows.append([name, f"{fit.words:,}", *(f"{number:.4f}" for number in numbers)])
    errors = [["ECE", "before", "after"]]
    for part in PARTS:
        if part in errors_before and part in errors_after:
            errors.append([PARTS[part], percent(errors_before[part].ece), percent(errors_after[part].ece)])
    terminal.write(f"{fits.sentences:,} sentences{left_out}", "")
    terminal.write(*lines_of([rows, errors]), "", str(args.output or model_folder(args.model)))
    return 0


def _calibration(parser: Parser, gold: list[Sentence], args: argparse.Namespace) -> dict[str, Calibration]:
    """Compare the probabilities of the parser's parses with how often they are right; nothing if quiet."""
    if args.quiet:
        return {}
    return calibration_of(gold, parser.parse(gold, batch_words=args.batch_words, probabilities=True))
