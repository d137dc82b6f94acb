"""``treeparse sample``: trees of every sentence drawn at random, with their probabilities."""

import argparse
import math
from typing import TYPE_CHECKING

from treeparse.cli import lists, reading
from treeparse.cli.common import add_listing_decoder_argument, number, seed
from treeparse.cli.conditions import CONDITIONS, read_conditions
from treeparse.cli.models import SEVERAL
from treeparse.cli.tokenizing import RAW_TEXT

if TYPE_CHECKING:
    from treeparse.model import Ensemble, Parse, Parser

NAME = "sample"
HELP = "draw trees of CoNLL-U or text at random"
EPILOG = f"""examples:
  treeparse sample runs/english/model test.conllu -k 10 -o samples.conllu
  treeparse sample runs/english/model test.conllu -k 100 --seed 7 -o samples.jsonl.gz
  treeparse sample runs/english/model test.conllu -k 10 --without-replacement -o different.conllu
  treeparse sample runs/english/model test.conllu -k 10 --temperature 2 -o varied.jsonl
  treeparse sample runs/one/model runs/two/model test.conllu -k 10 -o samples.conllu
  echo 'They saw her duck .' | treeparse sample -q -k 5 runs/english/model - --format text

The trees are exact, independent samples: a labelled tree is drawn with probability proportional to exp(score / T). At
the temperature T = 1 that is the model's own distribution; below it good trees come more often, above it trees vary
more. The same tree can come again. With --without-replacement each is drawn from those not drawn before: all differ, if
only in one label. A sentence with fewer than K trees gets each of them once; the closing line counts such sentences.

The files are those of kbest, CoNLL-U or JSONL; rank is the place in the order drawn. log_prob (nats) is the log of the
probability above: at T, and with the projective decoder among the trees without crossing arcs. score is the model's
own, whatever T is.
{lists.PROBABILITIES}

A sentence's trees depend on --seed, on its place in the input (the file's among the files, the sentence's in the file)
and on its scores, not on other sentences: the shards' are those of the whole, whatever is left out. The first ones are
the same however many are drawn. The same command draws the same trees again. What batches the sentences otherwise
(-k, --shard, --chunk, --batch-words) or computes otherwise (--threads, --device) can change the last digit of a score
and so, rarely, a tree; without replacement, a GPU draws other trees.
OUT appears once it is complete; standard output gets the sentences as they are parsed, in the order of the input.
{reading.CHUNKS}

{RAW_TEXT}

{CONDITIONS}
Trees that break a rule are drawn anew, at most --opened of a sentence: the others are exact samples of the trees that
satisfy the rules. The closing line has the share of the trees drawn that did.

{SEVERAL}
By --combine marginals one of the models is drawn, then a tree from it, at T = 1 alone: samples of the mean of their
distributions, of which log_prob is; score is then the number of words that are expected to be right.

{reading.CORPORA.replace("COMMAND", "sample -k 10")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    lists.add_arguments(parser, k="trees of a sentence; without replacement, at most", best=False)
    parser.add_argument("--without-replacement", action="store_true", help="draw no tree of a sentence twice")
    parser.add_argument(
        "--temperature", type=_temperature, default=1.0, metavar="T", help="a number, 1e-6 or more (default: 1)"
    )
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="S", help="a whole number; others draw other trees (default: 0)"
    )
    add_listing_decoder_argument(
        parser,
        help="draw from all trees, or from those without crossing arcs (default: projective where the model's config "
        "says so, otherwise nonprojective)",
    )


def _temperature(text: str) -> float:
    value = number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number above 0")
    return value


def run(args: argparse.Namespace) -> int:
    """Draw trees of the sentences and write them."""
    plan = lists.list_plan(args)
    conditions = read_conditions(args)

    def parse(parser: "Parser | Ensemble", work: reading.Work) -> "list[list[Parse]]":
        return parser.sample(
            work.sentences,
            args.k,
            replacement=not args.without_replacement,
            seed=args.seed,
            first=work.places,
            temperature=args.temperature,
            batch_words=args.batch_words,
            decoder=args.decoder,
            probabilities=args.probabilities,
            progress=work.progress,
            **conditions.arguments,
        )

    return lists.list_files(args, plan, parse, conditions)
