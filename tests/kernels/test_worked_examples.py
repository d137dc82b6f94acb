"""Worked examples that were published with the algorithms, each also confirmed by enumeration or by networkx.

They are the graph that [Root] (Fig. 2) and [KBest] (Figs. 2, 6 and 8) share, those of the authors' library
(github.com/rycolab/spanningtrees, README, in its first and its present version), John saw Mary, and the graph of
Stanojević and Cohen 2021 (github.com/stanojevic/Fast-MST-Algorithm, README).
"""

import itertools

import networkx
import numpy as np
import pytest
from helpers.oracles import all_trees, tree_scores
from numpy.typing import NDArray

from treeparse.kernels.best.arborescence import best_trees
from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest
from treeparse.kernels.ties import tree_key

Array = NDArray[np.float64]
Ranking = list[tuple[float, list[int]]]

# McDonald, Pereira, Ribarov and Hajič 2005; McDonald and Nivre 2007, lecture 4. Nodes: root, John, saw, Mary.
JOHN_SAW_MARY = np.array([[0, 9, 10, 9], [0, 0, 20, 3], [0, 30, 0, 30], [0, 11, 0, 0]], dtype=float)
JOHN_SAW_MARY_RANKING = [
    (70.0, [2, 0, 2]),
    (59.0, [0, 1, 2]),
    (51.0, [3, 0, 2]),
    (43.0, [2, 0, 1]),
    (40.0, [3, 1, 0]),
    (39.0, [2, 3, 0]),
    (32.0, [0, 1, 1]),
    (20.0, [3, 3, 0]),
    (12.0, [0, 3, 1]),
]

# [KBest] Fig. 2, which is [Root] Fig. 2: eight arcs.
KBEST = np.full((5, 5), -np.inf)
KBEST[[0, 0, 2, 4, 1, 3, 2, 4], [1, 2, 4, 3, 3, 2, 3, 1]] = [90, 40, 60, 70, 10, 50, 30, 20]
# Its trees: those of [KBest] Fig. 6 in their order, of which Fig. 8 shows the ones with a single root.
KBEST_RANKING = [
    (260.0, [0, 0, 4, 2]),
    (220.0, [0, 0, 2, 2]),
    (210.0, [0, 3, 1, 2]),
    (200.0, [0, 0, 1, 2]),
    (190.0, [4, 0, 4, 2]),
    (150.0, [4, 0, 2, 2]),
    (130.0, [4, 0, 1, 2]),
]

# The library's present README: its two K-best lists, in which two trees of 133 tie.
LIBRARY = np.array([[0, 71, 52, 67], [0, 0, 32, 46], [0, 2, 0, 79], [0, 65, 16, 0]], dtype=float)
LIBRARY_RANKINGS = {
    False: [
        (202.0, [0, 0, 2]),
        (196.0, [3, 0, 2]),
        (190.0, [0, 0, 0]),
        (184.0, [3, 0, 0]),
        (182.0, [0, 1, 2]),
        (170.0, [0, 1, 0]),
        (169.0, [0, 0, 1]),
        (164.0, [3, 1, 0]),
        (154.0, [0, 3, 0]),
        (149.0, [0, 1, 1]),
        (148.0, [3, 3, 0]),
        (133.0, [0, 3, 1]),
        (133.0, [2, 0, 2]),
        (121.0, [2, 0, 0]),
        (100.0, [2, 0, 1]),
        (85.0, [2, 3, 0]),
    ],
    True: [
        (196.0, [3, 0, 2]),
        (182.0, [0, 1, 2]),
        (164.0, [3, 1, 0]),
        (149.0, [0, 1, 1]),
        (148.0, [3, 3, 0]),
        (133.0, [2, 0, 2]),
        (133.0, [0, 3, 1]),
        (100.0, [2, 0, 1]),
        (85.0, [2, 3, 0]),
    ],
}


def best_tree(scores: Array, single_root: bool) -> list[int]:
    """The best head list of one item."""
    return best_trees(scores[None], np.array([len(scores) - 1]), single_root=single_root)[0, 1:].tolist()


def ranking(scores: Array, single_root: bool) -> Ranking:
    """The whole K-best list of one item."""
    best = NonprojectiveKBest(scores[None], np.array([len(scores) - 1]), single_root=single_root)
    best.extend(20)
    made = best.scores[0] > -np.inf
    return list(zip(best.scores[0, made].tolist(), best.heads[0, made, 1:].tolist(), strict=True))


def enumerated_ranking(scores: Array, single_root: bool) -> Ranking:
    """All trees of one item by (score, key), the best ones first."""
    n = len(scores) - 1
    trees = all_trees(n, single_root)
    keys = [tree_key(np.array([-1, *tree]), n) for tree in trees]
    totals = tree_scores(scores, trees).tolist()
    order = sorted(range(len(trees)), key=lambda tree: (totals[tree], keys[tree]), reverse=True)
    return [(totals[tree], trees[tree].tolist()) for tree in order]


def in_any_order_of_ties(trees: Ranking) -> list[tuple[float, list[list[int]]]]:
    groups = itertools.groupby(trees, key=lambda entry: entry[0])
    return [(score, sorted(heads for _, heads in group)) for score, group in groups]


def test_the_best_tree_of_john_saw_mary() -> None:
    """The best heads form a cycle of John and saw, which the root enters best by saw."""
    for single_root in (True, False):
        assert best_tree(JOHN_SAW_MARY, single_root) == [2, 0, 2]
        assert enumerated_ranking(JOHN_SAW_MARY, single_root)[0] == (70.0, [2, 0, 2])


def test_all_trees_of_john_saw_mary() -> None:
    assert enumerated_ranking(JOHN_SAW_MARY, True) == JOHN_SAW_MARY_RANKING
    assert ranking(JOHN_SAW_MARY, True) == JOHN_SAW_MARY_RANKING


def without(arc: tuple[int, int], scores: Array) -> Array:
    result = scores.copy()
    result[arc] = -np.inf
    return result


def test_the_best_tree_of_the_papers() -> None:
    """Contraction of 2 -> 4 -> 3 -> 2 and expansion give two roots; without the one or the other, 190 and 210."""
    assert best_tree(KBEST, False) == [0, 0, 4, 2]
    assert best_tree(KBEST, True) == [0, 3, 1, 2]
    assert enumerated_ranking(without((0, 1), KBEST), True)[0] == (190.0, [4, 0, 4, 2])
    assert best_tree(without((0, 1), KBEST), True) == [4, 0, 4, 2]
    assert best_tree(without((0, 2), KBEST), True) == [0, 3, 1, 2]


@pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
def test_the_k_best_trees_of_the_papers(single_root: bool) -> None:
    published = [entry for entry in KBEST_RANKING if not single_root or entry[1].count(0) == 1]
    assert ranking(KBEST, single_root) == published
    assert [entry for entry in enumerated_ranking(KBEST, single_root) if entry[0] > -np.inf] == published


@pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
def test_the_library_of_the_papers(single_root: bool) -> None:
    published = LIBRARY_RANKINGS[single_root]
    found, expected = ranking(LIBRARY, single_root), enumerated_ranking(LIBRARY, single_root)
    assert in_any_order_of_ties(expected) == in_any_order_of_ties(published)
    assert found == expected
    assert best_tree(LIBRARY, single_root) == published[0][1]


@pytest.mark.parametrize(
    ("single_root", "published"),
    [(True, [0, 1, 5, 3, 2, 8, 6, 3, 6]), (False, [0, 5, 7, 3, 3, 7, 0, 3, 6])],
)
def test_nine_words_of_stanojevic_and_cohen(single_root: bool, published: list[int]) -> None:
    scores = np.random.RandomState(42).rand(10, 10)
    assert best_tree(scores, single_root) == published
    graph = networkx.DiGraph()
    for (head, word), score in np.ndenumerate(scores):
        if word > 0 and word != head:
            graph.add_edge(head, word, weight=score - 100.0 * (single_root and head == 0))
    tree = networkx.maximum_spanning_arborescence(graph)
    assert sorted(tree.edges) == sorted((head, word) for word, head in enumerate(published, 1))
