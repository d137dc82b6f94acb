"""The files that ``evaluate`` and ``render`` compare, gold trees, parses and n-best lists, and drawings of trees."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from treeparse.cli.common import counted
from treeparse.data.conllu import ConlluSentence, scan_conllu
from treeparse.data.files import expand_paths
from treeparse.data.nbest import NBestList, format_of, is_listed, join_trees, read_nbest
from treeparse.data.validation import FORM, ID, TreeCheck
from treeparse.errors import DataError, TreeparseError
from treeparse.metrics import REMEDY, word_mismatch
from treeparse.metrics.alignment import Tokenised, text_difference
from treeparse.pictures.layout import MultiwordToken, Tree, arcs_of, count_marks
from treeparse.pictures.page import Figure, Section
from treeparse.pictures.tree import draw_tree
from treeparse.sentence import Sentence, tree_problem

ROW_WIDTH = 1200  # pixels


@dataclass(frozen=True, slots=True)
class System:
    """Sentences with trees, from one file or from all files of a glob.

    The ``lists`` of n-best files have all trees, ``sentences`` the first tree of each list; None for other files.
    """

    sentences: list[ConlluSentence]
    lists: list[NBestList] | None = None


Results = tuple[list[ConlluSentence | None], list[NBestList] | None]
"""The sentences of a file, None for a faulty one that is left out, and its lists if it is an n-best file."""


def read_systems(
    patterns: Sequence[str],
    args: argparse.Namespace,
    *,
    has_gold: bool = False,
    any_words: bool = False,
    any_gold: bool = False,
    all_gold: bool = False,
) -> tuple[list[System], list[int], int]:
    """Read systems and restrict each to the sentences that are sound in all of them.

    With ``any_words``, two files without faults whose words or sentences differ, but not their text, stay as they are.
    With ``any_gold``, so do files of trees that begin with other words than the first: each is gold of its own. With
    ``all_gold``, all files are gold, whatever their words.

    Returns:
        the systems, the indices of these sentences in the files, none if files stay as they are, and the number of
        other sentences.

    Raises:
        DataError: a sentence is faulty and must not be left out, or its words differ from those of the first system.
        TreeparseError: the systems differ in their number of sentences, no sentence is sound in all of them, or some
            of the files of a glob are n-best files and others are not.
    """
    results = [_read(pattern, args, may_be_nbest=number > 0 or not has_gold) for number, pattern in enumerate(patterns)]
    if any_words and (files := _of_other_words(results)):
        return files, [], 0
    if any_gold and (files := _each_gold(results, surely=all_gold)):
        return files, [], sum(sentences.count(None) for sentences, _ in results)
    indices = []
    for index, same in enumerate(zip(*(sentences for sentences, _ in results), strict=False)):
        sound = [sentence for sentence in same if sentence is not None]
        if len(sound) < len(results):
            continue
        indices.append(index)
        for sentence in sound[1:]:
            if problem := word_mismatch(sound[0].words, sentence.words):
                raise sentence.fault(f"{problem}; {REMEDY}")
    counts = [len(sentences) for sentences, _ in results]
    if len(set(counts)) > 1:
        sizes = ", ".join(f"{count:,} in {pattern}" for pattern, count in zip(patterns, counts, strict=True))
        raise TreeparseError(f"The files differ in their number of sentences: {sizes}; {REMEDY}.")
    if not indices:
        raise TreeparseError(f"No sentence is sound in all of: {', '.join(patterns)}.")
    systems = []
    for sentences, lists in results:
        chosen = [sentence for index in indices if (sentence := sentences[index]) is not None]
        systems.append(System(chosen, None if lists is None else [lists[index] for index in indices]))
    return systems, indices, counts[0] - len(indices)


def _each_gold(results: Sequence[Results], *, surely: bool) -> list[System] | None:
    """Return files of trees if they are ``surely`` gold or none begins with the words of the first, otherwise None."""
    files = [System([sentence for sentence in sentences if sentence], lists) for sentences, lists in results]
    first, *others = ([sentence.words.forms for sentence in file.sentences[:1]] for file in files)
    may_be = first not in others and all(file.lists is None for file in files)
    return files if surely or may_be else None


def _of_other_words(results: Sequence[Results]) -> list[System] | None:
    """Return gold and a system if they are one text in other words or sentences, otherwise None.

    Raises:
        DataError: they differ in their number of sentences and in their text.
    """
    gold, system = ([sentence for sentence in sentences if sentence] for sentences, _ in results)
    are_whole = all(lists is None and None not in sentences for sentences, lists in results)
    if not are_whole or [s.words.forms for s in gold] == [s.words.forms for s in system]:
        return None
    if difference := text_difference([*map(tokenised, gold)], [*map(tokenised, system)]):
        if len(gold) == len(system):
            return None  # the other message names the word
        index, problem = difference
        raise system[index].fault(problem)
    return [System(gold), System(system)]


def tokenised(sentence: ConlluSentence) -> Tokenised:
    """Return the words of a sentence, and its tokens."""
    tokens = sentence.tokens()
    return sentence.words, [(row[FORM], last - first + 1 if "-" in row[ID] else 0) for row, first, last in tokens]


def _read(pattern: str, args: argparse.Namespace, *, may_be_nbest: bool) -> Results:
    """Read a file, or the files of a glob."""
    paths = expand_paths([pattern])
    results = [_read_file(path, args, may_be_nbest=may_be_nbest) for path in paths]
    lists = [lists for _, lists in results if lists is not None]
    if 0 < len(lists) < len(paths):
        kinds = ("plain" if lists is None else "n-best" for _, lists in results)
        files = ", ".join(f"{path} ({kind})" for path, kind in zip(paths, kinds, strict=True))
        raise TreeparseError(f"Some of the files of {pattern} are n-best files and some are not: {files}.")
    sentences = chain.from_iterable(sentences for sentences, _ in results)
    return [*sentences], [*chain.from_iterable(lists)] if lists else None


def _read_file(path: Path, args: argparse.Namespace, *, may_be_nbest: bool) -> Results:
    if may_be_nbest and format_of(path) == "jsonl":
        return _first_trees(read_nbest(path), args)
    sentences: list[ConlluSentence | None] = []
    results = scan_conllu(path, TreeCheck(single_root=not args.multi_root))
    for result in results:
        if isinstance(result, ConlluSentence):
            if may_be_nbest and not sentences and is_listed(result):
                return _first_trees(join_trees(_all_sound(chain([result], results))), args)
            sentences.append(result)
        elif result[0].line is None or not args.skip_invalid:  # no line: the file holds no sentence
            raise result[0]
        else:
            sentences.append(None)
    return sentences, None


def _all_sound(results: Iterable[ConlluSentence | tuple[DataError, ...]]) -> Iterator[ConlluSentence]:
    for result in results:
        if isinstance(result, tuple):
            raise result[0]  # a list without one of its trees is another list: it cannot be left out
        yield result


def _first_trees(nbest_lists: Iterator[NBestList], args: argparse.Namespace) -> Results:
    """Return the sentences of n-best lists with their first trees, and the lists; raise if a parse is no tree."""
    sentences: list[ConlluSentence | None] = []
    lists: list[NBestList] = []
    for nbest in nbest_lists:
        for rank, parse in enumerate(nbest.parses, 1):
            if problem := tree_problem(parse.heads, single_root=not args.multi_root):
                raise nbest.sentence.fault(f"tree {rank}: {problem}")
        words = nbest.sentence.words.with_tree(nbest.parses[0].heads, nbest.parses[0].labels)
        sentences.append(replace(nbest.sentence, words=words))
        lists.append(nbest)
    return sentences, lists


def figure_of(tree: Tree, reference: Tree | None, caption: str, wrap: float | None = ROW_WIDTH) -> Figure:
    """Draw a tree, with its differences from the reference in the caption; ``wrap`` None is one row."""
    if reference is not None:
        heads, labels = count_marks(arcs_of(tree, reference))
        differences = [counted(number, noun) for number, noun in ((heads, "head"), (labels, "label")) if number]
        caption += f"; differs in {' and '.join(differences)}" if differences else "; the same tree"
    return Figure(draw_tree(tree, reference, wrap=wrap), caption)


def tree_of(sentence: ConlluSentence, words: Sentence | None = None) -> Tree:
    """Return the tree of a sentence, or the tree of ``words``, its words with another one, to draw."""
    words = words or sentence.words
    multiword = (token for token in sentence.tokens() if "-" in token[0][ID])
    tokens = tuple(MultiwordToken(first, last, row[FORM]) for row, first, last in multiword)
    return Tree(words.forms, words.heads or (), words.labels or (), words.upos, tokens)


def section_of(sentence: ConlluSentence, index: int, figures: Sequence[Figure]) -> Section:
    """Return a sentence with its pictures, under its id or else its number, which is ``index`` + 1."""
    text = next(iter(sentence.comments("text")), " ".join(sentence.words.forms))
    return Section(sentence.sent_id or str(index + 1), text, tuple(figures))
