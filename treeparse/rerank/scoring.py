"""Scorers of lists, and lists put in the order of their scores."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, SupportsFloat, cast

from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError, did_you_mean
from treeparse.user_code import import_code

Scorer = Callable[[NBestList], Iterable[SupportsFloat]]
"""Gives every parse of a list a score, in order: the higher, the better."""


def rerank(lists: Iterable[NBestList], scorer: Scorer) -> Iterator[NBestList]:
    """The lists, one at a time, in the order of their scores: the highest first, equal ones as they were.

    A parse's ``score`` becomes the scorer's; its ``log_prob`` stays.

    Raises:
        TreeparseError: the scorer does not give a finite number to each parse.
    """
    return (reranked(nbest, scorer) for nbest in lists)


def reranked(nbest: NBestList, scorer: Scorer) -> NBestList:
    """A list in the order of its scores, as `rerank` says."""
    scores = checked_scores(nbest, scorer)
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    return replace(nbest, parses=tuple(replace(nbest.parses[place], score=scores[place]) for place in order))


def checked_scores(nbest: NBestList, scorer: Scorer) -> list[float]:
    """The scores of a list's parses; raises as `rerank`."""
    found = scorer(nbest)
    where = f"of sentence {nbest.sent_id}" if nbest.sent_id else f"of the sentence {' '.join(nbest.tokens)[:40]!r}"
    try:
        scores = [float(score) for score in found]
    except (TypeError, ValueError) as error:
        raise TreeparseError(
            f"The scorer gave the list {where} {found!r:.60} ({error}), but must give a number to each parse."
        ) from error
    if len(scores) != len(nbest.parses):
        raise TreeparseError(f"The scorer gave {len(scores)} scores to the {len(nbest.parses)} parses {where}.")
    if not all(map(math.isfinite, scores)):
        raise TreeparseError(f"The scorer gave a parse {where} a score that is no finite number.")
    return scores


def scorer_named(path: str) -> Scorer:
    """The scorer of a dotted path, ``mine.flat``: a function, or a class that is called without arguments to make one.

    Its module is imported, which runs what is in it.

    Raises:
        TreeparseError: there is no such module, or nothing in it of that name that can be called.
    """
    module, _, name = path.rpartition(".")
    if not module or not name:
        raise TreeparseError(f"The scorer {path!r:.100} is no dotted path of a function or class, such as mine.flat.")
    names: dict[str, Any] = vars(import_code(module))
    if name not in names:
        raise TreeparseError(f"The module {module} has nothing named {name!r:.100}{did_you_mean(name, names) or '.'}")
    found = names[name]
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise TreeparseError(f"The class {path} cannot be made without arguments ({error}).") from error
    if not callable(found):
        raise TreeparseError(f"The scorer {path} cannot be called: it takes a list and gives a score to each parse.")
    return cast(Scorer, found)
