"""``treeparse rerank``: the parse of every list that a reranker, or the expected LAS, finds best."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from treeparse.cli.common import (
    add_drop_empty_argument,
    add_output_argument,
    counted,
    modules_of_current_folder,
)
from treeparse.cli.corpora import add_output_format_argument
from treeparse.corpus.request import check_outputs, is_folder
from treeparse.corpus.writers import WriterOptions, make_writer
from treeparse.data.files import expand_paths
from treeparse.data.nbest import format_of, read_nbest
from treeparse.data.outputs import check_folder
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.progress import Console, ParsingBar
from treeparse.rerank import ExpectedAccuracy, Reranker, Scorer, reranked, scorer_named
from treeparse.user_code import check_module

EPILOG = """examples:
  treeparse kbest runs/english/model test.conllu -k 64 -o best.conllu
  treeparse rerank best.conllu -o parsed.conllu
  treeparse rerank best.conllu --model runs/reranker -o parsed.conllu
  treeparse rerank best.conllu --model runs/reranker --mbr las -o parsed.conllu
  treeparse rerank best.conllu --scorer mine.flat -o parsed.conllu
  treeparse rerank samples.jsonl.gz --mbr uas --lists -o reranked.jsonl.gz
  treeparse evaluate test.conllu best.conllu parsed.conllu

LISTS are files of kbest or sample, CoNLL-U or JSONL. By default, or with --mbr, a parse's score is its expected LAS (or
UAS): the expected share of right words if one of the list's different trees is right, by their renormalised
probabilities. In a list that repeats a tree, as samples do, each parse counts the same (--weights draws). --scorer
names a Python function, or a class without constructor arguments, also in a module of the current folder: called with a
treeparse.data.NBestList, it returns a score for each parse. With --model or --scorer, --mbr takes these scores as log
probabilities.

Of parses with equal scores the first one is chosen. OUT is CoNLL-U with the chosen parses; only HEAD, DEPREL and DEPS
of a CoNLL-U list change, and of JSONL lists only the words are written. With --lists OUT has all parses, highest score
first: score is the new score, log_prob the parser's. OUT appears once it is complete."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("lists", nargs="+", metavar="LISTS", help="n-best files, also compressed; globs; - for stdin")
    add_output_argument(parser, "the parses; .gz compresses")
    parser.add_argument("--mbr", choices=("las", "uas"), help="choose by the expected LAS or UAS (default: las)")
    parser.add_argument("--model", metavar="DIR", help="choose by the reranker in DIR, as train-reranker wrote it")
    parser.add_argument("--scorer", metavar="PATH", help="choose by your own function or class, such as mine.flat")
    parser.add_argument(
        "--weights",
        choices=("auto", "probabilities", "draws"),
        help="weights of parses for --mbr: their probabilities, or all equal (default: auto, see below)",
    )
    parser.add_argument("--lists", dest="whole", action="store_true", help="write whole lists in their new order")
    parser.add_argument("--format", choices=("conllu", "jsonl"), help="the format of LISTS (default: by their names)")
    add_output_format_argument(parser)
    add_drop_empty_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Rerank the lists and write them."""
    if args.output_format is not None and not args.whole:
        raise TreeparseError("--output-format is of whole lists: without --lists the output is CoNLL-U.")
    if is_folder(args.output):
        raise TreeparseError(f"All parses go to one file, but {args.output} is a folder: name a file.")
    check_outputs([args.output], inputs=args.lists, others=[args.model], overwrite_input=args.overwrite_input)
    scorer, counts = _scorer(args), Counter[str]()
    read = chain.from_iterable(read_nbest(path, format=args.format) for path in expand_paths(args.lists))
    with modules_of_current_folder():
        form = (args.output_format or format_of(args.output)) if args.whole else "conllu"
        writer = make_writer(form, WriterOptions(lists=args.whole, drop_empty=args.drop_empty))
    with ParsingBar(None, hidden=args.quiet or (args.output == "-" and sys.stdout.isatty())) as bar:
        writer.write(args.output, _reranked(read, scorer, counts, bar))
    changed = f"{counts['changed']:,} with another first tree than before"
    Console(quiet=args.quiet).remark(f"{counted(counts['sentences'], 'sentence')}, {changed}")
    return 0


def _scorer(args: argparse.Namespace) -> Scorer:
    if args.model is not None and args.scorer is not None:
        raise TreeparseError("--model and --scorer both say what chooses: give one of them.")
    if args.model is not None:
        check_folder(args.model)
    if args.scorer is not None and "." in args.scorer:
        with modules_of_current_folder():
            check_module(args.scorer.rpartition(".")[0])
    scorer = None if args.model is None else Reranker.from_pretrained(args.model)
    if args.scorer is not None:
        with modules_of_current_folder():
            scorer = scorer_named(args.scorer)
    if scorer is not None and args.mbr is None:
        if args.weights is not None:
            raise TreeparseError("--weights says how parses count for --mbr: give that too, or leave it out.")
        return scorer
    return ExpectedAccuracy(args.mbr or "las", args.weights or "auto", scorer)


def _reranked(lists: Iterable[NBestList], scorer: Scorer, counts: Counter[str], bar: ParsingBar) -> Iterator[NBestList]:
    """Yield the lists in their new order; count sentences, and sentences whose first tree changed."""
    for nbest in lists:
        new = reranked(nbest, scorer)
        before, now = nbest.parses[0], new.parses[0]
        counts["sentences"] += 1
        counts["changed"] += (before.heads, before.labels) != (now.heads, now.labels)
        bar.advance(1, len(nbest.tokens), 1)
        yield new
