"""The samplers that treeparse is compared with do as the literature has it: one is biased, the others are exact."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.chi_square import LIMIT, chi_square_z, tree_counts
from helpers.drawn_orders import assert_sequence_law, places_in, repeated, support
from helpers.oracles import Array, all_trees, enumerated_sums, tree_scores
from helpers.ranking import random_graph
from helpers.tree_samples import deviation, flat_graphs, hostile_graphs
from scripts.experiments import reproduce_sampling
from scripts.support.graphs.scored import Scored, random_graphs
from scripts.support.reports.markdown import this_machine
from scripts.support.sampling import analysis, published
from scripts.support.sampling import entries as samplers
from scripts.support.sampling.methods import COLBOURN, WILSON_REJECT, sample_trees
from scripts.support.sampling.small_graphs import WEIGHT, A, C, graphs_of_three_trees
from scripts.support.training.treebanks import Treebank, gold_sentences

from treeparse import NonProjectiveCRF
from treeparse.kernels.samples import nonprojective_samples as sampling
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig

COUNT = 20_000


def graph_of_two_trees() -> Array:
    """Scores of two words, root arcs of weight 1: one tree weighs 1, the other one 3."""
    scores = np.full((3, 3), -np.inf)
    scores[[0, 0, 1, 2], [1, 2, 2, 1]] = [0.0, 0.0, 0.0, np.log(3.0)]
    return scores


THREE_TREES = graphs_of_three_trees()  # of [Unb] Fig. 1
GRAPHS = pytest.mark.parametrize("scores", [*THREE_TREES, graph_of_two_trees()], ids=["three", "three too", "two"])


def law_of_wilson_rc(scores: Array) -> tuple[np.ndarray, Array]:
    """All trees (trees, n) and how often they should come: by their root arc, then by weight among those with it."""
    trees = all_trees(len(scores) - 1, True)
    weights, roots = np.exp(tree_scores(scores, trees)), (trees == 0).argmax(1)
    root_weights = np.exp(scores[0, 1:])
    below = np.bincount(roots, weights, len(root_weights))
    return trees, root_weights[roots] / root_weights.sum() * weights / np.where(below > 0, below, 1.0)[roots]


def drawn_by_wilson_rc(scores: Array, count: int = COUNT) -> np.ndarray:
    """Head lists (count, n+1)."""
    heads, steps = published.wilson_rc(scores[None], np.array([len(scores) - 1]), np.array([7], np.uint64), count)
    assert (heads[..., 0] == -1).all()
    assert (steps >= len(scores) - 2).all()
    return heads[0]


@pytest.mark.parametrize("scores", THREE_TREES)
def test_the_example_is_as_the_paper_describes_it(scores: Array) -> None:
    """Six arcs and three trees of equal weight; two thirds below A, though the root arcs to A and C weigh the same."""
    assert (np.isfinite(scores[:, 1:]).sum(), np.isfinite(scores[0]).nonzero()[0].tolist()) == (6, [A, C])
    np.testing.assert_array_equal(np.exp(scores[np.isfinite(scores)]), WEIGHT)
    trees, log_probs = support(scores, True)
    assert len(trees) == 3
    np.testing.assert_allclose(np.exp(log_probs), 1 / 3)
    _, marginals = enumerated_sums(scores, True)
    np.testing.assert_allclose(marginals[0], [0, 2 / 3, 0, 1 / 3])
    found = NonProjectiveCRF(torch.from_numpy(scores)).marginals[0]
    np.testing.assert_allclose(found, [0, 2 / 3, 0, 1 / 3])


@GRAPHS
def test_wilson_rc_is_biased(scores: Array) -> None:
    trees, law = law_of_wilson_rc(scores)
    np.testing.assert_allclose(np.sort(law[law > 0]), [0.25, 0.25, 0.5] if len(scores) == 4 else [0.5, 0.5])
    weights = np.exp(tree_scores(scores, trees))
    counts = tree_counts(drawn_by_wilson_rc(scores)[:, 1:], trees)
    assert chi_square_z(counts, weights / weights.sum()) > 3 * LIMIT
    assert chi_square_z(counts, law) < LIMIT


def mild_graphs() -> Iterator[Array]:
    for n, forbidden in [(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0), (4, 0.4)]:
        for kind in ("equal", "random"):
            yield random_graph(np.random.default_rng(n), n, kind, forbidden)


def test_the_list_draws_in_the_order_of_the_law() -> None:
    for scores in mild_graphs():
        trees, log_probs = support(scores, True)
        if len(trees):
            heads = published.draw_list(*repeated(scores, 2000, 3), min(len(trees), 2 if len(trees) > 9 else 3))
            assert_sequence_law(places_in(trees, heads[:, :, 1:]), log_probs)


# Whether trees have one root, the sampler, and the steps a pair of words after which a tree is drawn otherwise. Walks
# with rejection draw trees with one root; Colbourn's sampler draws all trees of peaked scores by expansion.
EXACT = [(False, COLBOURN, {}), (True, COLBOURN, {})]
EXACT += [(True, WILSON_REJECT, {"steps_a_pair": steps}) for steps in (0.5, 1.5, 16.0)]
every_exact = pytest.mark.parametrize(("single_root", "method", "options"), EXACT)


@every_exact
def test_the_law_over_the_support(single_root: bool, method: int, options: dict[str, Any]) -> None:
    for scores in flat_graphs(1):
        assert deviation(scores, single_root, method, 20_000, sample_trees, **options) < LIMIT


@every_exact
@pytest.mark.parametrize("seed", [2, 3])
def test_the_law_of_peaked_scores(single_root: bool, method: int, options: dict[str, Any], seed: int) -> None:
    for scores in hostile_graphs(seed):
        assert deviation(scores, single_root, method, 10_000, sample_trees, **options) < LIMIT


TINY = Treebank("tiny", "train.conllu", "dev.conllu", "dev.conllu")


def batches() -> Iterator[Scored]:
    stream = np.random.default_rng(1)
    lengths = np.array([1, 2, 3, 4, 4])
    for scale in (0.0, 1.0, 3.0):
        yield Scored(scale * stream.normal(size=(5, 6, 6)), lengths)


def laws(batch: Scored, single_root: bool) -> Iterator[tuple[np.ndarray, Array]]:
    """Of every item all trees (trees, n), and their weights."""
    for scores, n in zip(batch.scores, batch.lengths.tolist(), strict=True):
        trees = all_trees(n, single_root)
        yield trees, np.exp(tree_scores(scores[: n + 1, : n + 1], trees))


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # other tests run in this process


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_every_table_is_measured_some_anew(tiny_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce_sampling, "EWT", TINY)
    monkeypatch.setattr("scripts.support.reports.timing.ROUND", 0.0)
    treebanks, output = tiny_config.parent, tmp_path / "sampling.md"
    config = ParserConfig(BiLSTMConfig(word_size=8, char_size=4, char_filters=4, hidden_size=16, layers=1), 16, 8)
    Parser.build(config, gold_sentences(TINY, treebanks)).save_pretrained(tmp_path / "model")
    arguments = ["--quick", "--treebanks", str(treebanks), "--model", str(tmp_path / "model"), "--rounds", "1"]
    reproduce_sampling.main([*arguments, "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert "nan" not in text and "inf" not in text
    assert text.count("\n| 6 - 10 |") == 2  # Fig. 2b, and over the length
    assert text.count("\n| a parser's weights | 6 - 10 |") == 2  # tries and bias
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    for heading, _ in reproduce_sampling.TABLES.values():
        assert any(line.startswith(f"## {heading}") for line in headings), heading
    output.write_text(text.replace("- **Machine**: ", "- **Machine**: another than "), encoding="utf-8")
    reproduce_sampling.main(["--quick", "--rounds", "1", "--only", "unb-7", "unb-1", "--output", str(output)])
    anew = output.read_text(encoding="utf-8")
    note = f"\n\nMeasured on {this_machine()}\n"
    assert anew.count(note) == 2
    assert anew.replace(note, "\n").replace(" another than", "") == text


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_beams_on_both_devices_find_the_same_trees() -> None:
    on_cpu, on_gpu = samplers.device_entries(random_graphs(6, 2, "uniform", 1), 5)
    np.testing.assert_array_equal(on_cpu.call(), on_gpu.call())


def test_expected_tries_and_steps() -> None:
    for batch in batches():
        tries = np.exp(analysis.log_tries(batch))
        pairs = zip(laws(batch, False), laws(batch, True), strict=True)
        np.testing.assert_allclose(tries, [any_root.sum() / one.sum() for (_, any_root), (_, one) in pairs], rtol=1e-12)
        seeds = np.arange(len(tries)).astype(np.uint64)
        options = {"single_root": False, "method": sampling.WILSON, "steps_a_pair": 1e9}
        _, steps = sampling.sample_trees(batch.scores, batch.lengths, seeds, 20_000, **options)
        expected = np.exp(analysis.log_steps(batch))
        assert (np.abs(steps.mean(1) - expected) <= 4.5 * steps.std(1) / np.sqrt(steps.shape[1])).all()


def test_the_best_constant_is_best() -> None:
    for batch in batches():
        best = analysis.best_shifts(batch)

        def cost(shift: float | Array, batch: Scored = batch) -> Array:
            shifted = analysis.with_root_shift(batch, shift)
            return analysis.log_tries(shifted) + analysis.log_steps(shifted)

        for shift in analysis.TRIED_SHIFTS:
            assert (cost(best) <= cost(shift)).all()


def test_the_bias_of_wilson_rc() -> None:
    for batch in batches():
        found, marginals = analysis.bias(batch), analysis.wilson_rc_marginals(batch)
        for item, (trees, weights) in enumerate(laws(batch, True)):
            n, roots = trees.shape[1], (trees == 0).argmax(1)
            root_weights = np.exp(batch.scores[item, 0, 1 : n + 1])
            biased = root_weights[roots] / root_weights.sum() * weights / np.bincount(roots, weights)[roots]
            assert found[item] == pytest.approx(np.abs(biased - weights / weights.sum()).sum() / 2, abs=1e-12)
            for j in range(1, n + 1):
                expected = np.bincount(trees[:, j - 1], biased, n + 1)
                np.testing.assert_allclose(marginals[item, : n + 1, j], expected, atol=1e-12)
