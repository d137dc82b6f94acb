"""A trained run, and the lists that its model writes: files to change."""

import functools
from pathlib import Path
from tempfile import TemporaryDirectory

from helpers.tiny_runs import write_tiny_config

from treeparse.cli.main import main
from treeparse.training import load_config, train

DEMO = Path(__file__).parents[2] / "data" / "demo-dev.conllu"
SENTENCES, TREES = 4, 3  # of each file of lists
_FOLDER = TemporaryDirectory()


@functools.cache
def trained_run() -> Path:
    """The folder of a run, whose model reads tags; each process trains it once."""
    config = load_config(write_tiny_config(Path(_FOLDER.name)), ["--model.encoder.tags", "upos"])
    return train(config, quiet=True).parent


@functools.cache
def listed(command: str, suffix: str) -> bytes:
    """The output of kbest or sample for demo sentences, as JSON or CoNLL-U by the suffix."""
    source, output = Path(_FOLDER.name, "demo.conllu"), Path(_FOLDER.name, f"{command}{suffix}")
    source.write_bytes(b"\n\n".join(DEMO.read_bytes().split(b"\n\n")[:SENTENCES]) + b"\n\n")
    assert main([command, "-q", str(trained_run()), str(source), "-k", str(TREES), "-o", str(output)]) == 0
    return output.read_bytes()
