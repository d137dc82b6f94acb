"""A run as in a container: a read-only installation, a user without a home or rights, one core."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.unprivileged import make_read_only, run_as_nobody

import treeparse

PROGRAM = """
import os, sys
from treeparse.cli.main import main
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
train = "train --config config.yaml --output run --data.train train.conllu --data.dev dev.conllu"
for command in (
    f"{train} -q --optimization.epochs 1",  # because Lightning logs what it found
    "predict run/model dev.conllu -o parsed.conllu",
    "kbest run/model dev.conllu -k 3 -o best.conllu",
):
    code = main(command.split())
    if code:
        sys.exit(code)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder below none that is closed to other users."""
    with tempfile.TemporaryDirectory(prefix="treeparse-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_container_trains_parses_and_lists(folder: Path, tiny_config: Path) -> None:
    """Kernels that this installation has compiled are compiled in the copy; others are compiled for the process."""
    site, work = folder / "site", folder / "work"
    shutil.copytree(Path(treeparse.__file__).parent, site / "treeparse")
    make_read_only(site)
    work.mkdir()
    work.chmod(0o777)
    for name in ("config.yaml", "train.conllu", "dev.conllu"):
        shutil.copy(tiny_config.with_name(name), work)
    done = run_as_nobody(["-W", "error", "-c", PROGRAM], work, {"PYTHONPATH": str(site)})
    assert done.returncode == 0, done.stderr
    # Matplotlib, where it is installed, is imported by a library of ours.
    assert all(line.startswith(("treeparse: ", "Matplotlib ")) for line in done.stderr.splitlines()), done.stderr
    sentences = (work / "dev.conllu").read_text(encoding="utf-8").count("\n\n")
    assert (work / "parsed.conllu").read_text(encoding="utf-8").count("\n\n") == sentences
    assert (work / "best.conllu").read_text(encoding="utf-8").count("# rank = 1\n") == sentences
    assert {path.name for path in work.iterdir()} == {
        *("config.yaml", "train.conllu", "dev.conllu", "run", "parsed.conllu", "best.conllu")
    }
    if sys.platform == "linux":
        assert (work / "run").stat().st_uid != site.stat().st_uid or site.stat().st_uid != 0
