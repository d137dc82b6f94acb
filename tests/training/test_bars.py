"""What training shows on a terminal."""

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from helpers.terminal import terminal

from treeparse.training import load_config, run, train


def shown_on_a_terminal(command: list[str]) -> str:
    """What a process writes to its standard output, a terminal."""
    screen, output = pty.openpty()
    with subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL) as process:
        os.close(output)
        text = b""
        with suppress(OSError):  # at the end
            while part := os.read(screen, 4096):
                text += part
    os.close(screen)
    assert process.returncode == 0
    return text.decode()


def test_a_terminal_shows_a_bar_and_the_lines_of_epochs(tiny_config: Path) -> None:
    command = [sys.executable, "-m", "treeparse", "train", "--config", str(tiny_config)]
    text = shown_on_a_terminal([*command, "--optimization.epochs=2", "--trainer.accelerator=cpu"])
    assert re.search(r"Epoch 0/1.* \d/5 ", text)
    assert re.search(r"epoch   1   loss +\d", text)


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
