"""Training that breaks off where a test wants it to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treeparse.data.batches.steps import ShareOfStep
from treeparse.errors import TreeparseError
from treeparse.training.parser_module import ParserModule


def break_off(train: Callable[[], Path], epoch: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train up to that batch of that epoch, both counted from 0, where the run breaks."""
    step = ParserModule.training_step

    def broken(self: ParserModule, share: ShareOfStep, number: int) -> Any:
        if (self.current_epoch, number) == (epoch, batch):
            raise TreeparseError("The run is broken.")
        return step(self, share, number)

    with monkeypatch.context() as patched:
        patched.setattr(ParserModule, "training_step", broken)
        with pytest.raises(TreeparseError, match="broken"):
            train()
