"""``treeparse weights``: the strongest features by which a linear model scores the arcs of a sentence."""

import argparse
from collections.abc import Iterator, Sequence

from treeparse.cli.common import add_import_argument, add_output_argument, positive
from treeparse.cli.models import check_models, load_model
from treeparse.corpus.request import check_outputs
from treeparse.data import load_treebank
from treeparse.data.outputs import atomic_write
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.model.feature_weights import FeatureWeight, label_weights, part_weights
from treeparse.sentence import Sentence

EPILOG = """examples:
  treeparse weights runs/linear/model test.conllu
  treeparse weights runs/linear/model test.conllu --sentence 12 --word 3 --top 20

Prints for each word the arc of the best tree, the sum of the weights of its features and the strongest ones: h is the
head, d the dependent, b a word between them, s the sibling, g the head's head; right and left say where the dependent
is. Where the file has another head, the features of that arc follow. --labels prints the features of the label too.
Weights that are 0 are left out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="the folder of a linear model, or of its run")
    parser.add_argument("input", metavar="FILE", help="a CoNLL-U file")
    parser.add_argument("--sentence", type=positive, default=1, metavar="N", help="which sentence (default: 1)")
    parser.add_argument("--word", type=positive, metavar="N", help="only this word (default: all words)")
    parser.add_argument("--top", type=positive, default=5, metavar="N", help="features of an arc (default: 5)")
    parser.add_argument("--labels", action="store_true", help="print the features of labels, too")
    add_output_argument(parser, "the table")
    add_import_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the weights."""
    check_outputs([args.output], inputs=[args.input], overwrite_input=args.overwrite_input)
    check_models([args.model], args)
    sentences = load_treebank([args.input], partial=True, single_root=False)
    if args.sentence > len(sentences):
        raise TreeparseError(f"{args.input} has {len(sentences):,} sentences: name one of them as --sentence.")
    sentence = sentences[args.sentence - 1].words
    if args.word is not None and args.word > len(sentence):
        raise TreeparseError(f"Sentence {args.sentence} has {len(sentence)} words: name one of them as --word.")
    parser = load_model(args.model, args)
    words = range(1, len(sentence) + 1) if args.word is None else [args.word]
    atomic_write(args.output, "\n".join(_lines(parser, sentence, words, args)) + "\n")
    return 0


def _lines(parser: Parser, sentence: Sentence, words: Sequence[int], args: argparse.Namespace) -> Iterator[str]:
    [parse] = parser.parse([sentence])
    names = ("ROOT", *sentence.forms)
    for word in words:
        head, label = parse.heads[word - 1], parse.labels[word - 1]
        weights = part_weights(parser, sentence, parse.heads, word)
        yield f"{word} {names[word]} <- {head} {names[head]}  score {_total(weights):+.2f}"
        yield from _strongest(weights, args.top)
        if args.labels:
            of_label = label_weights(parser, sentence, head, word, label)
            yield f"  label {label}  score {_total(of_label):+.2f}"
            yield from _strongest(of_label, args.top)
        gold = sentence.heads[word - 1] if sentence.heads else -1
        if gold >= 0 and gold != head:
            weights = part_weights(parser, sentence, sentence.heads or (), word)
            yield f"  in the file: {word} {names[word]} <- {gold} {names[gold]}  score {_total(weights):+.2f}"
            yield from _strongest(weights, args.top)


def _total(weights: Sequence["FeatureWeight"]) -> float:
    return sum(feature.weight for feature in weights)


def _strongest(weights: Sequence["FeatureWeight"], count: int) -> Iterator[str]:
    strongest = sorted(weights, key=lambda feature: -abs(feature.weight))[:count]
    return (f"    {weight:+7.3f}  {feature}" for feature, weight in strongest if weight)
