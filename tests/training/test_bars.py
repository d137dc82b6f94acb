"""What training shows on a terminal."""

import re
from pathlib import Path
from typing import Any

import pytest
from helpers.terminal import terminal

from treeparse.training import load_config, run, train


@pytest.mark.parametrize("columns", [0, 80])
def test_the_bar_moves_within_an_epoch(tiny_config: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 0 columns is one that does not know its width."""
    with terminal(monkeypatch, "stdout", columns) as screen:
        train(load_config(tiny_config, ["--optimization.epochs=1", "--trainer.accelerator=cpu"]))
    steps = [int(found[1]) for line in screen.lines if (found := re.search(r"epoch 1/1: .*\| (\d+)/\d+ \[", line))]
    assert len(set(steps)) > 2
    assert any("epoch 1/1, measuring dev" in line for line in screen.lines)


@pytest.mark.parametrize(
    ("step", "said"),
    [("load_treebanks", "reading the treebanks"), ("initial_parser", "building the vocabularies and the parser")],
)
def test_long_work_before_the_bar_is_announced(
    step: str, said: str, tiny_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = getattr(run, step)

    def slowly(*arguments: Any, **options: Any) -> Any:
        screen.wait_for(f"treeparse: {said} ...")
        return work(*arguments, **options)

    monkeypatch.setattr(run, step, slowly)
    with terminal(monkeypatch, "stderr", silence=0) as screen:
        train(load_config(tiny_config, ["--optimization.epochs=1", "--trainer.accelerator=cpu"]))
    assert f"treeparse: {said} ..." in screen.lines
