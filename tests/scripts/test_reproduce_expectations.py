"""The repetition of [Exp]'s experiments times algorithms that agree, on the sentences that it says."""

from pathlib import Path

import pytest
import torch
from scripts.experiments import reproduce_expectations
from scripts.support.expectations.workloads import pair_rates, tagged_batches

from treeparse.sentence import Sentence

CHASE = Sentence(("dogs", "chase", "cats"), upos=("NOUN", "VERB", "NOUN"), heads=(2, 0, 2))
BARK = Sentence(("dogs", "bark"), upos=("NOUN", "VERB"), heads=(2, 0))


def test_every_algorithm_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = reproduce_expectations.PAPER_ENTROPY
    monkeypatch.setattr(reproduce_expectations, "PAPER_ENTROPY", {mean: paper[mean] for mean in (9.23, 12.45)})
    monkeypatch.setattr("scripts.support.reports.timing.ROUND", 0.0)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # other tests run in this process
    output = tmp_path / "table.md"
    reproduce_expectations.main(["--quick", "--treebank", str(reproduce_expectations.DEMO), "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text.count("| 9.23 |") == 2 and "| 4.1 | Finnish | 462.3 | 1,882 |" in text
    assert text.count(", demo-test |") == 2
    assert "| T2h, compiled |" in text and "nan" not in text


def test_algorithms_that_disagree_are_not_timed() -> None:
    entries = [
        reproduce_expectations.Entry(lambda: [torch.ones(2)], "right"),
        reproduce_expectations.Entry(lambda: [torch.tensor([1.0, torch.nan])], "wrong"),
    ]
    with pytest.raises(SystemExit, match="wrong differs from right by nan"):
        reproduce_expectations.compare(entries, 2)


def test_features_are_the_most_frequent_tag_pairs() -> None:
    rates = pair_rates([CHASE, BARK], 2)
    assert rates == {("VERB", "NOUN"): 3 / 5, ("ROOT", "VERB"): 2 / 5}
    (batch,) = tagged_batches([BARK, CHASE], 2, seed=0, max_cells=100)
    assert batch.lengths.tolist() == [3, 2]
    assert batch.features[0].nonzero().tolist() == [[0, 2, 1], [2, 1, 0], [2, 3, 0]]
    assert batch.features[1].nonzero().tolist() == [[0, 2, 1], [2, 1, 0]]
    torch.testing.assert_close(batch.targets, torch.tensor([[9 / 5, 6 / 5], [6 / 5, 4 / 5]], dtype=torch.float64))
