"""What training shows on a terminal."""

import re
from pathlib import Path

import pytest
from helpers.terminal import terminal

from treeparse.training import load_config, train


@pytest.mark.parametrize("columns", [0, 80])
def test_the_bar_moves_within_an_epoch(tiny_config: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 0 columns is one that does not know its width."""
    with terminal(monkeypatch, "stdout", columns) as screen:
        train(load_config(tiny_config, ["--optimization.epochs=1", "--trainer.device=cpu"]))
    steps = [int(found[1]) for line in screen.lines if (found := re.search(r"epoch 1/1: .*\| (\d+)/\d+ \[", line))]
    assert len(set(steps)) > 2
    assert any("epoch 1/1, measuring dev" in line for line in screen.lines)
