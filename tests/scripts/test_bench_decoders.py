"""The decoder benchmark times decoders that solve the same problem."""

import bench_decoders
import numpy as np
import pytest


@pytest.mark.parametrize("make", [bench_decoders.random_scores, bench_decoders.peaked_scores])
def test_installed_decoders_find_the_same_trees(make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_decoders, "MAX_ROUNDS", 1)
    decoders = [bench_decoders.ours(True), bench_decoders.ours(False), bench_decoders.networkx()]
    decoders += [bench_decoders.ufal(True), bench_decoders.ufal(False)]
    scores = make(np.random.default_rng(1), 6)
    entries = bench_decoders.race([decoder for decoder in decoders if decoder is not None], scores)
    assert [entry.worse for entry in entries] == [0] * len(entries)
    assert all(entry.times for entry in entries)
