"""Folders through which anything may happen: broken writes, broken runs, damaged and mended files."""

import functools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from helpers.tiny_runs import write_tiny_config
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from safetensors.torch import load_file
from torch import Tensor

from fuzz.files import SENTENCE, told_of
from treeparse.data.files import open_input
from treeparse.data.folders import atomic_folder
from treeparse.data.outputs import atomic_output
from treeparse.model import Parser
from treeparse.training import TrainConfig, load_config, train
from treeparse.training.loop.module import ParserModule
from treeparse.training.release import export_model
from treeparse.training.state.run_directory import RunDirectory

EPOCHS, BATCHES, BATCH_WORDS = 2, 8, 30
NAMES = ("a.txt", "b.txt.gz", "c")


class BrokenError(Exception):
    """Something outside the package has failed."""


class Outputs(RuleBasedStateMachine):
    """A folder holds what was written whole, and nothing else, whatever broke off."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        self.expected: dict[str, bytes] = {}

    @rule(name=st.sampled_from(NAMES), data=st.binary(max_size=50), parts=st.integers(1, 3), breaks=st.booleans())
    def write(self, name: str, data: bytes, parts: int, breaks: bool) -> None:
        with expected_break(breaks), atomic_output(self.folder / name) as output:
            for _ in range(parts):
                output.write(data)
            if breaks:
                raise BrokenError
        if not breaks:
            self.expected[name] = parts * data

    @rule(data=st.binary(max_size=50), breaks=st.booleans())
    def write_folder(self, data: bytes, breaks: bool) -> None:
        with expected_break(breaks), atomic_folder(self.folder / "folder") as folder:
            (folder / "file").write_bytes(data)
            if breaks:
                raise BrokenError
        if not breaks:
            self.expected["folder/file"] = data

    @invariant()
    def only_what_was_written_whole(self) -> None:
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        found = {}
        for path in files:
            with open_input(path) as stream:
                found[str(path.relative_to(self.folder))] = stream.read()
        assert found == self.expected

    def teardown(self) -> None:
        self._temporary.cleanup()


class Run(RuleBasedStateMachine):
    """A run that is broken off, damaged, mended and resumed ends with the bits of an unbroken one."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        self.ended = False

    @initialize()
    def begin(self) -> None:
        self.config = config_in(self.folder)

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def begun(self) -> bool:
        return (self.run / "checkpoints" / "last.ckpt").exists()

    @precondition(lambda self: not self.ended)
    @rule(epoch=st.integers(0, EPOCHS - 1), batch=st.integers(0, BATCHES - 1))
    def break_off(self, epoch: int, batch: int) -> None:
        with broken_at(epoch, batch) as was_broken:
            try:
                train(self.config, resume=self.run.exists(), quiet=True)
            except BrokenError:
                assert was_broken
            else:
                self.ended = True

    @rule()
    def resume(self) -> None:
        train(self.config, resume=self.run.exists(), quiet=True)
        self.ended = True
        assert_same_bits(self.run)

    @precondition(lambda self: self.begun)
    @rule(which=st.integers(0, 99), share=st.floats(0, 1))
    def damage_and_mend(self, which: int, share: float) -> None:
        """A file that is cut off is refused or does no harm; and a refusal leaves all files as they were."""
        files = sorted(path for path in self.run.rglob("*") if path.is_file() and "tensorboard" not in path.parts)
        path, kept = files[which % len(files)], self.folder / "kept"
        shutil.copytree(self.run, kept)
        data = path.read_bytes()
        path.write_bytes(data[: int(share * len(data))])
        before = contents(self.run)
        if told_of(lambda: train(self.config, resume=True, quiet=True)) is None:
            assert_same_bits(self.run)
        else:
            assert contents(self.run) == before
        shutil.rmtree(self.run)
        kept.rename(self.run)

    @precondition(lambda self: self.begun)
    @rule()
    def export(self) -> None:
        """The model of an unfinished run, too."""
        if told_of(lambda: export_model(RunDirectory(self.run), self.folder / "exported")) is None:
            assert Parser.from_pretrained(self.folder / "exported").parse([SENTENCE])[0].heads
            shutil.rmtree(self.folder / "exported")

    def teardown(self) -> None:
        try:
            if hasattr(self, "config"):
                self.resume()
        finally:
            self._temporary.cleanup()


def contents(folder: Path) -> dict[Path, bytes]:
    """All files of a run but its event files, to which every run adds."""
    files = (path for path in folder.rglob("*") if path.is_file() and "tensorboard" not in path.parts)
    return {path: path.read_bytes() for path in files}


def weights(run: Path) -> dict[str, Tensor]:
    return load_file(run / "model" / "model.safetensors")


def assert_same_bits(run: Path) -> None:
    found, expected = weights(run), unbroken()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@functools.cache
def unbroken() -> dict[str, Tensor]:
    """The weights of a run that was never broken off."""
    with TemporaryDirectory() as folder:
        train(config_in(Path(folder)), quiet=True)
        return weights(Path(folder, "run"))


def config_in(folder: Path) -> TrainConfig:
    """A tiny run in a folder."""
    options = ["--optimization.epochs", str(EPOCHS), "--data.batch_words", str(BATCH_WORDS)]
    return load_config(write_tiny_config(folder), options)


@contextmanager
def expected_break(breaks: bool) -> Iterator[None]:
    try:
        yield
    except BrokenError:
        assert breaks


@contextmanager
def broken_at(epoch: int, batch: int) -> Iterator[list[bool]]:
    """Break training at a batch of an epoch, both counted from 0; the list is then not empty."""
    step: Callable[..., Any] = ParserModule.training_step
    was_broken: list[bool] = []

    def broken(self: ParserModule, share: Any, number: int) -> Any:
        if (self.current_epoch, number) == (epoch, batch):
            was_broken.append(True)
            raise BrokenError
        return step(self, share, number)

    ParserModule.training_step = broken  # type: ignore[method-assign]
    try:
        yield was_broken
    finally:
        ParserModule.training_step = step  # type: ignore[method-assign]
