"""The repetition of [KBest] trains what is missing once, and counts violations as it says."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.oracles import all_trees, tree_scores
from scripts.experiments import compare_decoders, reproduce_kbest
from scripts.support.graphs.scored import Scored
from scripts.support.training.treebanks import Treebank

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
