"""``treeparse render``: pictures of trees, of lists of trees, of a system's errors and of a model's marginals."""

import argparse
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path

import torch

from treeparse.cli.common import add_import_argument, add_output_argument, positive
from treeparse.cli.models import check_models, load_model
from treeparse.cli.systems import ROW_WIDTH, System, figure_of, read_systems, section_of, tree_of
from treeparse.corpus.request import check_outputs
from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.files import expand_paths
from treeparse.data.outputs import atomic_write
from treeparse.data.parses import NBestList, Parse
from treeparse.data.tokenised import read_text
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.pictures.layout import Tree
from treeparse.pictures.page import Figure, Section, legend, page
from treeparse.pictures.plots import draw_marginals
from treeparse.pictures.svg import document, stacked
from treeparse.progress import Console, parsing_bar
from treeparse.sentence import tree_problem

EPILOG = """examples:
  treeparse render parsed.conllu -o trees.html
  treeparse render parsed.conllu --sentence weblog-7 --wrap none -o tree.svg
  treeparse render gold.conllu parsed.conllu -o errors.html    # gold above parse, wrong arcs dashed
  treeparse render best.jsonl -k 5 -o lists.html               # as kbest or sample wrote it
  treeparse render --model runs/english/model gold.conllu -o errors.html
  treeparse render --model runs/english/model text.conllu --heat-map -o marginals.html

Each tree of a list has its probability and marks of its differences from the first tree; parses beside gold trees have
marks of their differences from gold. An arc with another head is dashed, another label at the same head is framed.
--model draws the model's parses of the sentences of IN, each below its gold tree if IN has one; --heat-map adds the
probability of every arc, a row for each head.

SVG holds one sentence; HTML holds many, each at the anchor s-SENT_ID, without scripts or outside files. Both are light
or dark as the reader's system prefers. Sentences of mostly right-to-left words run from right to left. Below its words
stands the form of a multiword token."""

MOST = 100  # sentences of a page
LISTED = 10  # trees of a list
LARGE = 5_000_000  # bytes of a page, above which browsers become slow

Sections = tuple[list[Section], bool]
"""The chosen sentences with their pictures, and whether there are more sentences."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "input",
        metavar="IN",
        help="CoNLL-U with trees, or lists of kbest or sample; plain or compressed; a glob; - for stdin",
    )
    parser.add_argument("system", nargs="?", metavar="SYSTEM", help="parses or lists of the same sentences")
    add_output_argument(parser, "SVG or HTML")
    parser.add_argument("--output-format", choices=("svg", "html"), help="default: svg if OUT ends in .svg, else html")
    parser.add_argument("--sentence", action="append", metavar="ID", help="a sent_id or a number; may be repeated")
    parser.add_argument("--most", type=positive, default=MOST, metavar="N", help=f"sentences to draw (default: {MOST})")
    parser.add_argument(
        "-k",
        type=positive,
        default=LISTED,
        metavar="K",
        help=f"draw the first K trees of each list (default: {LISTED})",
    )
    parser.add_argument(
        "--wrap",
        type=_width,
        default=ROW_WIDTH,
        metavar="PIXELS",
        help=f"the width of a row (default: {ROW_WIDTH}); none: one row of any length",
    )
    parser.add_argument("--model", metavar="DIR", help="draw the parses of this model, below the trees of IN if any")
    parser.add_argument("--heat-map", action="store_true", help="with --model: draw the probability of every arc, too")
    parser.add_argument("--format", choices=("conllu", "text"), default="conllu", help="the format of IN, with --model")
    add_import_argument(parser)
    parser.add_argument("--multi-root", action="store_true", help="allow trees of several roots")
    parser.add_argument("--skip-invalid", action="store_true", help="leave out sentences that are faulty in any file")


def _width(text: str) -> int | None:
    """The type of an argument: a width of rows; None for "none"."""
    return None if text == "none" else positive(text)


def run(args: argparse.Namespace) -> int:
    """Draw the sentences and write the pictures."""
    if args.heat_map and not args.model:
        raise TreeparseError("--heat-map draws the probabilities of a model: name one by --model DIR.")
    if args.model and args.system:
        raise TreeparseError("--model draws the parses of a model: leave out SYSTEM, or --model.")
    if args.format == "text" and not args.model:
        raise TreeparseError("Text has no trees to draw: name a model that parses it by --model DIR.")
    inputs = [args.input, args.system]
    check_outputs([args.output], inputs=inputs, others=[args.model], overwrite_input=args.overwrite_input)
    check_models([args.model] if args.model else [], args)
    is_svg = (args.output_format or Path(args.output).suffix[1:].lower()) == "svg"
    sections, has_more = (_modelled_sections if args.model else _compared_sections)(args, 2 if is_svg else args.most)
    picture = _svg(sections, args) if is_svg else _html(sections, args)
    console = Console(quiet=args.quiet)
    if (size := len(picture.encode())) > LARGE:
        remedy = "draw fewer sentences by --most or --sentence, or fewer trees of each list by -k"
        console.remark(f"warning: {size / 1e6:.0f} MB, which browsers show slowly: {remedy}")
    atomic_write(args.output, picture)
    if has_more and not is_svg:
        console.remark(f"{len(sections):,} sentences drawn, the others not: see --most, --sentence")
    return 0


def _choose(
    sentences: Iterable[ConlluSentence], args: argparse.Namespace, most: int
) -> tuple[dict[int, ConlluSentence], bool]:
    """Return the first sentences of ``--sentence``, or of all, by index, and whether there are more than ``most``."""
    chosen: dict[int, ConlluSentence] = {}
    missing = set(args.sentence or ())
    for index, sentence in enumerate(sentences):
        names = {sentence.sent_id, str(index + 1)}
        if args.sentence is not None and names.isdisjoint(args.sentence):
            continue
        if len(chosen) == most:
            return chosen, True
        missing -= names
        chosen[index] = sentence
    if missing:
        problem = f"There is no sentence {min(missing)!r} in the input"
        raise TreeparseError(f"{problem}: --sentence takes a sent_id, or a number from 1.")
    return chosen, False


def _compared_sections(args: argparse.Namespace, most: int) -> Sections:
    """Draw the trees of a file, or all trees of its lists; with a system, gold trees and the system's trees.

    Raises:
        DataError: a sentence is faulty, or its words differ from gold's.
        TreeparseError: the files do not fit each other, or a chosen sentence does not exist.
    """
    systems, indices, _ = read_systems([path for path in (args.input, args.system) if path], args)
    chosen, has_more = _choose(systems[0].sentences, args, most)
    return [
        section_of(sentence, indices[number], _compared(systems, number, args)) for number, sentence in chosen.items()
    ], has_more


def _compared(systems: Sequence[System], number: int, args: argparse.Namespace) -> list[Figure]:
    """Draw a sentence's gold tree, if there are two systems, and the tree or the list of the last system."""
    gold, system = systems[0].sentences[number], systems[-1]
    reference = tree_of(gold) if len(systems) > 1 else None
    figures = [] if reference is None else [figure_of(reference, None, "gold", args.wrap)]
    if system.lists is not None:
        return [*figures, *_listed(system.lists[number], reference, gold, args)]
    parsed = system.sentences[number]
    tree = tree_of(parsed, replace(parsed.words, upos=gold.words.upos))
    return [*figures, figure_of(tree, reference, "system" if reference else "", args.wrap)]


def _listed(nbest: NBestList, reference: Tree | None, gold: ConlluSentence, args: argparse.Namespace) -> list[Figure]:
    """Draw the first k trees of a list against the reference, or without one against the first of them."""
    parses = nbest.parses[: args.k]
    sums = accumulate(math.exp(parse.log_prob) for parse in parses)
    figures = []
    for rank, (parse, mass) in enumerate(zip(parses, sums, strict=True), 1):
        tree = tree_of(gold, gold.words.with_tree(parse.heads, parse.labels))
        probability = f"tree {rank}: probability {math.exp(parse.log_prob):.4g}"
        several = f", with those before {mass:.4g}" if rank > 1 and mass <= 1 else ""
        figures.append(figure_of(tree, reference, probability + several, args.wrap))
        reference = reference or tree
    return figures


def _modelled_sections(args: argparse.Namespace, most: int) -> Sections:
    """Draw the parses of a model, below the gold trees of the sentences if any, and the probabilities of arcs.

    Raises:
        DataError: a sentence is faulty.
        TreeparseError: a chosen sentence or the model does not exist, or a sentence lacks tags that the model reads.
    """
    parser = load_model(args.model, args)
    read = read_text if args.format == "text" else read_conllu
    sentences = chain.from_iterable(map(read, expand_paths([args.input])))
    chosen, has_more = _choose(sentences, args, most)
    words = [sentence.words for sentence in chosen.values()]
    with parsing_bar(words, hidden=args.quiet) as progress:
        parses = parser.parse(words, progress=progress)
    return [
        section_of(sentence, index, _modelled(parser, sentence, parse, args))
        for index, (sentence, parse) in enumerate(zip(chosen.values(), parses, strict=True))
    ], has_more


def _modelled(parser: Parser, sentence: ConlluSentence, parse: Parse, args: argparse.Namespace) -> list[Figure]:
    """Draw the parse of a sentence against its gold tree, if it has one, and the probabilities of all arcs."""
    words = sentence.words
    has_tree = words.heads is not None and tree_problem(words.heads, single_root=not args.multi_root) is None
    gold = tree_of(sentence) if has_tree else None
    upos = words.upos if gold else parse.upos or words.upos
    tree = tree_of(sentence, replace(words, upos=upos).with_tree(parse.heads, parse.labels))
    figures = [figure_of(gold, None, "gold", args.wrap)] if gold else []
    has_probability = not math.isnan(parse.log_prob)
    caption = f"probability {math.exp(parse.log_prob):.4g}" if has_probability else "the best tree"
    figures.append(figure_of(tree, gold, caption, args.wrap))
    if args.heat_map:
        caption = "probability of every arc: a row a head, a column a dependent; the arcs of the parse are framed"
        with torch.inference_mode():
            p = parser.distribution(parser.collate([words.without_tree()]))
            marginals = p.arc_marginals()[0].tolist()
        figures.append(Figure(draw_marginals(words.forms, marginals, parse.heads), caption))
    return figures


def _svg(sections: list[Section], args: argparse.Namespace) -> str:
    if len(sections) > 1:
        problem = f"An SVG file holds one sentence, but there are more in {args.input}"
        raise TreeparseError(f"{problem}: choose one by --sentence ID, or write HTML.")
    [section] = sections
    drawings, captions = zip(*((figure.drawing, figure.caption) for figure in section.figures), strict=True)
    return document(stacked(drawings, captions, section.text))


def _html(sections: list[Section], args: argparse.Namespace) -> str:
    is_compared = any(len(section.figures) > 1 + args.heat_map for section in sections)
    introduction = legend("gold" if args.system or args.model else "the first tree") if is_compared else ""
    return page(" and ".join(filter(None, (args.input, args.system))), sections, introduction=introduction)
