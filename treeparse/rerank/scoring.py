"""Scorers of lists, and lists put in the order of their scores."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, SupportsFloat, cast

from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError, did_you_mean
from treeparse.user_code import import_code

Scorer = Callable[[NBestList], Iterable[SupportsFloat]]
"""Returns the scores of a list's parses, in order: the higher, the better."""


def rerank(lists: Iterable[NBestList], scorer: Scorer) -> Iterator[NBestList]:
    """Yield the lists with parses sorted by score, the highest first; parses of equal score stay in order.

    A parse's ``score`` becomes the scorer's; its ``log_prob`` stays.

    Raises:
        TreeparseError: if the scorer does not return a finite number for each parse.
    """
    return (reranked(nbest, scorer) for nbest in lists)


def reranked(nbest: NBestList, scorer: Scorer) -> NBestList:
    """Return a list sorted by score, as `rerank`."""
    scores = checked_scores(nbest, scorer)
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return replace(nbest, parses=tuple(replace(nbest.parses[index], score=scores[index]) for index in order))


def checked_scores(nbest: NBestList, scorer: Scorer) -> list[float]:
    """Return the scores of a list's parses; raise as `rerank`."""
    result = scorer(nbest)
    where = f"of sentence {nbest.sent_id}" if nbest.sent_id else f"of the sentence {' '.join(nbest.tokens)[:40]!r}"
    try:
        scores = [float(score) for score in result]
    except (TypeError, ValueError) as error:
        raise TreeparseError(
            f"The scorer must return a number for each parse, got {result!r:.60} ({error}) for the list {where}."
        ) from error
    if len(scores) != len(nbest.parses):
        raise TreeparseError(
            f"The scorer must return a number for each parse, got {len(scores)} for {len(nbest.parses)} parses {where}."
        )
    if not all(map(math.isfinite, scores)):
        raise TreeparseError(f"The scorer must return finite numbers, got another score of a parse {where}.")
    return scores


def scorer_named(path: str) -> Scorer:
    """Return the scorer of a dotted path, ``mine.flat``: a function, or a class without constructor arguments.

    Its module is imported, which runs what is in it.

    Raises:
        TreeparseError: if there is no such module, or it has no callable of that name.
    """
    module, _, name = path.rpartition(".")
    if not module or not name:
        raise TreeparseError(
            f"The scorer must be the dotted path of a function or class, such as mine.flat, got {path!r:.100}."
        )
    names: dict[str, Any] = vars(import_code(module))
    if name not in names:
        raise TreeparseError(f"The module {module} has nothing named {name!r:.100}{did_you_mean(name, names) or '.'}")
    scorer = names[name]
    if isinstance(scorer, type):
        try:
            scorer = scorer()
        except TypeError as error:
            raise TreeparseError(f"The class {path} cannot be made without arguments ({error}).") from error
    if not callable(scorer):
        raise TreeparseError(f"The scorer {path} cannot be called: it takes a list and gives a score to each parse.")
    return cast(Scorer, scorer)
