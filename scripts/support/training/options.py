"""What the commands of experiments share: where treebanks and results are, where runs lie, and on how many threads."""

import os
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from treeparse.errors import TreeparseError


def add_run_options(parser: ArgumentParser, output: Path) -> None:
    """Declare ``--treebanks``, ``--output`` with its default, ``--work`` and ``--threads``."""
    default = os.environ.get("TREEPARSE_TREEBANKS", ".")
    parser.add_argument("--treebanks", type=Path, default=default, metavar="DIR", help="default: the variable's")
    parser.add_argument("--output", type=Path, default=output, metavar="JSONL", help="default: in experiments/results")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the runs here (default: a temporary folder)")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: as torch chooses)")


@contextmanager
def working_folder(arguments: Namespace, name: str) -> Iterator[Path]:
    """The folder of the runs, under so many threads; what the user can mend ends the command ``name`` in a sentence."""
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as temporary:
        try:
            yield arguments.work or Path(temporary)
        except TreeparseError as error:
            sys.exit(f"{name}: {error}")
