"""``treeparse predict``: parse CoNLL-U or text with a trained model."""

import argparse
import math
from dataclasses import replace

from treeparse.cli import corpora
from treeparse.cli.common import add_decoder_argument, real
from treeparse.cli.models import EXPECTED_TREE, SEVERAL
from treeparse.data.conllu import load_treebank
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.model.inference.tree_request import TreeRequest
from treeparse.model.promises import HeldOut, Promise, kept_threshold

EPILOG = f"""examples:
  treeparse predict runs/english/model test.conllu -o parsed.conllu
  treeparse predict runs/english/model 'corpus/*.conllu.gz' -o parsed.conllu.gz --threads 4
  treeparse predict runs/english/model 'corpus/**/*.conllu.gz' -o parsed/ --max-words 200 --skip-existing
  treeparse predict runs/english/model test.conllu -o parsed.conllu --decoder minimum_risk
  treeparse predict runs/english/model test.conllu -o parsed.conllu --probabilities
  treeparse predict runs/english/model test.conllu -o parsed.conllu --head-sets 0.05
  treeparse predict runs/english/model test.conllu -o parsed.conllu --certain 0.05 --held-out dev.conllu
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
on average; HEAD is always in the set. Training can read such sets as the possible heads of words.

--certain 0.05 writes HEAD and DEPREL of the most certain words alone, and _ for the others, so that in 95% of sentences
all written words are right. With --certain-of words, 5% of the written words of a sentence are wrong, on average. With
--certain-delta 0.1 the share holds for 90% of the draws of held-out trees, not on average over them.

The thresholds for sets and certain words come from the dev set. Training keeps those for 0.01, 0.02, 0.05, 0.1 and 0.2;
another ALPHA takes the next lower one. --held-out replaces them by those of trees that the model was not trained on
(split conformal prediction, conformal risk control). The shares hold for text of the same kind.

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
    parser.add_argument(
        "--certain", type=alpha, metavar="ALPHA", help="write the words that are all right in 1 - ALPHA of sentences"
    )
    parser.add_argument(
        "--certain-of", choices=("sentences", "words"), default="sentences", help="what --certain promises (sentences)"
    )
    parser.add_argument(
        "--certain-delta", type=alpha, metavar="DELTA", help="--certain but for DELTA of held-out trees"
    )
    parser.add_argument(
        "--held-out", action="append", default=[], metavar="GOLD", help="CoNLL-U trees for --head-sets and --certain"
    )


def run(args: argparse.Namespace) -> int:
    """Parse the sentences and write them."""
    wanted = {"heads": args.head_sets, args.certain_of: args.certain}
    if args.held_out and all(alpha is None for alpha in wanted.values()):
        raise TreeparseError("--held-out is for --head-sets and --certain: give one of them, too, or leave it out.")
    if args.certain_delta is not None and (args.certain is None or not args.held_out):
        raise TreeparseError("--certain-delta needs --certain ALPHA and --held-out GOLD: give all of them.")
    # Infinity stands for the thresholds, which need the loaded model.
    head_threshold, certain = (None if alpha is None else math.inf for alpha in wanted.values())
    trees = TreeRequest(
        decoder=args.decoder, probabilities=args.probabilities, head_threshold=head_threshold, certain=certain
    )

    def prepare(model: Parser | Ensemble, trees: TreeRequest) -> TreeRequest:
        held_out = _held_out(model, args) if args.held_out else None

        def threshold(promise: Promise, alpha: float | None, delta: float | None = None) -> float | None:
            if alpha is None:
                return None
            return held_out.threshold(promise, alpha, delta) if held_out else kept_threshold(model, promise, alpha)

        return replace(
            trees,
            head_threshold=threshold("heads", args.head_sets),
            certain=threshold(args.certain_of, args.certain, args.certain_delta),
        )

    complete = None if head_threshold is None and certain is None else prepare
    options = {"tags": args.tags, "also_read": args.held_out, "prepare": complete}
    return corpora.parse_files(args, trees, args.output_format, **options)


def _held_out(model: Parser | Ensemble, args: argparse.Namespace) -> HeldOut:
    sentences = [sentence.words for sentence in load_treebank(args.held_out, single_root=False)]
    return HeldOut(model, sentences, batch_words=args.batch_words, treebank=args.treebank)
