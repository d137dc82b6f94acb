"""The decoder benchmark times decoders that solve the same problem, and counts the mistakes of those that do not."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scripts.benchmarks import bench_decoders
from scripts.benchmarks.bench_decoders import KINDS, mistakes
from scripts.support.peers import decoders as decoder_peers


@pytest.mark.parametrize("kind", KINDS)
def test_installed_decoders_find_the_same_trees(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_decoders, "MAX_ROUNDS", 1)
    optional = [decoder_peers.networkx(), decoder_peers.ufal(True), decoder_peers.ufal(False)]
    decoders = [*map(decoder_peers.best_trees, (True, False)), decoder_peers.reweighted_trees()]
    decoders += [decoder for decoder in optional if decoder is not None]
    scores = KINDS[kind](np.random.default_rng(1), 6, 32)
    entries = bench_decoders.time_decoders(decoders, scores, 1)
    assert [entry.mistakes.tolist() for entry in entries] == [[0, 0, 0]] * len(decoders)
    assert all(entry.times for entry in entries)


def test_mistakes_of_a_list_by_hand() -> None:
    """Trees of two words under one root; 1 -> 2 scores higher than 2 -> 1."""
    decoder = decoder_peers.best_trees()
    scores = np.array([[0.0, 0, 0], [0, 0, 2], [0, 1, 0]])
    ours = np.array([2.0, 1.0, -np.inf])
    best, second, none = [-1, 0, 1], [-1, 2, 0], [-1, -1, -1]
    assert mistakes(decoder, scores, np.array([best, second, none]), ours) == (0, 0, 0)
    assert mistakes(decoder, scores, np.array([[0, *best[1:]], best]), ours) == (1, 1, 0)
    assert mistakes(decoder, scores, np.array([second]), ours) == (1, 0, 0)
    assert mistakes(decoder, scores, np.array([second]), ours[:1]) == (1, 0, 0)
    assert mistakes(decoder, scores, np.array([second, best]), ours) == (0, 0, 1)
    with pytest.raises(SystemExit, match="better tree"):
        mistakes(decoder, scores, np.array([best]), np.array([1.0]))
    with pytest.raises(SystemExit, match="no tree by its rule"):
        mistakes(decoder, scores, np.array([[-1, 0, 0]]), ours)


def test_every_decoder_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_decoders, "MAX_ROUNDS", 2)
    monkeypatch.setattr(bench_decoders, "ROUND", 0.0)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # other tests run in this process
    output = tmp_path / "table.md"
    bench_decoders.main(["--lengths", "5", "6", "--trees", "1", "3", "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text.count("| treeparse |") == 4 + 4 + 2 + 4 + 4 + 4
    assert "| 6 | 50 | treeparse |" in text and "| 5 | 3 | treeparse |" in text and "nan" not in text
