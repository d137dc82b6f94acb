"""``treeparse calibrate``: fit a model's temperatures to trees that it was not trained on."""

import argparse

from treeparse import terminal
from treeparse.cli.common import add_batch_words_argument, add_import_argument, output_file, percent
from treeparse.cli.models import check_models, load_model
from treeparse.cli.score_tables import PARTS, calibration_of, lines_of
from treeparse.data import load_treebank
from treeparse.data.files import expand_paths
from treeparse.errors import TreeparseError
from treeparse.metrics import Calibration
from treeparse.model import Parser
from treeparse.model.folder import CARD, check_model_folder, model_folder
from treeparse.model.temperature import fit_label_temperature, fit_temperature
from treeparse.sentence import Sentence

EPILOG = """examples:
  treeparse calibrate runs/english dev.conllu
  treeparse calibrate runs/english/model dev.conllu -o runs/english/calibrated
  treeparse evaluate --model runs/english/model test.conllu --calibration

Trained parsers are mostly overconfident, of arcs more than of labels. This command fits two temperatures. The first
divides all scores of the model; it is the exact optimum of the likelihood of the trees of DEV, labels included. Parses
and lists of best trees stay the same, except with the decoder minimum_risk; probabilities and samples change. The
second temperature only changes P(label | arc) in written probabilities of labels; it fits best which labels of the
model's parses of DEV are right, given right arcs.

The command prints the losses before and after, in nats a word: the negative log likelihood of trees, and the log loss
of probabilities of labels as predictions that the labels are right. Expected calibration errors on DEV follow (see
treeparse evaluate --calibration).

DEV is a treebank that the model was not trained on. The model in its folder is changed, or with -o a new one is
written; calibrating again changes nothing. To undo it, set temperature to 1 and label_temperature to null in its
config.json. Models that export and training write have the temperatures of the training's config."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="the folder of a model, or of its run")
    parser.add_argument("dev", nargs="+", metavar="DEV", help="CoNLL-U with trees, also compressed; globs; - for stdin")
    parser.add_argument(
        "-o", "--output", type=output_file, metavar="DIR", help="write a new model to DIR (default: change MODEL)"
    )
    parser.add_argument("--multi-root", action="store_true", help="allow trees of several roots")
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
    sentences = [sentence.words for sentence in load_treebank(args.dev, single_root=not args.multi_root)]
    before, errors_before = parser.config, _calibration(parser, sentences, args)
    fit = fit_temperature(parser, sentences, batch_words=args.batch_words)
    labels = fit_label_temperature(parser, sentences, batch_words=args.batch_words)
    errors_after = _calibration(parser, sentences, args)
    if args.output is None:
        parser.save_config(model_folder(args.model))
    else:
        parser.save_pretrained(args.output)
    if args.quiet:
        return 0
    left_out = f"; {fit.left_out:,} left out, whose trees are impossible" if fit.left_out else ""
    losses = [["", "temperature", "loss a word"], ["before", f"{before.temperature:.4f}", f"{fit.before:.4f}"]]
    losses.append(["after", f"{fit.temperature:.4f}", f"{fit.after:.4f}"])
    if labels is not None:
        temperature = before.label_temperature or before.temperature
        losses.append(["labels, before", f"{temperature:.4f}", f"{labels.before:.4f}"])
        losses.append(["labels, after", f"{labels.temperature:.4f}", f"{labels.after:.4f}"])
    errors = [["ECE", "before", "after"]]
    for part in PARTS:
        if part in errors_before and part in errors_after:
            errors.append([PARTS[part], percent(errors_before[part].ece), percent(errors_after[part].ece)])
    terminal.write(f"{fit.sentences:,} sentences, {fit.words:,} words{left_out}", "")
    terminal.write(*lines_of([losses, errors]), "", str(args.output or model_folder(args.model)))
    return 0


def _calibration(parser: Parser, gold: list[Sentence], args: argparse.Namespace) -> dict[str, Calibration]:
    """Compare the probabilities of the parser's parses with how often they are right; nothing if quiet."""
    if args.quiet:
        return {}
    return calibration_of(gold, parser.parse(gold, batch_words=args.batch_words, probabilities=True))
