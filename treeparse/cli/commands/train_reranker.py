"""``treeparse train-reranker``: train a reranker from n-best lists of sentences with gold trees."""

import argparse
from collections.abc import Iterator
from itertools import chain

from treeparse import terminal
from treeparse.cli.common import output_file, positive
from treeparse.data import NBestList, expand_paths, load_treebank, read_nbest
from treeparse.errors import TreeparseError
from treeparse.model.folder import check_model_folder
from treeparse.rerank import LogLinearConfig, Reranker
from treeparse.rerank.learning import LearningConfig
from treeparse.sentence import Sentence, missing_labels

EPILOG = """examples:
  treeparse crossparse --config my.yaml --folds 4 -k 32 --output runs/folds
  treeparse train-reranker train.conllu runs/folds/best-32.jsonl -o runs/reranker
  treeparse train-reranker train.conllu lists.jsonl --dev dev.conllu dev-lists.jsonl -o runs/reranker
  treeparse train-reranker dev.conllu other-lists.jsonl --tune runs/reranker -o runs/reranker-for-other

LISTS are lists of the sentences of GOLD, in order, by parsers that were not trained on these sentences; crossparse
makes such lists of training data. A tree's score is base_weight times the parser's log probability, plus the sum of the
weights of features larger than an arc: siblings, grandparents, the labels and the number of a head's dependents, sizes
and edges of subtrees.

Training maximises the expected number of right words. The lists of --dev, or every tenth of LISTS, choose the epoch and
base_weight. --tune changes only the base_weight of a trained reranker, to suit the lists of another parser, or longer
lists.

treeparse rerank takes DIR by --model; a reranker trained with --upos needs CoNLL-U lists with UPOS. DIR holds JSON and
safetensors; loading it runs no code. Rerankers are trained and used on the CPU."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("gold", metavar="GOLD", help="CoNLL-U with gold trees, plain or compressed; a glob")
    parser.add_argument("lists", metavar="LISTS", help="n-best lists of these sentences, CoNLL-U or JSONL; a glob")
    parser.add_argument("-o", "--output", type=output_file, required=True, metavar="DIR", help="the reranker's folder")
    parser.add_argument("--dev", nargs=2, metavar=("GOLD", "LISTS"), help="held-out trees and lists to choose an epoch")
    parser.add_argument("--tune", metavar="DIR", help="only fit the base weight of this reranker to LISTS")
    parser.add_argument("--epochs", type=positive, metavar="N", help="passes over LISTS (default: 4)")
    parser.add_argument(
        "--upos",
        action="store_true",
        help="let features read the UPOS of LISTS, or of GOLD if LISTS are JSONL",
    )
    parser.add_argument("--multi-root", action="store_true", help="allow gold trees of several roots")


def run(args: argparse.Namespace) -> int:
    """Train, or tune, and write the reranker."""
    check_model_folder(args.output, "reranker")
    if args.tune is not None and args.dev is not None:
        raise TreeparseError("--tune fits the base weight to LISTS and needs no --dev: leave it out.")

    def say(line: str) -> None:
        if not args.quiet:
            terminal.warn(line)

    expand_paths([args.gold, args.lists, *(args.dev or ())])
    gold, lists = _gold(args.gold, args), _lists(args.lists)
    if clause := missing_labels(gold):
        say(f"in {args.gold} {clause}: such a word is right if its head is")
    if args.tune is not None:
        reranker = Reranker.from_pretrained(args.tune).tuned(gold, lists)
    else:
        epochs = {} if args.epochs is None else {"epochs": args.epochs}
        learning = LearningConfig(**epochs)
        held_out = None if args.dev is None else (_gold(args.dev[0], args), _lists(args.dev[1]))
        reranker = Reranker.train(LogLinearConfig(upos=args.upos), gold, lists, learning, held_out=held_out, say=say)
    reranker.save_pretrained(args.output)
    if not args.quiet:
        terminal.write(f"base weight {reranker.base_weight:.2f}: {args.output}")
    return 0


def _gold(pattern: str, args: argparse.Namespace) -> list[Sentence]:
    return [sentence.words for sentence in load_treebank(pattern, single_root=not args.multi_root)]


def _lists(pattern: str) -> Iterator[NBestList]:
    return chain.from_iterable(map(read_nbest, expand_paths([pattern])))
