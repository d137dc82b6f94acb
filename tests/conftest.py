"""Fixtures that several parts of the tests share."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.forked import Forks, ForkServer
from helpers.tiny_runs import copy_of_run, tiny_treebank, write_tiny_config

FORK_SERVER = pytest.StashKey[ForkServer]()


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that wait for clients come first: near the end no other test might run meanwhile."""
    items.sort(key=lambda item: "serve" not in item.path.parts)


def pytest_collection_finish() -> None:
    """What stands in memory stays there, as most of what comes: to look for garbage in it often would take seconds."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 50)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers of pytest-xdist have one server together."""
    node.workerinput["fork_server"] = _fork_server(node.config)


@pytest.fixture(scope="session")
def forks(pytestconfig: pytest.Config) -> Forks:
    """Processes that need not import torch first."""
    workerinput = getattr(pytestconfig, "workerinput", None)
    return Forks(workerinput["fork_server"] if workerinput else _fork_server(pytestconfig))


def _fork_server(config: pytest.Config) -> str:
    """The address of the server that this process of pytest starts where it is first asked for."""
    if FORK_SERVER not in config.stash:
        config.stash[FORK_SERVER] = server = ForkServer()
        config.add_cleanup(server.stop)
    return config.stash[FORK_SERVER].address


@pytest.fixture(autouse=True)
def torch_as_before() -> Iterator[None]:
    """Arguments are validated, whatever a test before has compiled: torch.compile turns torch's default off.

    A test that leaves more threads behind fails: on few cores they would make the tests after it ten times as slow.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    torch.distributions.Distribution.set_default_validate_args(True)
    threads = torch.get_num_threads()
    yield
    assert torch.get_num_threads() == threads


@pytest.fixture
def tiny_config(tmp_path: Path) -> Path:
    """A config of three short epochs over a tiny generated treebank; its run goes to ``run`` beside it."""
    return write_tiny_config(tmp_path)


@pytest.fixture(scope="session")
def trained_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such a config whose run is finished, by one thread, for tests that do not change the run."""
    import torch

    from treeparse.training import load_config, train

    path, threads = write_tiny_config(tmp_path_factory.mktemp("trained")), torch.get_num_threads()
    torch.set_num_threads(1)
    train(load_config(path), quiet=True)
    torch.set_num_threads(threads)
    return path


@pytest.fixture
def finished_run(trained_config: Path, tmp_path: Path) -> Path:
    """A copy of that run to change, whose config says where it is."""
    return copy_of_run(trained_config.parent / "run", tmp_path / "run")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """The bits of one thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def treebanks(tmp_path: Path) -> Path:
    """A folder of treebanks with a small generated one in the place of EWT."""
    folder = tmp_path / "treebanks" / "UD_English-EWT"
    folder.mkdir(parents=True)
    for part, count, seed in (("train", 40, 1), ("dev", 12, 2), ("test", 12, 3)):
        (folder / f"en_ewt-ud-{part}.conllu").write_text(tiny_treebank(count, seed), encoding="utf-8")
    return tmp_path / "treebanks"
