"""The repetition of the papers on sampling writes what it says, and what it knows without a draw agrees with draws."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.oracles import Array, all_trees, tree_scores
from scripts.experiments import reproduce_sampling
from scripts.support.graphs.scored import Scored, random_graphs
from scripts.support.reports.markdown import this_machine
from scripts.support.sampling import analysis
from scripts.support.sampling import entries as samplers
from scripts.support.training.treebanks import Treebank, gold_sentences

from treeparse.kernels.samples import nonprojective_samples as sampling
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig

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
