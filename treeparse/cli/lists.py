"""What the commands that write lists of parses share: arguments, chunks, the file, and the count of short lists."""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from treeparse.cli import reading
from treeparse.cli.common import counted, positive
from treeparse.cli.conditions import Conditions
from treeparse.cli.parts import Plan, make_plan
from treeparse.names import LIST_FORMATS

if TYPE_CHECKING:
    from treeparse.data.conllu import ConlluSentence
    from treeparse.model import Ensemble, Parse, Parser

PROBABILITIES = """\
With --probabilities each tree has those of its arcs, and of arc and label together, among all trees of the model (at
the temperature 1): as predict writes them, ArcProb and LabelProb in MISC beside the comments tree_prob, exp(log_prob),
and entropy; in JSONL arc_probs, label_probs and entropy of each parse. Those of a parse that the input had are left
out."""

CHUNK_TREE_WORDS = 1_000_000  # words of all trees of a chunk: bounds the memory where lists are long


def add_arguments(parser: argparse.ArgumentParser, *, k: str, best: bool) -> None:
    """Declare the arguments; ``k`` is the help of ``-k``, ``best`` says whether the lists are of the best trees."""
    output = "the lists; .gz, .bz2, .xz or .zst compresses; a folder gets a file an input (default: -)"
    reading.add_arguments(parser, output=output, lists_of_best=best)
    parser.add_argument("-k", type=positive, required=True, metavar="K", help=k)
    parser.add_argument(
        "--output-format",
        choices=LIST_FORMATS,
        help="of the output (default: jsonl where OUT ends in .jsonl, or .jsonl.gz and the like, otherwise conllu)",
    )
    parser.add_argument(
        "--probabilities", action="store_true", help="write how probable arcs and labels are, see below"
    )


def list_plan(args: argparse.Namespace) -> Plan:
    """The models, inputs and outputs of the arguments."""
    return make_plan(args, ".jsonl" if args.output_format == "jsonl" else reading.conllu_suffix(args))


def list_files(
    args: argparse.Namespace,
    plan: Plan,
    parse: "Callable[[Parser | Ensemble, reading.Work], list[list[Parse]]]",
    conditions: Conditions,
) -> int:
    """List trees of the sentences of all files and write them; the closing line counts the lists below ``-k`` trees.

    Args:
        args: the command's arguments, :func:`add_arguments`'s among them.
        plan: their models, inputs and outputs.
        parse: the lists of some sentences.
        conditions: of the trees.
    """
    from treeparse.data.nbest.files import NBestList, write_nbest

    short = 0

    def parse_chunk(parser: "Parser | Ensemble", work: reading.Work) -> "list[list[Parse]]":
        nonlocal short
        lists = parse(parser, work)
        short += sum(len(parses) < args.k for parses in lists)
        return lists

    def write(target: str, parsed: "Iterator[tuple[ConlluSentence, list[Parse]]]") -> None:
        lists = (NBestList(_named(sentence), tuple(parses)) for sentence, parses in parsed)
        write_nbest(target, lists, format=args.output_format, drop_empty=args.drop_empty)

    def remark() -> str:
        verb = "has" if short == 1 else "have"
        fewer = f"{counted(short, 'sentence')} {verb} fewer than {args.k:,} trees" if short else ""
        return "; ".join(filter(None, (fewer, conditions.remark())))

    chunk_words = min(reading.CHUNK_WORDS, max(1, CHUNK_TREE_WORDS // args.k))
    return reading.parse_files(args, plan, parse_chunk, write, chunk_words=chunk_words, remark=remark)


def _named(sentence: "ConlluSentence") -> "ConlluSentence":
    """The sentence with an id, the same whatever is left out and in whichever shard."""
    return sentence if sentence.sent_id else replace(sentence, sent_id=f"sentence-{sentence.ordinal + 1}")
