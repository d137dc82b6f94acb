"""Export of the parser of a run's best epoch so far as a model folder."""

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from treeparse.data.files import check_folder
from treeparse.data.temporary_files import remove_all_leftovers
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.model.folder.files import CARD, FILES
from treeparse.training.release.card import write_card
from treeparse.training.state.history import EpochRecord, best_record
from treeparse.training.state.run_directory import RunDirectory


@dataclass(frozen=True)
class Export:
    """The result of an export.

    Attributes:
        best: the epoch of the model.
        epochs: number of completed epochs.
        folder: the model folder.
        written: false if the folder held this model already and did not change.
    """

    best: EpochRecord
    epochs: int
    folder: Path
    written: bool


def export_model(run: RunDirectory, folder: Path | None = None) -> Export:
    """Write the model of the best epoch so far into ``folder``, by default the run's own ``model``.

    The run may be finished, killed or still running, which does not change its own result. A model of other weights in
    ``folder`` is replaced.

    Raises:
        TreeparseError: the run's folder is no run, has no complete epoch or has damaged files, or ``folder`` holds
            other files than a model's.
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
        # Training may have continued, even to its own export: the written model must not be older than that one.
        latest = run.read_history()
        if best_record(latest) == best_record(history):
            return Export(best_record(history), len(latest), target, written)


def _check_replaceable(folder: Path) -> None:
    """Raise if the folder holds other files than a model's."""
    remove_all_leftovers(folder)
    others = sorted(set(os.listdir(folder)) - {*FILES, CARD}) if folder.is_dir() else []
    if others:
        raise TreeparseError(f"{folder} holds other things than a model, {others[0]} is one: name a new folder.")


def _holds(folder: Path, parser: Parser) -> bool:
    """Return whether the folder holds a model of these weights."""
    try:
        weights = Parser.from_pretrained(folder).state_dict()
    except (TreeparseError, OSError):
        return False
    own = parser.merged_weights()
    return own.keys() == weights.keys() and all(torch.equal(own[name], weights[name]) for name in own)
