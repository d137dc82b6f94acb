"""``treeparse crossparse``: list parses of training sentences by parsers that were not trained on them."""

import argparse

from treeparse import terminal
from treeparse.cli.common import modules_of_current_folder, positive
from treeparse.cli.training import add_config_arguments, read_config, stoppable
from treeparse.rerank.crossparsing import METHODS, Listing, crossparse
from treeparse.shipped import file_or_shipped

TAKES_OVERRIDES = True
EPILOG = """Every key of the config can also be a dotted option, as in treeparse train.

examples:
  treeparse crossparse --config my.yaml --folds 4 -k 32 --output runs/folds
  treeparse crossparse --config my.yaml --folds 10 -k 64 --method different-samples --output runs/folds
  treeparse crossparse --config fast --output runs/turkish --data.train tr-train.conllu --data.dev tr-dev.conllu
  treeparse train-reranker train.conllu runs/folds/best-32.jsonl -o runs/reranker

A reranker must not learn from lists of a parser's own training sentences, which are better than its other lists.
Sentence i of data.train belongs to fold i modulo N; a parser trained on all other folds parses each fold. DIR holds for
each fold a folder with its training file, run and lists, and the lists of all folds in the order of data.train:
best-32.jsonl, by method and size. The same command resumes after a stop; with another --method or -k it makes other
lists with the same parsers. In Python: treeparse.rerank.crossparsing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_config_arguments(parser, default="default")
    parser.add_argument("--folds", type=positive, default=4, metavar="N", help="parsers to train (default: 4)")
    parser.add_argument("-k", type=positive, default=32, metavar="K", help="parses of a list, at most (default: 32)")
    methods = [method.replace("_", "-") for method in METHODS]
    parser.add_argument("--method", choices=methods, default="best", help="the best or random trees (default: best)")


@modules_of_current_folder()
def run(args: argparse.Namespace) -> int:
    """Train and parse; if a signal stops the work, a message says how to resume."""
    return stoppable(lambda: _crossparse(args))


def _crossparse(args: argparse.Namespace) -> None:
    config = read_config(file_or_shipped(args.config), args, output=args.output)
    listing = Listing(args.k, args.method.replace("-", "_"))
    lists = crossparse(config, args.folds, listing, quiet=args.quiet)
    if not args.quiet:
        terminal.write(f"lists: {lists}")
