"""``treeparse weights``: the strongest features by which a linear model scores the arcs of a sentence."""

import argparse
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from treeparse.cli.common import add_import_argument, add_output_argument, positive
from treeparse.cli.models import check_models, load_model
from treeparse.corpus.request import check_outputs
from treeparse.data import load_treebank
from treeparse.data.outputs import atomic_write
from treeparse.errors import TreeparseError
from treeparse.feature_templates import BETWEEN, ROLES, AttributeHashes, Template
from treeparse.kernels.linear_updates import WeightedParts, feature_vectors
from treeparse.model import Parser
from treeparse.model.linear_scorer import LinearScorer, byte_table, nodes_of
from treeparse.sentence import Sentence

ABSENT = "none"
EPILOG = """examples:
  treeparse weights runs/linear/model test.conllu
  treeparse weights runs/linear/model test.conllu --sentence 12 --word 3 --top 20

Prints for each word the arc of the best tree, the sum of the weights of its features and the strongest ones: h is the
head, d the dependent, b a word between them, s the sibling, g the head's head; right and left say where the dependent
is. Where the file has another head, the features of that arc follow. --labels prints the features of the label too.
Weights that are 0 are left out."""


FeatureWeight = tuple[str, float]
"""A feature, as the attributes that it has, ``h.upos=VERB d.form=her left``, and its weight."""


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


def _total(weights: Sequence[FeatureWeight]) -> float:
    return sum(weight for _, weight in weights)


def _strongest(weights: Sequence[FeatureWeight], count: int) -> Iterator[str]:
    strongest = sorted(weights, key=lambda pair: -abs(pair[1]))[:count]
    return (f"    {weight:+7.3f}  {feature}" for feature, weight in strongest if weight)


def part_weights(parser: Parser, sentence: Sentence, heads: Sequence[int], word: int) -> list[FeatureWeight]:
    """Return all features of the parts of a tree that belong to a word, from 1: its arc, and its other parts if any.

    Raises:
        TreeparseError: the parser is not linear.
    """
    explained = _Explained(parser, sentence)
    cells = [heads[word - 1] * explained.size + word]
    tree = torch.tensor([[-1, *heads]])
    for kind in parser.config.tree_family.part_kinds:
        cells += kind.of_trees(tree, explained.lengths)[:, word].tolist()
    names = ("arcs", *explained.scorer.kinds)
    return [
        weight for name, cell in zip(names, cells, strict=True) if cell >= 0 for weight in explained.of_part(name, cell)
    ]


def label_weights(parser: Parser, sentence: Sentence, head: int, word: int, label: str) -> list[FeatureWeight]:
    """Return all features of an arc and their weights for a label; otherwise as `part_weights`."""
    explained = _Explained(parser, sentence)
    if label not in parser.label_names:
        raise TreeparseError(f"The model has no label {label!r:.50}.")
    return explained.of_part("labels", head * explained.size + word, parser.label_names.index(label))


class _Explained:
    """A sentence whose features are named."""

    def __init__(self, parser: Parser, sentence: Sentence) -> None:
        scorer, features = parser.scorer, parser.indexer.features
        if not isinstance(scorer, LinearScorer) or not isinstance(features, AttributeHashes):
            raise TreeparseError("Only a linear model (model.scorer LinearConfig) has weights of features.")
        batch = parser.indexer.collate([sentence])
        self.scorer, self.size, self.lengths = scorer, len(sentence) + 1, batch.lengths
        self.nodes, self.values = nodes_of(batch), features.values(sentence)

    def of_part(self, kind: str, cell: int, label: int | None = None) -> list[FeatureWeight]:
        """Return the features of one part, by its index in flattened scores."""
        weights, scale = (self.scorer.parts, 0) if label is None else (self.scorer.labels, 1)
        table = byte_table(weights, float(self.scorer.scales[scale]))
        is_arc = kind in ("arcs", "labels")
        one = np.zeros(1, np.int64), np.array([cell]), np.zeros(1, np.int64), np.ones(1, np.float32)
        parts = WeightedParts(*one, self.scorer.arrays[kind], is_arc)
        indices = feature_vectors(self.nodes, self.lengths.numpy(), [parts], 1, table.values).indices
        bytes_ = table.values[indices] if label is None else table.values[indices, label]
        nodes = (cell // self.size, cell % self.size)
        if not is_arc:
            nodes = (cell // self.size**2, cell // self.size % self.size, cell % self.size)
        texts = [text for template in self.scorer.templates[kind] for text in self._texts(template, nodes)]
        values = torch.from_numpy(bytes_).view(weights.dtype).float() * float(table.scale)
        return [*zip(texts, values.tolist(), strict=True)]

    def _texts(self, template: Template, nodes: tuple[int, ...]) -> list[str]:
        """Return the features of a template, in the order of the kernel."""
        head, dependent = nodes[:2]
        step = 1 if dependent > head else -1
        between = [slot.attribute for slot in template.slots if slot.role == BETWEEN]
        values = [""]
        if between:
            inner = range(head + step, dependent, step)
            values = list(dict.fromkeys(self.values[node][between[0]] for node in inner))
        last = nodes[2] if len(nodes) == 3 else head
        distance = [f"distance={abs(dependent - last)}"] if template.distance else []
        side = ["right" if dependent > head else "left"]
        return [" ".join([*self._slots(template, nodes, value), *distance, *side]) for value in values]

    def _slots(self, template: Template, nodes: tuple[int, ...], between: str) -> list[str]:
        texts = []
        for slot in template.slots:
            value = between
            if slot.role != BETWEEN:
                role = ROLES[slot.role]
                at = nodes[role] + slot.offset
                is_absent = role == ROLES["s"] and nodes[role] == nodes[0]
                value = ABSENT if is_absent or not 0 <= at < self.size else self.values[at][slot.attribute]
            texts.append(f"{slot}={value}")
        return texts
