"""The expansion sampler: the law that its choices make up, exactly, and that of its draws."""

from collections import defaultdict

import numpy as np
import pytest
from helpers.chi_square import LIMIT
from helpers.hostile_scores import forbidden_arcs
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import random_graph
from helpers.tree_samples import ROOTS, deviation, draw, flat_graphs, hostile_graphs

from treeparse.kernels.samples.expansion import ORIGINAL, SHARES, TABLES, WEIGHTS, Stages, new_memory, set_up
from treeparse.kernels.samples.nonprojective_samples import EXPANSION
from treeparse.kernels.sums.elimination import log_partition_and_marginals
from treeparse.kernels.tree_weights import matrices

State = tuple[tuple[int, ...], tuple[int, ...]]  # of words 1 to k: their heads, and the stages their arcs lead through


def stages_of(scores: Array, single_root: bool) -> tuple[Array, Stages]:
    memory, numbers, _ = new_memory(len(scores))
    tables = matrices(memory, TABLES, len(scores) - 1)
    with np.errstate(all="ignore"):
        return tables, set_up(scores, len(scores) - 1, single_root, numbers, tables)


class Choices:
    """The law of trees that the sampler's choices make up, all of them taken, from the stages of an elimination."""

    def __init__(self, tables: Array, stages: Stages, size: int) -> None:
        self.tables, self.root_word, self.in_logs = tables, stages.root_word, stages.in_logs
        self.size, self.single_root = size, stages.single_root

    def law(self) -> dict[tuple[int, ...], float]:
        states: dict[State, float] = {((), ()): 1.0}
        for k in range(1, self.size):
            following: defaultdict[State, float] = defaultdict(float)
            for state, probability in states.items():
                for branch, share in self.branches(k, *state):
                    following[branch] += probability * share
            states = dict(following)
        trees: defaultdict[tuple[int, ...], float] = defaultdict(float)
        for (heads, _), probability in states.items():
            trees[self.in_order(heads)] += probability
        return dict(trees)

    def in_order(self, heads: tuple[int, ...]) -> tuple[int, ...]:
        """Take back the exchange of word 1."""
        names = {1: self.root_word, self.root_word: 1}
        named = {names.get(word, word): names.get(head, head) for word, head in enumerate(heads, 1)}
        return tuple(named[word] for word in range(1, self.size))

    def branches(self, k: int, heads: tuple[int, ...], stages: tuple[int, ...]) -> list[tuple[State, float]]:
        """All that may become of the tree over the words before ``k`` when ``k`` comes in."""
        moved = [j for j in range(1, k) if stages[j - 1] == k]
        is_root = self.single_root and (k == 1 or any(heads[j - 1] == 0 for j in moved))
        heads = tuple(k if j in moved else heads[j - 1] for j in range(1, k))
        result = []
        for head, share in [(0, 1.0)] if is_root else self.heads_of(k, heads):
            partial = [(tuple(stages), share)]
            for i, j in [*((k, j) for j in moved), (head, k)]:
                partial = [
                    ((*old[: j - 1], stage, *old[j:]), probability * part)
                    for old, probability in partial
                    for stage, part in self.stages_of_arc(i, j)
                ]
            result.extend((((*heads, head), new), probability) for new, probability in partial)
        return result

    def heads_of(self, k: int, heads: tuple[int, ...]) -> list[tuple[int, float]]:
        """The heads of ``k``: nodes that reach node 0 without passing ``k``."""
        joined = [] if self.single_root else [0]
        for j in range(1, k):
            node = j
            while 0 < node < k:
                node = heads[node - 1]
            joined += [j] if node == 0 else []
        return self.choices(joined, [self.tables[SHARES, i, k] for i in joined])

    def stages_of_arc(self, i: int, j: int) -> list[tuple[int, float]]:
        through = list(range(max(i, j) + 1, self.size))
        parts = [self.product(self.tables[SHARES, i, k], self.tables[WEIGHTS, j, k]) for k in through]
        return self.choices([self.size, *through], [self.tables[ORIGINAL, j, i], *parts])

    def product(self, x: float, y: float) -> float:
        return x + y if self.in_logs else x * y

    def choices(self, values: list[int], parts: list[float]) -> list[tuple[int, float]]:
        """Those that are possible, with their probabilities."""
        weights = np.exp(np.array(parts) - max(parts)) if self.in_logs else np.array(parts)
        pairs = zip(values, weights / weights.sum(), strict=True)
        return [(value, float(share)) for value, share in pairs if share > 0.0]


def assert_law(scores: Array, single_root: bool) -> None:
    """The choices make up the law, however improbable a tree, but for what underflows."""
    trees = all_trees(len(scores) - 1, single_root)
    totals = tree_scores(scores, trees)
    tables, stages = stages_of(scores, single_root)
    assert stages.exists == (totals.max() > -np.inf)
    if stages.exists:
        weights = np.exp(totals - totals.max())
        law = Choices(tables, stages, len(scores)).law()
        found = np.array([law.pop(tuple(heads), 0.0) for heads in trees.tolist()])
        assert not any(law.values())
        scale = max(1.0, np.abs(scores[np.isfinite(scores)]).max(initial=0.0))
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-14 * scale * len(scores), atol=1e-200)


@ROOTS
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 100.0, 1000.0])
@pytest.mark.nojit
def test_choices_make_up_the_law(single_root: bool, scale: float) -> None:
    stream = np.random.default_rng(1)
    for n, forbidden in [(1, 0.0), (2, 0.0), (3, 0.0), (3, 0.4), (4, 0.0), (4, 0.3), (4, 0.5)] * 3:
        scores = scale * random_graph(stream, n, "random", forbidden)
        scores[0] += stream.choice([-50, 0, 50])
        assert_law(scores, single_root)


@ROOTS
def test_choices_make_up_the_law_in_logs(single_root: bool) -> None:
    """Words that prefer each other so much that plain weights would underflow."""
    stream = np.random.default_rng(2)
    for forbidden in (0.0, 0.2, 0.4) * 5:
        scores = random_graph(stream, 4, "random", forbidden)
        scores[[1, 2, 3, 4], [2, 1, 4, 3]] = [900.0, 800.0, 500.0, 400.0]
        _, stages = stages_of(scores, single_root)
        assert stages.in_logs or not stages.exists
        assert_law(scores, single_root)


def test_every_pattern_of_forbidden_arcs_over_three_words() -> None:
    stream = np.random.default_rng(3)
    for pattern in forbidden_arcs():
        scores = pattern + stream.normal(size=(4, 4))
        assert_law(scores, single_root=True)
        assert_law(scores, single_root=False)


@ROOTS
def test_the_law_over_the_support(single_root: bool) -> None:
    for scores in flat_graphs(4):
        assert deviation(scores, single_root, EXPANSION, 20_000) < LIMIT


@ROOTS
def test_the_law_of_peaked_scores(single_root: bool) -> None:
    for scores in hostile_graphs(5):
        assert deviation(scores, single_root, EXPANSION, 20_000) < LIMIT


def test_another_law_is_noticed() -> None:
    scores = random_graph(np.random.default_rng(6), 4, "random", 0.0)
    assert deviation(scores, True, EXPANSION, 20_000, law_of=1.1 * scores) > 2 * LIMIT


@ROOTS
@pytest.mark.parametrize(("n", "scale", "gap"), [(12, 1.0, 0.0), (40, 3.0, 0.0), (40, 1.0, 8.0), (20, 1.0, 300.0)])
def test_arcs_of_longer_sentences_are_as_frequent_as_probable(
    single_root: bool, n: int, scale: float, gap: float
) -> None:
    """Also in logs, where some pairs of words prefer each other by 300 nats."""
    scores = scale * random_graph(np.random.default_rng(n), n, "random", 0.1)
    for j in range(1, n - 1, 4):
        scores[j, j + 2] = scores[j + 2, j] = gap
    count = 4000
    heads, _ = draw(scores, single_root, EXPANSION, count)
    _, marginals = log_partition_and_marginals(scores[None], np.array([n]), single_root=single_root)
    found = np.stack([np.bincount(heads[:, j], minlength=n + 1) for j in range(1, n + 1)], 1)
    expected = count * marginals[0, :, 1:]
    frequent = np.minimum(expected, count - expected) > 20.0
    deviations = (found - expected)[frequent] / np.sqrt((expected * (1 - expected / count))[frequent])
    assert np.abs(deviations).max() < LIMIT + 1.0  # the largest of hundreds
    assert abs(np.square(deviations).mean() - 1.0) < 0.25
    assert not found[expected == 0.0].any()
