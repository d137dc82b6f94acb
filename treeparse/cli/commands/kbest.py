"""``treeparse kbest``: the K best trees of every sentence, with their probabilities."""

import argparse
from typing import TYPE_CHECKING

from treeparse.cli import lists, reading
from treeparse.cli.common import add_listing_decoder_argument
from treeparse.cli.conditions import CONDITIONS, read_conditions
from treeparse.cli.models import SEVERAL
from treeparse.cli.tokenizing import RAW_TEXT

if TYPE_CHECKING:
    from treeparse.model import Ensemble, Parse, Parser

NAME = "kbest"
HELP = "list the K best trees of CoNLL-U or text"
EPILOG = f"""examples:
  treeparse kbest runs/english/model test.conllu -k 10 -o best.conllu
  treeparse kbest runs/english/model test.conllu -k 50 -o best.jsonl.gz
  treeparse kbest runs/english/model test.conllu -k 10 -o best.conllu --decoder projective
  treeparse kbest runs/english/model test.conllu -k 10 -o best.jsonl --probabilities
  treeparse kbest runs/one/model runs/two/model test.conllu -k 10 -o best.conllu
  echo 'They saw her duck .' | treeparse kbest -q -k 5 runs/english/model - --format text

The trees are exactly the K best labelled ones, best first; those that differ in one label count too. A sentence that
has fewer gets fewer. In CoNLL-U each is a block, with comments # rank, # log_prob (nats, among all labelled trees) and
# score (the sum of its arcs'), and with its rank behind the sentence's sent_id. Else only HEAD, DEPREL and DEPS (which
becomes _) change; newdoc, newpar and parallel_id stand at rank 1 alone. JSONL has one object a sentence: sent_id, text,
tokens and parses, a list of heads, labels, log_prob and score. A sentence without sent_id gets one in both.
{lists.PROBABILITIES}
OUT appears once it is complete; standard output gets the sentences as they are parsed, in the order of the input.
{reading.CHUNKS}

{RAW_TEXT}

{CONDITIONS}
Lists are of the K best trees that satisfy the rules.

{SEVERAL}

{reading.CORPORA.replace("COMMAND", "kbest -k 10")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    lists.add_arguments(parser, k="trees of a sentence, at most", best=True)
    add_listing_decoder_argument(
        parser,
        help="list the best of all trees, or of those without crossing arcs (default: as the model's config says)",
    )


def run(args: argparse.Namespace) -> int:
    """List the best trees of the sentences and write them."""
    plan = lists.list_plan(args)
    conditions = read_conditions(args)

    def parse(parser: "Parser | Ensemble", work: reading.Work) -> "list[list[Parse]]":
        options = {"batch_words": args.batch_words, "decoder": args.decoder, "probabilities": args.probabilities}
        return parser.kbest(work.sentences, args.k, progress=work.progress, **options, **conditions.arguments)

    return lists.list_files(args, plan, parse, conditions)
