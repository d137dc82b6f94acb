"""The repetition of the papers on sampling writes what it says, and what it knows without a draw agrees with draws."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import reproduce_sampling
import torch
from helpers.oracles import Array, all_trees, tree_scores
from support.graphs.scored import Scored, by_length, random_graphs
from support.reports.markdown import this_machine
from support.sampling import analysis, ratios
from support.sampling import entries as samplers
from support.training.treebanks import Treebank, gold_sentences

from treeparse.kernels.samples import nonprojective as sampling
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
def test_writes_tables_and_plot(tiny_config: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce_sampling, "EWT", TINY)
    monkeypatch.setattr("support.reports.timing.ROUND", 0.0)
    treebanks, output = tiny_config.parent, tmp_path / "sampling.md"
    config = ParserConfig(BiLSTMConfig(word_size=8, char_size=4, char_filters=4, hidden_size=16, layers=1), 16, 8)
    Parser.build(config, gold_sentences(TINY, treebanks)).save_pretrained(tmp_path / "model")
    arguments = ["--quick", "--treebanks", str(treebanks), "--model", str(tmp_path / "model"), "--rounds", "1"]
    reproduce_sampling.main([*arguments, "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text == capsys.readouterr().out
    assert "nan" not in text and "inf" not in text
    assert text.count("\n| 6 - 10 |") == 2  # Fig. 2b, and over the length
    assert text.count("\n| a parser's weights | 6 - 10 |") == 2  # tries and bias
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    for heading, _ in reproduce_sampling.TABLES.values():
        assert any(line.startswith(f"## {heading}") for line in headings), heading
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    output.write_text(text.replace("- **Machine**: ", "- **Machine**: another than "), encoding="utf-8")
    reproduce_sampling.main(["--quick", "--rounds", "1", "--only", "unb-7", "unb-1", "--output", str(output)])
    anew = output.read_text(encoding="utf-8")
    note = f"\n\nMeasured on {this_machine()}\n"
    assert anew.count(note) == 2
    assert anew.replace(note, "\n").replace(" another than", "") == text


def test_tables_that_no_machine_had_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reproduce_sampling.main(["--quick", "--only", "unb-7"])
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("## ")]
    assert [heading.split(":")[0] for heading in headings] == [
        "## [Unb] Fig. 7",
        "## Where this differs from the papers",
    ]


def test_no_row_of_a_parser_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        reproduce_sampling.main(["--quick", "--only", "unb-2a", "unb-2b"])
    assert "unb-2b would lose rows of a parser's weights: name one with --model" in capsys.readouterr().err


def test_mean_weights_by_enumeration() -> None:
    """With any number of roots over a single one; Fig. 7's claims, about 1 on average and hardly ever above 2."""
    for name, weights in ratios.WEIGHTS.items():
        found = ratios.mean_weight_ratios(weights, 3, 4000, seed=5)
        scores = np.log(weights(np.random.default_rng(5), (1000, 4, 4)))[:20]
        means = [[np.exp(tree_scores(item, all_trees(3, rule))).mean() for rule in (False, True)] for item in scores]
        np.testing.assert_allclose(found[:20], [any_root / one for any_root, one in means], rtol=1e-10)
        assert found.mean() == pytest.approx(1.0, abs=0.15), name
        assert (found > ratios.FEW).mean() < 0.1, name


def test_truncated_weights_are_positive_and_have_their_mean() -> None:
    found = ratios.truncated_normal(1.0, 3.0)(np.random.default_rng(1), (100, 1000))
    assert (found > 0).all()
    density, above = np.exp(-1 / 18) / np.sqrt(2 * np.pi), (1 + math.erf(1 / 3 / np.sqrt(2))) / 2
    assert found.mean() == pytest.approx(1 + 3 * density / above, abs=0.03)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_beams_on_both_devices_find_the_same_trees() -> None:
    on_cpu, on_gpu = samplers.device_entries(random_graphs(6, 2, "uniform", 1), 5)
    np.testing.assert_array_equal(on_cpu.call(), on_gpu.call())


def test_mistakes_end_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="reproduce_sampling: there is no file"):
        reproduce_sampling.main(["--quick", "--treebanks", str(tmp_path), "--model", str(tmp_path)])


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


def test_equal_weights_take_fewer_than_e_tries() -> None:
    for n in (1, 5, 40):
        (tries,) = np.exp(analysis.log_tries(Scored(np.zeros((1, n + 1, n + 1)), np.array([n]))))
        assert tries == pytest.approx((1 + 1 / n) ** (n - 1), rel=1e-12)


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


def test_walks_as_printed_are_longer_where_root_arcs_are_weak() -> None:
    batch = random_graphs(4, 3, "normal", 1)
    steps = [analysis.steps_as_printed(analysis.with_root_shift(batch, c), 200, 1e6).mean() for c in (-6, -3, 0)]
    assert steps[0] > 5 * steps[1] > 25 * steps[2]


def test_sentences_by_length() -> None:
    stream = np.random.default_rng(3)
    lengths = np.array([2, 5, 6, 9, 3])
    scores = stream.normal(size=(5, 10, 10))
    found = by_length([Scored(scores[:3], lengths[:3]), Scored(scores[3:], lengths[3:])], (3, 5, 8), 1)
    assert {name: batch.lengths.tolist() for name, batch in found.items()} == {"1 - 3": [2], "4 - 5": [5], "6 - 8": [6]}
    np.testing.assert_array_equal(found["6 - 8"].scores[0], scores[2, :7, :7])


def test_random_weights() -> None:
    scores = random_graphs(4, 2000, "uniform", 1).scores
    assert scores.max() <= 0
    assert np.exp(scores).mean() == pytest.approx(0.5, abs=0.01)
    assert random_graphs(4, 2000, "normal", 1).scores.std() == pytest.approx(1, abs=0.01)


def test_wrong_lists_are_counted() -> None:
    batch = Scored(np.zeros((5, 4, 4)), np.array([2, 2, 2, 3, 1]))
    lists = np.full((5, 3, 4), -1)
    lists[:, :2, 1:3] = [[0, 1], [2, 0]]
    assert samplers.wrong_lists(lists[:1], Scored(batch.scores[:1], batch.lengths[:1])) == 0
    lists[1, 1] = lists[1, 0]  # a repeat
    lists[2, 1, 1:3] = [0, 0]  # two roots
    lists[4, :, 1:] = -1  # one tree is missing, and nine of the item before
    assert samplers.wrong_lists(lists, batch) == 4


def test_frequencies_are_those_of_heads() -> None:
    heads = np.array([[[-1, 0, 1], [-1, 2, 0], [-1, 0, 1], [-1, 0, 1]]])
    found = analysis.frequencies(heads)[0]
    np.testing.assert_array_equal(found[:, 1:], [[0.75, 0.25], [0, 0.75], [0.25, 0]])
