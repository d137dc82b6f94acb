"""``treeparse calibrate``: fit a model's temperature to trees that it was not trained on."""

import argparse
from pathlib import Path

from treeparse.cli.common import add_import_argument, import_modules, output_file, positive
from treeparse.cli.tables import aligned
from treeparse.errors import TreeparseError

NAME = "calibrate"
HELP = "fit a model's temperature, so that its probabilities come true"
EPILOG = """examples:
  treeparse calibrate runs/english dev.conllu
  treeparse calibrate runs/english/model dev.conllu -o runs/english/calibrated
  treeparse evaluate --model runs/english/model test.conllu --calibration

Trained parsers are mostly too sure. The model gets the one temperature by which all its scores are divided, at which
the trees of DEV, labels included, are likeliest, exactly. Its parses and lists of the best trees stay what they are,
but for those of the decoder minimum_risk; their probabilities change, and so do samples. DEV is a treebank that the
model was not trained on. The model in its folder is changed, or with -o another one is written; a second time changes
nothing more. To undo it, set temperature to 1 in its config.json. What export and training write has the temperature
of the training's config."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="the folder of a model, or of its run")
    parser.add_argument(
        "dev", nargs="+", metavar="DEV", help="CoNLL-U with trees, plain or compressed; globs; - for stdin"
    )
    output = "write the model there, and leave MODEL as it is (default: change MODEL)"
    parser.add_argument("-o", "--output", type=output_file, metavar="DIR", help=output)
    parser.add_argument("--multi-root", action="store_true", help="allow trees of several roots")
    parser.add_argument(
        "--batch-words", type=positive, default=5000, metavar="N", help="words scored at once (default: 5000)"
    )
    add_import_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Fit the temperature, write it, and say what it is worth."""
    from treeparse.batch import pick_device
    from treeparse.data import load_treebank
    from treeparse.model import Parser
    from treeparse.model.storage import model_folder
    from treeparse.model.temperature import fit_temperature

    import_modules(args)
    if args.output is None and not Path(args.model).is_dir():
        raise TreeparseError(f"{args.model} is no folder that can be changed: say by -o DIR where the model goes.")
    parser = Parser.from_pretrained(args.model).to(pick_device(args.device))
    sentences = [sentence.words for sentence in load_treebank(args.dev, single_root=not args.multi_root)]
    before = parser.config.temperature
    fit = fit_temperature(parser, sentences, batch_words=args.batch_words)
    if args.output is None:
        parser.save_config(model_folder(args.model))
    else:
        parser.save_pretrained(args.output)
    if not args.quiet:
        rows = [["", "temperature", "loss a word"], ["before", f"{before:.4f}", f"{fit.before:.4f}"]]
        rows.append(["after", f"{fit.temperature:.4f}", f"{fit.after:.4f}"])
        left_out = f"; {fit.left_out:,} left out, whose trees are impossible" if fit.left_out else ""
        counts = f"{fit.sentences:,} sentences, {fit.words:,} words{left_out}"
        print("\n".join([counts, "", *aligned(rows), "", str(args.output or model_folder(args.model))]))
    return 0
