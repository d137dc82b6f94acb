"""Reranking: sort the parses of a list by scores of whole trees.

A scorer is a callable that returns a score for each parse of a list::

    expected LAS under the list, with no training     ExpectedAccuracy
    features of whole trees, log-linear               Reranker, by LogLinearConfig
    a custom one                                      a function or an object

A `Reranker` learns from lists of sentences on which their parser was not trained, as ``treeparse.rerank.crossparsing``
makes them; on the command line by ``treeparse crossparse``, ``train-reranker`` and ``rerank``. In Python, given gold
sentences and a list of each::

    from treeparse.rerank import LogLinearConfig, Reranker, rerank

    reranker = Reranker.train(LogLinearConfig(), gold, lists)
    reranker.save_pretrained("reranker")
    best = [nbest.parses[0] for nbest in rerank(others, Reranker.from_pretrained("reranker"))]

A custom scorer reads a `NBestList`. ``treeparse rerank --scorer mine.flat``, started in the folder of ``mine.py``,
calls the function ``flat`` of that file; in Python ``rerank(lists, flat)`` sorts the lists by it::

    from treeparse.data import NBestList

    def flat(nbest: NBestList) -> list[float]:
        # The parser's log probability, less a cost of every long arc.
        return [parse.log_prob - 0.5 * long_arcs(parse.heads) for parse in nbest.parses]

    def long_arcs(heads: tuple[int, ...]) -> int:
        return sum(head > 0 and abs(head - word) > 7 for word, head in enumerate(heads, 1))
"""

from treeparse.rerank.learning import LearningConfig, LogLinearConfig
from treeparse.rerank.reranker import Reranker
from treeparse.rerank.scoring import ExpectedAccuracy, Scorer, rerank, reranked, scorer_named

__all__ = [
    "ExpectedAccuracy",
    "LearningConfig",
    "LogLinearConfig",
    "Reranker",
    "Scorer",
    "rerank",
    "reranked",
    "scorer_named",
]
