"""``treeparse kbest``: the K best trees of every sentence, with their probabilities."""

import argparse

from treeparse.cli import corpora
from treeparse.cli.models import SEVERAL
from treeparse.model.inference.tree_request import TreeRequest

EPILOG = f"""examples:
  treeparse kbest runs/english/model test.conllu -k 10 -o best.conllu
  treeparse kbest runs/english/model test.conllu -k 50 -o best.jsonl.gz
  treeparse kbest runs/english/model test.conllu -k 10 -o best.conllu --decoder projective
  treeparse kbest runs/english/model test.conllu -k 10 -o best.jsonl --probabilities
  treeparse kbest runs/one/model runs/two/model test.conllu -k 10 -o best.conllu
  echo 'They saw her duck .' | treeparse kbest -q -k 5 runs/english/model - --format text

The trees are exactly the K best labelled trees, best first; two trees may differ in one label only. A sentence with
fewer trees gets all of them. In CoNLL-U each tree is a block, with the comments # rank, # log_prob (nats, among all
labelled trees) and # score (the sum of its arcs' scores), and with its rank after the sentence's sent_id. Otherwise
only HEAD, DEPREL and DEPS (which becomes _) change; newdoc, newpar and parallel_id are at rank 1 only. JSONL has one
object a sentence: sent_id, text, tokens and parses, a list of heads, labels, log_prob and score. A sentence without
sent_id gets one in both.
{corpora.PROBABILITIES}
OUT appears once it is complete; standard output gets each sentence once it is parsed, in the order of the input.
{corpora.CHUNKS}

{corpora.RAW_TEXT}

{corpora.CONDITIONS}
Lists hold the K best trees that satisfy the rules.

{SEVERAL}

{corpora.CORPORA.replace("COMMAND", "kbest -k 10")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    decoder = "list the best of all trees, or of those without crossing arcs (default: as the model's config says)"
    corpora.add_list_arguments(parser, k="trees of a sentence, at most", decoder=decoder, best=True)


def run(args: argparse.Namespace) -> int:
    """List the best trees of the sentences and write them."""
    trees = TreeRequest("kbest", args.k, args.decoder, probabilities=args.probabilities)
    return corpora.parse_files(args, trees, args.output_format)
