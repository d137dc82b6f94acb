"""The repetition of [Exp]'s experiments times algorithms that agree, on the sentences that it says."""

from pathlib import Path

import numpy as np
import pytest
import reproduce_expectations
import torch
from support.expectations.workloads import draw_lengths, pair_rates, random_batches, tagged_batches

from treeparse.sentence import Sentence

CHASE = Sentence(("dogs", "chase", "cats"), upos=("NOUN", "VERB", "NOUN"), heads=(2, 0, 2))
BARK = Sentence(("dogs", "bark"), upos=("NOUN", "VERB"), heads=(2, 0))


def test_writes_tables_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    paper = reproduce_expectations.PAPER_ENTROPY
    monkeypatch.setattr(reproduce_expectations, "PAPER_ENTROPY", {mean: paper[mean] for mean in (9.23, 12.45)})
    monkeypatch.setattr("support.reports.timing.ROUND", 0.0)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # other tests run in this process
    output = tmp_path / "table.md"
    reproduce_expectations.main(["--quick", "--treebank", str(reproduce_expectations.DEMO), "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text == capsys.readouterr().out
    assert text.count("| 9.23 |") == 2 and "| 4.1 | Finnish | 462.3 | 1,882 |" in text
    assert text.count(", demo-test |") == 2
    assert "| T2h, compiled |" in text and "nan" not in text
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_algorithms_that_disagree_are_not_timed() -> None:
    entries = [
        reproduce_expectations.Entry(lambda: [torch.ones(2)], "right"),
        reproduce_expectations.Entry(lambda: [torch.tensor([1.0, torch.nan])], "wrong"),
    ]
    with pytest.raises(SystemExit, match="wrong differs from right by nan"):
        reproduce_expectations.compare(entries, 2)


def test_the_papers_ratios_are_those_of_its_times() -> None:
    for row in reproduce_expectations.PAPER_ENTROPY.values():
        assert row.smith_eisner / row.t1 == pytest.approx(row.ratio, abs=0.06)


def test_lengths_have_their_mean_and_a_treebanks_spread() -> None:
    lengths = draw_lengths(np.random.default_rng(0), 18, 20_000)
    assert np.mean(lengths) == pytest.approx(18, rel=0.02)
    assert 0.6 <= np.std(lengths) / np.mean(lengths) <= 0.9
    assert min(lengths) >= 1


def test_every_sentence_stands_in_one_batch() -> None:
    lengths = draw_lengths(np.random.default_rng(0), 36, 300)
    batches = random_batches(lengths, seed=1, max_cells=10_000)
    assert [int(n) for batch in batches for n in batch.lengths] == sorted(lengths, reverse=True)
    assert all(batch.scores.shape[-1] == batch.lengths.max() + 1 for batch in batches)
    assert all(batch.scores.numel() <= 10_000 or len(batch.lengths) == 1 for batch in batches)


def test_scores_do_not_depend_on_batches() -> None:
    (together,) = random_batches([3, 1, 2], seed=1, max_cells=1000)
    alone = random_batches([3, 1, 2], seed=1, max_cells=1)
    for item, batch in enumerate(alone):
        n = int(batch.lengths)
        assert torch.equal(batch.scores[0], together.scores[item, : n + 1, : n + 1])
        assert not together.scores[item, n + 1 :].any() and not together.scores[item, :, n + 1 :].any()


def test_features_are_the_most_frequent_tag_pairs() -> None:
    rates = pair_rates([CHASE, BARK], 2)
    assert rates == {("VERB", "NOUN"): 3 / 5, ("ROOT", "VERB"): 2 / 5}
    (batch,) = tagged_batches([BARK, CHASE], 2, seed=0, max_cells=100)
    assert batch.lengths.tolist() == [3, 2]
    assert batch.features[0].nonzero().tolist() == [[0, 2, 1], [2, 1, 0], [2, 3, 0]]
    assert batch.features[1].nonzero().tolist() == [[0, 2, 1], [2, 1, 0]]
    torch.testing.assert_close(batch.targets, torch.tensor([[9 / 5, 6 / 5], [6 / 5, 4 / 5]], dtype=torch.float64))
