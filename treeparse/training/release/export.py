"""The parser of a run's best epoch so far, written as a model folder."""

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from treeparse.data.files import check_folder
from treeparse.data.leftovers import remove_all_leftovers
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.model.folders import CARD, FILES
from treeparse.training.release.card import write_card
from treeparse.training.state.history import EpochRecord, best_record
from treeparse.training.state.run_directory import RunDirectory


@dataclass(frozen=True)
class Export:
    """What was exported: the model of the epoch ``best`` of ``epochs``, to ``folder``.

    ``written`` is false where the folder held it already, and was left alone.
    """

    best: EpochRecord
    epochs: int
    folder: Path
    written: bool


def export_model(run: RunDirectory, folder: Path | None = None) -> Export:
    """Write the model of the best epoch so far into ``folder``, by default the run's own ``model``.

    The run may be finished, killed or still running, and ends with the model of its best epoch all the same. A model
    of other weights that stands there is replaced: it is of an earlier epoch.

    Raises:
        TreeparseError: the run's folder is none, has no complete epoch, or its files are damaged; or ``folder`` holds
            something else than a model.
        OSError: a file cannot be read or written.
    """
    check_folder(run.path)
    if not run.checkpoints.is_dir():
        raise TreeparseError(f"{run.path} is no run: it has no folder {run.checkpoints.name}. Name a run's folder.")
    target = run.model if folder is None else folder
    parser, written = run.read_parser(), False
    while True:
        history = run.load_best(parser)
        if not _holds(target, parser):
            _check_replaceable(target)
            parser.save_pretrained(target)
            write_card(target, run, parser, history)
            written = True
        # Training may have gone on, even to its end and its own export: what was written must not be older than that.
        latest = run.read_history()
        if best_record(latest) == best_record(history):
            return Export(best_record(history), len(latest), target, written)


def _check_replaceable(folder: Path) -> None:
    """Raise where the folder holds other files than those of a model."""
    remove_all_leftovers(folder)
    others = sorted(set(os.listdir(folder)) - {*FILES, CARD}) if folder.is_dir() else []
    if others:
        raise TreeparseError(f"{folder} holds other things than a model, {others[0]} is one: name a new folder.")


def _holds(folder: Path, parser: Parser) -> bool:
    """Whether the folder holds a model of these weights."""
    try:
        found = Parser.from_pretrained(folder).state_dict()
    except (TreeparseError, OSError):
        return False
    own = parser.merged_weights()
    return own.keys() == found.keys() and all(torch.equal(own[name], found[name]) for name in own)
