"""``treeparse sample``: trees of every sentence drawn at random, with their probabilities."""

import argparse
import math

from treeparse.cli import corpora
from treeparse.cli.common import real, seed
from treeparse.cli.models import SEVERAL
from treeparse.model.inference.tree_request import TreeRequest

EPILOG = f"""examples:
  treeparse sample runs/english/model test.conllu -k 10 -o samples.conllu
  treeparse sample runs/english/model test.conllu -k 100 --seed 7 -o samples.jsonl.gz
  treeparse sample runs/english/model test.conllu -k 10 --without-replacement -o different.conllu
  treeparse sample runs/english/model test.conllu -k 10 --temperature 2 -o varied.jsonl
  treeparse sample runs/one/model runs/two/model test.conllu -k 10 -o samples.conllu
  echo 'They saw her duck .' | treeparse sample -q -k 5 runs/english/model - --format text

The trees are exact, independent samples: a labelled tree is drawn with probability proportional to exp(score / T). At
the temperature T = 1 that is the model's distribution; a lower T prefers better trees, a higher T gives more different
trees. A tree may be drawn twice. With --without-replacement each tree is drawn from the trees not drawn before, so all
differ, if only in one label; a sentence with fewer than K trees gets each of them once, and the closing line counts
such sentences.

The files have the formats of kbest, CoNLL-U or JSONL; rank is the number in the order drawn. log_prob (nats) is the log
of the probability above: at T, and with the projective decoder among the trees without crossing arcs. score is the
model's score at any T.
{corpora.PROBABILITIES}

A sentence's trees depend on --seed, on its position in the input (the number of its file, and its number in the file)
and on its scores, not on other sentences, so shards draw the same trees as the whole. The first trees are the same for
every K. The same command draws the same trees again. Other batches (-k, --shard, --chunk, --batch-words), threads and
devices may change the last digit of a score and so, rarely, a tree; without replacement, a GPU draws other trees.
OUT appears once it is complete; standard output gets each sentence once it is parsed, in the order of the input.
{corpora.CHUNKS}

{corpora.RAW_TEXT}

{corpora.CONDITIONS}
A tree that breaks a rule is drawn again, at most --opened times a sentence: the results are exact samples of the trees
that satisfy the rules. The closing line has the share of the trees drawn that satisfied them.

{SEVERAL}
--combine marginals, only at T = 1, draws one of the models and then a tree from it: a sample of the mean of their
distributions, which also gives log_prob; score is the expected number of right words.

{corpora.CORPORA.replace("COMMAND", "sample -k 10")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    decoder = (
        "draw from all trees, or from those without crossing arcs (default: projective if the model's config says so, "
        "otherwise nonprojective)"
    )
    corpora.add_list_arguments(
        parser, k="trees of a sentence; without replacement, at most", decoder=decoder, best=False
    )
    parser.add_argument("--without-replacement", action="store_true", help="draw no tree of a sentence twice")
    temperature = real("a finite number above 0", lambda value: 0 < value < math.inf)
    parser.add_argument("--temperature", type=temperature, default=1.0, metavar="T", help="1e-6 or more (default: 1)")
    parser.add_argument("--seed", type=seed, default=0, metavar="S", help="another seed draws other trees (default: 0)")


def run(args: argparse.Namespace) -> int:
    """Draw trees of the sentences and write them."""
    draws = {"replacement": not args.without_replacement, "seed": args.seed, "temperature": args.temperature}
    trees = TreeRequest("sample", args.k, args.decoder, probabilities=args.probabilities, **draws)
    return corpora.parse_files(args, trees, args.output_format)
