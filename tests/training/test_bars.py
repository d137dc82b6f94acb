"""What training shows on a terminal."""

import re
from pathlib import Path
from typing import Any

import pytest
from helpers.terminal import terminal

from treeparse.training import load_config, run, train


def test_a_terminal_shows_a_bar_and_the_lines_of_epochs(tiny_config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, "stdout") as screen:
        train(load_config(tiny_config, ["--optimization.epochs=2"]))
    assert re.search(r"Epoch 0/1.* \d/5 ", screen.text)
    assert re.search(r"epoch   1   loss +\d", screen.text)


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
