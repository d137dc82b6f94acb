"""The files that ``treeparse evaluate`` compares: gold trees, parses, and n-best lists, sentence by sentence."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from treeparse.data.conllu import ConlluSentence, scan_conllu
from treeparse.data.files import expand_paths
from treeparse.data.nbest.conllu import is_ranked, join_trees
from treeparse.data.nbest.files import NBestList, format_of, read_nbest
from treeparse.errors import DataError, TreeparseError
from treeparse.sentence import Sentence, tree_problem


@dataclass(frozen=True, slots=True)
class System:
    """The sentences of a file, or of several that a glob names.

    ``sentences`` has None in the place of a faulty one that is to be skipped; of an n-best file it has the first trees.
    ``lists`` has every list of an n-best file and is None for any other.
    """

    sentences: "list[ConlluSentence | None]"
    lists: "list[NBestList] | None" = None

    def trees(self, places: Sequence[int]) -> "list[list[Sentence]]":
        """All the trees of the lists in some places."""
        lists = [(self.lists or [])[place] for place in places]
        return [[nbest.sentence.words.with_tree(p.heads, p.labels) for p in nbest.parses] for nbest in lists]

    def log_probs(self, places: Sequence[int]) -> list[list[float]]:
        """Their log probabilities."""
        return [[parse.log_prob for parse in (self.lists or [])[place].parses] for place in places]


def read_system(pattern: str, args: argparse.Namespace, *, may_be_nbest: bool = True) -> System:
    """Read a file, or several that a glob names.

    Raises:
        DataError: a sentence is faulty and not to be skipped, or it is one of an n-best file.
        TreeparseError: some of the files are n-best files and others are not.
    """
    paths = expand_paths([pattern])
    systems = [_read_file(path, args, may_be_nbest) for path in paths]
    if len({system.lists is None for system in systems}) > 1:
        kinds = ("plain" if system.lists is None else "n-best" for system in systems)
        found = ", ".join(f"{path} ({kind})" for path, kind in zip(paths, kinds, strict=True))
        raise TreeparseError(f"Some of the files of {pattern} are n-best files and some are not: {found}.")
    sentences = [sentence for system in systems for sentence in system.sentences]
    if systems[0].lists is None:
        return System(sentences)
    return System(sentences, [nbest for system in systems for nbest in system.lists or ()])


def _read_file(path: Path, args: argparse.Namespace, may_be_nbest: bool) -> System:

    if may_be_nbest and format_of(path) == "jsonl":
        return _first_trees(read_nbest(path), args)
    sentences: list[ConlluSentence | None] = []
    results = scan_conllu(path, require_trees=True, single_root=not args.multi_root)
    for result in results:
        if isinstance(result, ConlluSentence):
            if may_be_nbest and not sentences and is_ranked(result):
                return _first_trees(join_trees(_all_sound(chain([result], results))), args)
            sentences.append(result)
        elif result[0].line is None or not args.skip_invalid:  # no line: the file holds no sentence
            raise result[0]
        else:
            sentences.append(None)
    return System(sentences)


def _all_sound(results: "Iterable[ConlluSentence | tuple[DataError, ...]]") -> "Iterator[ConlluSentence]":
    for result in results:
        if isinstance(result, tuple):
            raise result[0]  # a list without one of its trees is another list: it cannot be left out
        yield result


def _first_trees(lists: "Iterator[NBestList]", args: argparse.Namespace) -> System:
    """The system of n-best lists."""
    sentences: list[ConlluSentence | None] = []
    kept: list[NBestList] = []
    for nbest in lists:
        sentence, first = nbest.sentence, nbest.parses[0]
        for rank, parse in enumerate(nbest.parses, 1):
            if problem := tree_problem(parse.heads, single_root=not args.multi_root):
                place = {"source": sentence.source, "line": sentence.line, "sent_id": sentence.sent_id}
                raise DataError(f"tree {rank}: {problem}", **place)
        sentences.append(replace(sentence, words=sentence.words.with_tree(first.heads, first.labels)))
        kept.append(nbest)
    return System(sentences, kept)


def sound_places(systems: Sequence[System], paths: Sequence[str]) -> list[int]:
    """The places of the sentences that are sound in every file, after a check that all files have the same words.

    Raises:
        DataError: a sentence has other words than in the first file.
        TreeparseError: the files differ in their number of sentences, or no sentence is sound in all of them.
    """
    from treeparse.metrics import REMEDY, word_mismatch

    places = []
    for place, same in enumerate(zip(*(system.sentences for system in systems), strict=False)):
        sound = [sentence for sentence in same if sentence is not None]
        if len(sound) < len(systems):
            continue
        places.append(place)
        for sentence in sound[1:]:
            if problem := word_mismatch(sound[0].words, sentence.words):
                source, line, sent_id = sentence.source, sentence.line, sentence.sent_id
                raise DataError(f"{problem}; {REMEDY}", source=source, line=line, sent_id=sent_id)
    numbers = [len(system.sentences) for system in systems]
    if len(set(numbers)) > 1:
        sizes = ", ".join(f"{number:,} in {path}" for path, number in zip(paths, numbers, strict=True))
        raise TreeparseError(f"The files differ in their number of sentences: {sizes}; {REMEDY}.")
    if not places:
        raise TreeparseError(f"No sentence is sound in all of: {', '.join(paths)}.")
    return places
