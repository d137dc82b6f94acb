"""The sentences that ``treeparse render`` draws, from files and from a model, with their pictures."""

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from treeparse.cli.common import counted
from treeparse.cli.models import load_model
from treeparse.cli.systems import System, read_system, sound_places
from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.files import expand_paths
from treeparse.data.nbest.conllu import key_and_value, split_lines
from treeparse.data.parses import Parse
from treeparse.data.text.tokenised import read_text
from treeparse.errors import TreeparseError
from treeparse.pictures.arcs import Tree, arcs_of, count_marks
from treeparse.pictures.matrix import draw_marginals
from treeparse.pictures.page import Figure, Section
from treeparse.pictures.tree import draw_tree
from treeparse.progress import parsing_bar
from treeparse.sentence import Sentence, tree_problem

if TYPE_CHECKING:
    from treeparse.model import Parser

ROW_WIDTH = 1200  # pixels

T = TypeVar("T")


@dataclass(slots=True)
class Chosen:
    """Which sentences are drawn: those of some ids or numbers, all if None, but at most ``most`` of them.

    ``left_out`` says, once they are read, whether there were more.
    """

    names: list[str] | None
    most: int
    left_out: bool = False

    def of(self, items: Iterable[T], sent_id: "Callable[[T], str | None]") -> Iterator[T]:
        """The chosen ones of all sentences, which count from 1.

        Raises:
            TreeparseError: there is no sentence of a name.
        """
        wanted, drawn = set(self.names or ()), 0
        for number, item in enumerate(items, 1):
            own = {sent_id(item), str(number)}
            if self.names is not None and own.isdisjoint(self.names):
                continue
            if drawn == self.most:
                self.left_out = True
                return
            wanted -= own
            drawn += 1
            yield item
        if wanted:
            problem = f"There is no sentence {min(wanted)!r} in the input"
            raise TreeparseError(f"{problem}: --sentence takes a sent_id, or a number from 1.")


def compared_sections(args: argparse.Namespace, chosen: Chosen) -> "list[Section]":
    """The trees of a file, all trees of its lists, or gold trees each with those of a system.

    Raises:
        DataError: a sentence is faulty, or its words are not gold's.
        TreeparseError: the files do not fit each other, or there is no sentence of a name.
    """
    paths = [args.input, *([args.system] if args.system else [])]
    systems = [read_system(path, args) for path in paths]

    def sentence(place: int) -> "ConlluSentence":
        found = systems[0].sentences[place]
        assert found is not None  # the place is sound
        return found

    places = chosen.of(sound_places(systems, paths), lambda place: sentence(place).sent_id)
    return [_compared(sentence(place), place, systems, args) for place in places]


def _compared(sentence: "ConlluSentence", place: int, systems: Sequence[System], args: argparse.Namespace) -> "Section":
    """A sentence of the first file with its tree or its list and, of a second one, what that has against it."""
    tree = tree_of(sentence.words)
    if len(systems) == 1 and systems[0].lists is not None:
        figures = _listed(systems[0], place, None, sentence.words, args)
    elif len(systems) == 1:
        figures = [figure_of(tree, None, "", args.wrap)]
    else:
        figures = [figure_of(tree, None, "gold", args.wrap), *_of_system(systems[1], place, sentence.words, args)]
    return section_of(sentence, place, figures)


def _of_system(system: System, place: int, gold: "Sentence", args: argparse.Namespace) -> "list[Figure]":
    """A system's tree, or the trees of its list, against gold."""
    found = system.sentences[place]
    if system.lists is not None:
        return _listed(system, place, tree_of(gold), gold, args)
    if found is None:
        return []
    return [figure_of(tree_of(replace(found.words, upos=gold.upos)), tree_of(gold), "system", args.wrap)]


def _listed(
    system: System, place: int, reference: "Tree | None", words: "Sentence", args: argparse.Namespace
) -> "list[Figure]":
    """The trees of a list, as many as are wanted, against the reference or else the first of them."""
    parses = (system.lists or [])[place].parses[: args.k]
    sums = accumulate(math.exp(parse.log_prob) for parse in parses)
    figures = []
    for rank, (parse, mass) in enumerate(zip(parses, sums, strict=True), 1):
        tree = tree_of(words.with_tree(parse.heads, parse.labels))
        probability = f"tree {rank}: probability {math.exp(parse.log_prob):.4g}"
        several = f", with those before {mass:.4g}" if rank > 1 and mass <= 1 else ""
        figures.append(figure_of(tree, reference, probability + several, args.wrap))
        reference = reference or tree
    return figures


def figure_of(tree: "Tree", reference: "Tree | None", caption: str, wrap: float | None = ROW_WIDTH) -> "Figure":
    """A tree's picture, with what differs from the reference in its caption; ``wrap`` None is one row."""
    if reference is not None:
        heads, labels = count_marks(arcs_of(tree, reference))
        differences = [counted(number, noun) for number, noun in ((heads, "head"), (labels, "label")) if number]
        caption += f"; differs in {' and '.join(differences)}" if differences else "; the same tree"
    return Figure(draw_tree(tree, reference, wrap=wrap), caption)


def modelled_sections(args: argparse.Namespace, chosen: Chosen) -> "list[Section]":
    """The parses of a model, below the trees that the sentences have, and, if asked, the probabilities of its arcs.

    Raises:
        DataError: a sentence is faulty.
        TreeparseError: there is no such model or sentence, or the sentence lacks what the model reads.
    """
    parser = load_model(args.model, args)
    read = read_text if args.format == "text" else read_conllu
    found = list(chosen.of((s for path in expand_paths([args.input]) for s in read(path)), lambda s: s.sent_id))
    words = [replace(sentence.words, heads=None, labels=None) for sentence in found]
    with parsing_bar(words, hidden=args.quiet) as progress:
        parses = parser.parse(words, progress=progress)
    return [
        section_of(sentence, place, _modelled(parser, sentence.words, own, parse, args))
        for place, (sentence, own, parse) in enumerate(zip(found, words, parses, strict=True))
    ]


def _modelled(
    parser: "Parser", given: "Sentence", words: "Sentence", parse: "Parse", args: argparse.Namespace
) -> "list[Figure]":
    """The parse of a sentence without a tree, ``words``, against the tree with which it was given, if any."""
    gold = tree_of(given) if _has_whole_tree(given, single_root=not args.multi_root) else None
    upos = given.upos if gold else parse.upos or words.upos
    tree = tree_of(replace(words, upos=upos).with_tree(parse.heads, parse.labels))
    figures = [figure_of(gold, None, "gold", args.wrap)] if gold else []
    figures.append(figure_of(tree, gold, f"probability {math.exp(parse.log_prob):.4g}", args.wrap))
    if args.heat_map:
        caption = "probability of every arc: a row a head, a column a dependent; the arcs of the parse are framed"
        figures.append(Figure(draw_marginals(words.forms, _marginals(parser, words), parse.heads), caption))
    return figures


def _has_whole_tree(words: "Sentence", *, single_root: bool) -> bool:
    """Whether every word has a head, and together they are a tree."""
    return words.heads is not None and tree_problem(words.heads, single_root=single_root) is None


def _marginals(parser: "Parser", words: "Sentence") -> list[list[float]]:
    """The probability of every arc, head first."""
    import torch

    with torch.inference_mode():
        return parser.distribution(parser.collate([words])).arc_marginals()[0].tolist()


def tree_of(words: "Sentence") -> "Tree":
    """The tree of a sentence, to draw."""
    return Tree(words.forms, words.heads or (), words.labels or (), words.upos)


def section_of(sentence: "ConlluSentence", place: int, figures: "Sequence[Figure]") -> "Section":
    """A sentence with its pictures, under its id or else its number; ``place`` counts from 0."""
    texts = [value for key, value in map(key_and_value, split_lines(sentence)[0]) if key == "text"]
    text = texts[0] if texts else " ".join(sentence.words.forms)
    return Section(sentence.sent_id or str(place + 1), text, tuple(figures))
