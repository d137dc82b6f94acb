"""``treeparse crossparse``: lists of training sentences by parsers that were not trained on them."""

import argparse

from treeparse.cli.common import modules_of_current_folder, positive, seed
from treeparse.cli.training import add_config_arguments, read_config, stoppable
from treeparse.corpus.output_checks import check_new_folder
from treeparse.shipped import file_or_shipped

HELP = "train parsers on folds of a treebank and list the parses of the others"
TAKES_OVERRIDES = True
METHODS = ("best", "samples", "different-samples")
EPILOG = """every key of the config can be given as a dotted option too, as in treeparse train.

examples:
  treeparse crossparse --config my.yaml --folds 4 -k 32 --output runs/folds
  treeparse crossparse --config my.yaml --folds 10 -k 64 --method different-samples --output runs/folds
  treeparse crossparse --config fast --output runs/turkish --data.train tr-train.conllu --data.dev tr-dev.conllu
  treeparse train-reranker train.conllu runs/folds/best-32.jsonl -o runs/reranker

For a reranker to learn from: a parser's lists of the sentences that it was trained on are better than any others it
makes. Sentence i of data.train belongs to fold i modulo N; each fold is parsed by a parser trained on all others. DIR
holds a folder for each, with its training file, run and lists, and the lists of all in the order of data.train:
best-32.jsonl, by method and size. The same command goes on where it was stopped; with another --method or -k it makes
other lists by the same parsers. In Python: treeparse.rerank.crossparsing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_config_arguments(parser, default="default")
    parser.add_argument("--folds", type=positive, default=4, metavar="N", help="parsers to train (default: 4)")
    parser.add_argument("-k", type=positive, default=32, metavar="K", help="parses of a list, at most (default: 32)")
    parser.add_argument("--method", choices=METHODS, default="best", help="the best or random trees (default: best)")
    parser.add_argument("--draw-seed", type=seed, default=0, metavar="S", help="of random trees (default: 0)")


@modules_of_current_folder()
def run(args: argparse.Namespace) -> int:
    """Train and parse; where a signal stops it, a message says how to resume."""
    if args.output is not None:
        check_new_folder(args.output)
    return stoppable(lambda: _crossparse(args))


def _crossparse(args: argparse.Namespace) -> None:
    config = read_config(file_or_shipped(args.config), args, output=args.output).checked()
    from treeparse.rerank.crossparsing import Listing, crossparse

    listing = Listing(args.k, args.method.replace("-", "_"), args.draw_seed)
    lists = crossparse(config, args.folds, listing, quiet=args.quiet)
    if not args.quiet:
        print(f"lists: {lists}")
