"""``treeparse predict``: parse CoNLL-U or text with a trained model."""

import argparse
import math
from dataclasses import replace

from treeparse.cli import corpora
from treeparse.cli.common import add_decoder_argument, real
from treeparse.cli.models import EXPECTED_TREE, SEVERAL
from treeparse.data.conllu import load_treebank
from treeparse.errors import TreeparseError
from treeparse.metrics import conformal_threshold
from treeparse.model import Ensemble, Parser
from treeparse.model.inference.tree_request import TreeRequest

EPILOG = f"""examples:
  treeparse predict runs/english/model test.conllu -o parsed.conllu
  treeparse predict runs/english/model 'corpus/*.conllu.gz' -o parsed.conllu.gz --threads 4
  treeparse predict runs/english/model 'corpus/**/*.conllu.gz' -o parsed/ --max-words 200 --skip-existing
  treeparse predict runs/english/model test.conllu -o parsed.conllu --decoder minimum_risk
  treeparse predict runs/english/model test.conllu -o parsed.conllu --probabilities
  treeparse predict runs/english/model test.conllu -o parsed.conllu --head-sets 0.05 --held-out dev.conllu
  treeparse predict runs/one/model runs/two/model runs/three/model test.conllu -o parsed.conllu --combine marginals
  treeparse predict runs/both/model test.conllu -o parsed.conllu --treebank ewt
  treeparse predict runs/english/model partly.conllu -o filled.conllu --keep-heads --within
  treeparse predict runs/english/model test.conllu -o parsed.conllu --rules ud
  echo 'They saw her duck .' | treeparse predict -q runs/english/model - --format text --tags
  echo 'They saw her duck. She ran.' | treeparse predict runs/english/model - --format text --tokenizer spacy:en

In CoNLL-U only HEAD, DEPREL and DEPS (which becomes _) of words change; their previous values are read only with
--keep-heads. --tags also replaces the columns of tags that the model predicts (model.tags in its training).
--probabilities adds to MISC of words ArcProb, the exact probability of the arc among all trees, and LabelProb, the
probability of arc and label together, and as comments tree_prob, the probability of the whole tree, and the entropy of
all trees in nats (not with --combine marginals). They replace comments and entries of these names. JSONL has one object
a sentence, as kbest writes it, with one parse.

--head-sets 0.05 adds to MISC of words Heads=2,5: a set of probable heads that holds the true head for 95% of the words,
on average; HEAD is always in the set. --held-out names trees that the model was not trained on; from them the least
probability of a head in the sets is computed (split conformal prediction). The share holds for words of the same kind
of text as the held-out words. Training can read such sets as the possible heads of words.

OUT appears once it is complete; standard output gets each sentence once it is parsed, in the order of the input.
{corpora.CHUNKS}

{corpora.RAW_TEXT}

{corpora.CONDITIONS}

{SEVERAL}
{EXPECTED_TREE}

{corpora.CORPORA.replace("COMMAND", "predict")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    corpora.add_arguments(parser, output="the parses; .gz, .bz2, .xz or .zst compresses; a folder gets a file an input")
    corpora.add_output_format_argument(parser)
    add_decoder_argument(parser)
    parser.add_argument("--tags", action="store_true", help="write the UPOS, XPOS and FEATS that the model predicts")
    parser.add_argument("--probabilities", action="store_true", help="write probabilities of arcs, labels and trees")
    alpha = real("a share of words above 0 and below 1", lambda value: 0 < value < 1)
    parser.add_argument(
        "--head-sets", type=alpha, metavar="ALPHA", help="write sets of heads, right for 1 - ALPHA of words"
    )
    parser.add_argument("--held-out", action="append", default=[], metavar="GOLD", help="CoNLL-U trees for --head-sets")


def run(args: argparse.Namespace) -> int:
    """Parse the sentences and write them."""
    if (args.head_sets is None) != (not args.held_out):
        raise TreeparseError("Sets of heads need both --head-sets ALPHA and --held-out GOLD: give both, or none.")
    # Infinity stands for the threshold, which needs the loaded model.
    threshold = None if args.head_sets is None else math.inf
    trees = TreeRequest(decoder=args.decoder, probabilities=args.probabilities, head_threshold=threshold)

    def prepare(model: Parser | Ensemble, trees: TreeRequest) -> TreeRequest:
        return replace(trees, head_threshold=_head_threshold(model, args))

    complete = None if args.head_sets is None else prepare
    options = {"tags": args.tags, "also_read": args.held_out, "prepare": complete}
    return corpora.parse_files(args, trees, args.output_format, **options)


def _head_threshold(model: Parser | Ensemble, args: argparse.Namespace) -> float:
    """Return the least probability of a head in a word's set."""
    held_out = [sentence.words for sentence in load_treebank(args.held_out, single_root=False)]
    scored = model.score_trees(held_out, batch_words=args.batch_words, treebank=args.treebank)
    probs = [prob for parse in scored for prob in parse.arc_probs or ()]
    return conformal_threshold(probs, args.head_sets)
