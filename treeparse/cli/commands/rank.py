"""``treeparse rank``: the sentences of a corpus, the most uncertain ones first: those worth annotating."""

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from treeparse.cli import reading
from treeparse.cli.common import add_decoder_argument, positive
from treeparse.cli.conditions import CONDITIONS, read_conditions
from treeparse.cli.models import SEVERAL
from treeparse.cli.parts import make_plan
from treeparse.cli.tables import tsv_line
from treeparse.errors import TreeparseError
from treeparse.names import RANK_FORMATS

if TYPE_CHECKING:
    from treeparse.data.conllu import ConlluSentence
    from treeparse.model import Ensemble, Parse, Parser

NAME = "rank"
HELP = "order the sentences of a corpus for annotation"
VALUES = {  # and what has them of a Parse
    "entropy": "entropy",
    "expected_error": "expected_errors",
    "expected_gradient": "expected_gradient",
}
TITLES = ("file", "line", "sent_id", "words", "text")
EPILOG = f"""examples:
  treeparse rank runs/english/model corpus.conllu --top 500 -o next.conllu
  treeparse rank runs/english/model 'corpus/*.conllu.gz' --by expected_error --per-word -o ranked.tsv
  treeparse rank runs/english/model corpus.txt --format text | head

The sentences come by falling value, and equal ones in the order of the input:
  entropy            of all labelled trees of the sentence, in nats
  expected_error     how many words of the parse are expected to have a wrong head or label: 1 - probability, summed
  expected_gradient  how much learning the tree would move the scores: the squared length of the gradient of its log
                     probability in the scores of labelled arcs, expected over all trees (Settles and Craven 2008).
                     It is in how many words two random trees are expected to differ
All are exact. Longer sentences have more of each; --per-word divides by the number of words. As a TSV there is a row a
sentence, with the value, where it stands and its words; as CoNLL-U the sentence as it was, with the value in a comment.
All sentences of an output are held in memory.

{CONDITIONS}

{SEVERAL}
There is no entropy and no expected gradient for --combine marginals.

{reading.CORPORA.replace("COMMAND", "rank")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    output = "the sentences; .gz compresses; a folder gets a file an input, each ranked by itself (default: -)"
    reading.add_arguments(parser, output=output)
    add_decoder_argument(parser)
    parser.add_argument("--by", choices=VALUES, default="entropy", help="see below (default: entropy)")
    parser.add_argument("--per-word", action="store_true", help="divide by the number of words")
    parser.add_argument("--top", type=positive, metavar="N", help="the first N sentences alone")
    parser.add_argument(
        "--output-format",
        choices=RANK_FORMATS,
        help="of the output (default: conllu where OUT ends in .conllu, or .conllu.gz and the like, otherwise tsv)",
    )


def run(args: argparse.Namespace) -> int:
    """Order the sentences and write them."""
    plan = make_plan(args, f".{args.output_format or 'tsv'}")
    conditions = read_conditions(args)

    def parse(parser: "Parser | Ensemble", work: reading.Work) -> list[float]:
        by_gradient = args.by == "expected_gradient"
        asked = {"gradient": by_gradient, "probabilities": not by_gradient}
        options = {"batch_words": args.batch_words, "decoder": args.decoder, "progress": work.progress, **asked}
        return [_value(found, args) for found in parser.parse(work.sentences, **options, **conditions.arguments)]

    def write(target: str, found: "Iterator[tuple[ConlluSentence, float]]") -> None:
        from treeparse.data.outputs import atomic_output

        name = f"{args.by}_per_word" if args.per_word else args.by
        ranked = sorted(found, key=lambda pair: -pair[1])[: args.top]
        with atomic_output(target) as output:
            for text in _conllu(ranked, name) if _is_conllu(target, args) else _table(ranked, name):
                output.write(text)

    return reading.parse_files(args, plan, parse, write, remark=conditions.remark)


def _value(parse: "Parse", args: argparse.Namespace) -> float:

    value: float | None = getattr(parse, VALUES[args.by])
    if value is None:
        name = args.by.replace("_", " ")
        raise TreeparseError(f"Models combined by marginals have no exact {name}: rank --by expected_error.")
    return value / len(parse.tokens) if args.per_word else value


def _is_conllu(target: str, args: argparse.Namespace) -> bool:
    from treeparse.data.compression import plain_name

    by_name = "conllu" if plain_name(target).endswith(".conllu") else "tsv"
    return (args.output_format or by_name) == "conllu"


def _conllu(ranked: "Sequence[tuple[ConlluSentence, float]]", name: str) -> Iterator[str]:
    from treeparse.data.annotations import figure, with_comments

    for sentence, value in ranked:
        yield with_comments(sentence, {name: figure(value)}).alone().text


def _table(ranked: "Sequence[tuple[ConlluSentence, float]]", name: str) -> Iterator[str]:
    from treeparse.data.annotations import figure

    yield tsv_line([name, *TITLES])
    for sentence, value in ranked:
        words = sentence.words.forms
        place = (sentence.source, sentence.line, sentence.sent_id or "")
        yield tsv_line([figure(value), *place, len(words), " ".join(words)])
