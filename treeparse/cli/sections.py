"""The sentences that ``treeparse render`` draws, from files and from a model, with their pictures."""

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TypeVar

from treeparse.cli.common import counted
from treeparse.cli.systems import System, read_systems
from treeparse.data.conllu import ConlluSentence
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.pictures.layout import Tree, arcs_of, count_marks
from treeparse.pictures.page import Figure, Section
from treeparse.pictures.tree import draw_tree
from treeparse.sentence import Sentence

ROW_WIDTH = 1200  # pixels

T = TypeVar("T")


Sections = tuple[list[Section], bool]
"""The chosen sentences with their pictures, and whether there are more sentences."""


def choose(
    items: Iterable[T], sent_id: Callable[[T], str | None], names: list[str] | None, most: int
) -> tuple[list[T], bool]:
    """Return at most ``most`` items of some ids or numbers (from 1), of all if None, and whether there are more.

    Raises:
        TreeparseError: a name has no sentence.
    """
    missing, chosen = set(names or ()), list[T]()
    for number, item in enumerate(items, 1):
        own = {sent_id(item), str(number)}
        if names is not None and own.isdisjoint(names):
            continue
        if len(chosen) == most:
            return chosen, True
        missing -= own
        chosen.append(item)
    if missing:
        problem = f"There is no sentence {min(missing)!r} in the input"
        raise TreeparseError(f"{problem}: --sentence takes a sent_id, or a number from 1.")
    return chosen, False


def compared_sections(args: argparse.Namespace, most: int) -> Sections:
    """Draw the trees of a file, or all trees of its lists; with a system, gold trees and the system's trees.

    Raises:
        DataError: a sentence is faulty, or its words differ from gold's.
        TreeparseError: the files do not fit each other, or a chosen sentence does not exist.
    """
    systems, indices, _ = read_systems([path for path in (args.input, args.system) if path], args)
    sentences = systems[0].sentences
    chosen, has_more = choose(range(len(indices)), lambda number: sentences[number].sent_id, args.sentence, most)
    figures = {number: _compared(systems, number, args) for number in chosen}
    return [section_of(sentences[number], indices[number], each) for number, each in figures.items()], has_more


def _compared(systems: Sequence[System], number: int, args: argparse.Namespace) -> list[Figure]:
    """Draw a sentence's gold tree, if there are two systems, and the tree or the list of the last system."""
    gold, system = systems[0].sentences[number].words, systems[-1]
    reference = tree_of(gold) if len(systems) > 1 else None
    figures = [] if reference is None else [figure_of(reference, None, "gold", args.wrap)]
    if system.lists is not None:
        return [*figures, *_listed(system.lists[number], reference, gold, args)]
    tree = tree_of(replace(system.sentences[number].words, upos=gold.upos))
    return [*figures, figure_of(tree, reference, "system" if reference else "", args.wrap)]


def _listed(nbest: NBestList, reference: Tree | None, words: Sentence, args: argparse.Namespace) -> list[Figure]:
    """Draw the first k trees of a list against the reference, or without one against the first of them."""
    parses = nbest.parses[: args.k]
    sums = accumulate(math.exp(parse.log_prob) for parse in parses)
    figures = []
    for rank, (parse, mass) in enumerate(zip(parses, sums, strict=True), 1):
        tree = tree_of(words.with_tree(parse.heads, parse.labels))
        probability = f"tree {rank}: probability {math.exp(parse.log_prob):.4g}"
        several = f", with those before {mass:.4g}" if rank > 1 and mass <= 1 else ""
        figures.append(figure_of(tree, reference, probability + several, args.wrap))
        reference = reference or tree
    return figures


def figure_of(tree: Tree, reference: Tree | None, caption: str, wrap: float | None = ROW_WIDTH) -> Figure:
    """Draw a tree, with its differences from the reference in the caption; ``wrap`` None is one row."""
    if reference is not None:
        heads, labels = count_marks(arcs_of(tree, reference))
        differences = [counted(number, noun) for number, noun in ((heads, "head"), (labels, "label")) if number]
        caption += f"; differs in {' and '.join(differences)}" if differences else "; the same tree"
    return Figure(draw_tree(tree, reference, wrap=wrap), caption)


def tree_of(words: Sentence) -> Tree:
    """Return the tree of a sentence, to draw."""
    return Tree(words.forms, words.heads or (), words.labels or (), words.upos)


def section_of(sentence: ConlluSentence, index: int, figures: Sequence[Figure]) -> Section:
    """Return a sentence with its pictures, under its id or else its number, which is ``index`` + 1."""
    texts = sentence.comments("text")
    text = texts[0] if texts else " ".join(sentence.words.forms)
    return Section(sentence.sent_id or str(index + 1), text, tuple(figures))
