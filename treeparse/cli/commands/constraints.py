"""``treeparse constraints``: extract constraints from trees, or compare a model with a file of constraints."""

import argparse
from collections.abc import Sequence

import torch

from treeparse.cli.common import add_batch_words_argument, add_import_argument, add_output_argument, aligned, positive
from treeparse.cli.models import check_models, load_model
from treeparse.corpus.request import check_outputs
from treeparse.data import load_treebank
from treeparse.data.files import expand_paths
from treeparse.data.mapping import map_batches
from treeparse.data.outputs import atomic_write
from treeparse.errors import TreeparseError
from treeparse.objectives.constraints import (
    Constraint,
    ConstraintMatches,
    constraints_to_yaml,
    extract_constraints,
    read_constraints,
    shares_of_trees,
)
from treeparse.sentence import Sentence

COUNT = 20
EPILOG = """examples:
  treeparse constraints extract small.conllu --count 20 -o constraints.yaml
  treeparse constraints report runs/english/model constraints.yaml dev.conllu

extract TREEBANK... writes the most frequent combinations of a word's UPOS, its head's UPOS and the word's side of the
head, each with the share of the words of that UPOS that have such a head, rounded to 0.1, 0.25, 0.5, 0.75 or 1. The
file is made to be edited and to train with --objective treeparse.objectives.GeneralizedExpectation.

report MODEL FILE TEXT... prints for each constraint of FILE the number of its words in TEXT, its target, the share of
these words that the model expects to match, the distance of that share from the target and, if TEXT has trees, the
share that matches in them. An entry of FILE is, for example,
  - dependent: {upos: DET}          # or {word: [the, a]}; a list means any of these; without it, all words
    head: {upos: NOUN}              # or root
    direction: left                 # the word is left of its head
    label: [det, det:poss]
    distance: [1, 5]                # words apart
    probability: 0.9                # or [0.8, 1.0], or at_least: 0.8, or at_most: 0.1"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.usage = """treeparse constraints extract TREEBANK ... [--count N] [--exact] [-o FILE]
       treeparse constraints report MODEL FILE TEXT ... [--batch-words N] [-o TABLE]"""
    parser.add_argument("action", choices=("extract", "report"), help="what to do, see below")
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="TREEBANK ...; or MODEL, FILE and TEXT ...")
    add_output_argument(parser, "the constraints or the report")
    parser.add_argument("--count", type=positive, metavar="N", help=f"constraints to extract (default: {COUNT})")
    parser.add_argument("--exact", action="store_true", help="extract shares of four digits, not rounded ones")
    add_batch_words_argument(parser)
    add_import_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Extract or report."""
    if args.action == "extract":
        check_outputs([args.output], inputs=args.inputs, overwrite_input=args.overwrite_input)
        atomic_write(args.output, _extract(args))
        return 0
    if len(args.inputs) < 3:
        raise TreeparseError(
            "A report needs a model, constraints and text: treeparse constraints report MODEL FILE TEXT ..."
        )
    if args.count is not None or args.exact:
        raise TreeparseError("--count and --exact say what is extracted: leave them out of a report.")
    check_outputs([args.output], inputs=args.inputs[2:], others=args.inputs[:2], overwrite_input=args.overwrite_input)
    expand_paths(args.inputs[1:])
    check_models(args.inputs[:1], args)
    atomic_write(args.output, "\n".join(_report(args)) + "\n")
    return 0


def _extract(args: argparse.Namespace) -> str:
    """Return the text of a file of constraints."""
    sentences = [sentence.words for sentence in load_treebank(args.inputs, partial=True, single_root=False)]
    extracted = extract_constraints(sentences, args.count or COUNT, exact=args.exact)
    words = sum(map(len, sentences))
    head = [
        f"# Constraints from {len(sentences):,} sentences of {words:,} words: {', '.join(args.inputs)}",
        "# They name the most frequent arcs; targets are "
        + ("shares as they were seen." if args.exact else "shares rounded to 0.1, 0.25, 0.5, 0.75 or 1."),
        "# An entry may also have label, distance, {word: ...} in the place of {upos: ...}, and an interval or",
        "# at_least or at_most as its target: see treeparse constraints --help.",
    ]
    comments = [
        f"{arcs.constraint}: {arcs.matches:,} of {arcs.words:,}, {_shown(arcs.matches / arcs.words)}"
        for arcs in extracted
    ]
    body = constraints_to_yaml([arcs.constraint for arcs in extracted], comments)
    return "\n".join(head) + "\n" + body


def _report(args: argparse.Namespace) -> list[str]:
    """Return the table of the constraints, and the mean of their distances, as lines."""
    model, file, *texts = args.inputs
    constraints = read_constraints(file)
    sentences = [sentence.words for sentence in load_treebank(texts, require_trees=False)]
    model_counts = _expected_counts(model, constraints, sentences, args)
    gold_counts = shares_of_trees(constraints, sentences)
    has_gold = any(words for _, words in gold_counts)
    rows = [["constraint", "words", "target", "model", "distance", *(["gold"] if has_gold else [])]]
    distances: list[float] = []
    for constraint, (matches, words), of_gold in zip(constraints, model_counts, gold_counts, strict=True):
        share, target, distance = _share(matches, words), constraint.target, None
        if share is not None:
            distance = abs(share - min(max(share, target.least), target.most))
            distances.append(distance)
        row = [str(constraint), f"{int(words):,}", str(target), _shown(share), _shown(distance)]
        rows.append([*row, _shown(_share(*of_gold))] if has_gold else row)
    mean = _shown(_share(sum(distances), len(distances)))
    return [*aligned(rows), "", f"mean distance {mean} of {len(distances)} constraints with words"]


def _expected_counts(
    model: str, constraints: Sequence[Constraint], sentences: list[Sentence], args: argparse.Namespace
) -> list[list[float]]:
    """Return for each constraint the expected number of matches under the model, and the number of words."""
    parser = load_model(model, args)

    def expect(_: list[int], chosen: list[Sentence]) -> list[torch.Tensor]:
        batch = parser.collate(chosen)
        p = parser.distribution(batch)
        features = ConstraintMatches(constraints, p, batch)
        matches = features.expectations(p.arcs.batched.marginals, features.kind_log_probs)
        return list(torch.stack([matches, features.counts], -1).cpu())

    with torch.inference_mode():
        return torch.stack(map_batches(expect, sentences, max_words=args.batch_words)).sum(0).tolist()


def _share(part: float, whole: float) -> float | None:
    """Return a part's share of the whole; None if the whole is 0."""
    return part / whole if whole else None


def _shown(share: float | None) -> str:
    return "-" if share is None else f"{share:.3f}"
