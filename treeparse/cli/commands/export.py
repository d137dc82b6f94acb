"""``treeparse export``: write the parser of a run's best epoch, even while the run continues."""

import argparse
from pathlib import Path

from treeparse import terminal
from treeparse.cli.common import add_import_argument, check_modules, import_modules
from treeparse.data.outputs import check_folder, check_output_folder
from treeparse.training.release import export_model
from treeparse.training.run_directory import RunDirectory

EPILOG = """examples:
  treeparse export runs/english                  writes runs/english/model
  treeparse export runs/english -o best-so-far

The run may be finished, stopped or still running, undisturbed by the export. The export replaces an earlier model in
DIR, and the end of training replaces the export if a later epoch is better. Commands that take a model accept a run's
folder for the model in it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="the run's folder, train's --output")
    parser.add_argument("-o", "--output", metavar="DIR", help="the model's folder (default: RUN/model)")
    add_import_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Export the parser and print its epoch."""
    if args.output is not None:
        check_output_folder(args.output)
    check_folder(args.run)
    check_modules(args)
    import_modules(args)
    export = export_model(RunDirectory(args.run), None if args.output is None else Path(args.output))
    if not args.quiet:
        scores = {"LAS": export.best.dev_las, "UAS": export.best.dev_uas}  # the first that is known chose the epoch
        score = next((f", dev {name} {share:.2%}" for name, share in scores.items() if share is not None), "")
        stood = "" if export.written else " (it stood there already)"
        terminal.write(f"epoch {export.best.epoch}, the best of {export.epochs}{score}: {export.folder}{stood}")
    return 0
