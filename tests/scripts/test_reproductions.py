"""The repetitions of [KBest], [Exp] and the lecture time algorithms that agree, on what they say, and train once."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.drawn_orders import random_scores
from helpers.lecture import derivations as derivations_of_heads
from helpers.oracles import all_trees, tree_scores
from scripts.experiments import compare_decoders, reproduce_expectations, reproduce_kbest
from scripts.support.expectations.workloads import pair_rates, tagged_batches
from scripts.support.graphs.scored import Scored
from scripts.support.lecture import best_by_chart, derivations, marginals_by_determinants, new_chart
from scripts.support.training.treebanks import Treebank

from treeparse import NonProjectiveCRF, ProjectiveCRF
from treeparse.sentence import Sentence

TINY = Treebank("tiny", "train.conllu", "dev.conllu", "dev.conllu", train_stop=30)


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # other tests run in this process


def options(config: Path, output: Path) -> list[str]:
    folders = ["--treebanks", str(config.parent), "--models", str(output.parent / "models")]
    return [*folders, "--config", str(config), "--output", str(output)]


@pytest.mark.usefixtures("one_thread")
def test_models_are_trained_once(tiny_config: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce_kbest, "TREEBANKS", (TINY,))
    monkeypatch.setattr(compare_decoders, "TREEBANKS", (TINY,))
    output = tmp_path / "kbest.md"
    reproduce_kbest.main([*options(tiny_config, output), "--rounds", "2"])
    assert "epoch   3" in capsys.readouterr().out
    text = output.read_text(encoding="utf-8")
    assert text.count("| tiny | 50 |") == 1 and text.count("| tiny | HeadSelection |") == 3 and "nan" not in text
    assert text.count("| none |") == len(reproduce_kbest.TIMED_SIZES)
    assert "| EWT, in [KBest] | 10 | 1.42 (69.5 ms over 48.9 ms) |" in text

    compare_decoders.main(options(tiny_config, tmp_path / "decoders.md"))
    assert "epoch" not in capsys.readouterr().out
    text = (tmp_path / "decoders.md").read_text(encoding="utf-8")
    assert [line.split(" | ")[0] for line in text.splitlines()[-3:]] == [
        f"| {name}" for name in compare_decoders.DECODERS
    ]


def test_violations_by_enumeration() -> None:
    stream = np.random.default_rng(1)
    lengths = np.array([4, 1, 3, 2])
    scores = stream.normal(size=(4, 5, 5))
    counts = (1, 2, 5)
    trees, sentences, last = np.zeros((3, len(counts)))
    listed = np.zeros(len(counts))
    for item, n in enumerate(lengths.tolist()):
        heads = all_trees(n, False)
        several = (heads == 0).sum(1)[np.argsort(-tree_scores(scores[item, : n + 1, : n + 1], heads))] > 1
        for place, k in enumerate(counts):
            trees[place] += several[:k].sum()
            listed[place] += len(several[:k])
            sentences[place] += several[:k].any()
            last[place] += several[:k][-1]
    batches = [Scored(scores[:2], lengths[:2]), Scored(scores[2:], lengths[2:])]
    expected = [trees / listed, sentences / len(lengths), last / len(lengths)]
    np.testing.assert_allclose(reproduce_kbest.violations(batches, counts), expected)
    assert sentences[-1] > sentences[0]


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
    assert text.count("\n| 9.23 |") == 2 and "| 4.1 | Finnish | 462.3 | 1,882 |" in text
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


@pytest.mark.parametrize("n", range(1, 8))
def test_the_chart_has_the_score_of_the_best_projective_tree(n: int) -> None:
    scores = torch.from_numpy(random_scores(n, 1.0, seed=n))
    p = ProjectiveCRF(scores.unsqueeze(0), single_root=False)
    assert best_by_chart(scores.numpy(), new_chart(n + 1)) == pytest.approx(float(p.score(p.mode)), abs=1e-9)


def test_marginals_by_determinants_are_those_of_elimination() -> None:
    scores = random_scores(5, 1.0, seed=3)
    p = NonProjectiveCRF(torch.from_numpy(scores).unsqueeze(0), single_root=False)
    np.testing.assert_allclose(marginals_by_determinants(scores), p.marginals[0].numpy(), atol=1e-10)


@pytest.mark.parametrize("heads", [[2, 0, 2], [0, 1, 1, 1], [2, 4, 2, 0, 4, 5], [2, 0, 2, 3, 2]])
def test_derivations_are_counted(heads: Sequence[int]) -> None:
    count = derivations_of_heads(np.array(heads))
    assert math.exp(derivations(torch.tensor([-1, *heads]))) == pytest.approx(count)
