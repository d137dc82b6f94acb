"""Reranking: the parses of a list in another order, by what looks at whole trees.

What chooses is a scorer, any callable that gives each parse of a list a score::

    the tree of the highest expected LAS, with no training    MinimumRisk
    what features of whole trees say, log-linear              Reranker, by LogLinearConfig
    what a Tree-LSTM says                                     Reranker, by TreeNetworkConfig
    what one over a parser's word vectors says                the same, with ``vectors`` and ``parser``
    one's own                                                 a function or an object

A `Reranker` learns from lists of sentences on which their parser was not trained, as ``treeparse.rerank.crossparsing``
makes them; on the command line by ``treeparse crossparse``, ``train-reranker`` and ``rerank``. In Python, given gold
sentences and a list of each::

    from treeparse.rerank import LogLinearConfig, Reranker, rerank

    reranker = Reranker.train(LogLinearConfig(), gold, lists)
    reranker.save_pretrained("reranker")
    best = [nbest.parses[0] for nbest in rerank(others, Reranker.from_pretrained("reranker"))]

``TreeNetworkConfig(vectors="both", parser="runs/mine")`` reads the word vectors of a trained parser, which it leaves as
they are, beside those of its own encoder. A reranker's folder names that parser and the digest of its weights: it works
with no other. Vectors of the sentences that the parser was trained on have their trees in them, those of other
sentences have not: let lists of others choose the epoch (``held_out``), or learn from others alone, such as those that
a fold's parser did not see.

A scorer of one's own reads what a `NBestList` holds. In a file ``mine.py`` it goes by ``--scorer mine.flat`` in
``treeparse rerank``, started in the file's folder; in Python ``rerank(lists, flat)`` gives the lists in its order::

    from treeparse.data import NBestList

    def flat(nbest: NBestList) -> list[float]:
        # The parser's own log probability, less a cost of every long arc.
        return [parse.log_prob - 0.5 * long_arcs(parse.heads) for parse in nbest.parses]

    def long_arcs(heads: tuple[int, ...]) -> int:
        return sum(head > 0 and abs(head - word) > 7 for word, head in enumerate(heads, 1))
"""

from treeparse.rerank.learning import LearningConfig as LearningConfig
from treeparse.rerank.loglinear import LogLinearConfig as LogLinearConfig
from treeparse.rerank.reranker import Reranker as Reranker
from treeparse.rerank.risk import MinimumRisk as MinimumRisk
from treeparse.rerank.scoring import Scorer as Scorer
from treeparse.rerank.scoring import rerank as rerank
from treeparse.rerank.scoring import reranked as reranked
from treeparse.rerank.scoring import scorer_named as scorer_named
from treeparse.rerank.tree_network import TreeNetworkConfig as TreeNetworkConfig
