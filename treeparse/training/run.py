"""A training run from its settings to its model directory, and its resumption."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from treeparse.core import DataError, Sentence, TreeparseError
from treeparse.data.conllu import ConlluSentence
from treeparse.data.module import TreebankModule
from treeparse.data.treebank import load_treebank
from treeparse.model import Parser
from treeparse.training.checkpoint import RunDirectory, RunState
from treeparse.training.config import TrainConfig
from treeparse.training.export import export_model
from treeparse.training.fit import Training, fit, repeatable
from treeparse.training.history import EpochRecord, best_record
from treeparse.training.initial import initial_parser
from treeparse.training.module import ParserModule
from treeparse.training.progress import Console, without_notices
from treeparse.training.settings import build_objective, differing_settings

# Settings that change no bit of the outcome: a run may be resumed under others.
FREE_SETTINGS = {
    "": ("output",),
    "data": ("train", "dev", "vectors", "workers", "start_method"),
    "trainer": ("device",),
}


def train(config: TrainConfig, *, resume: bool = False, quiet: bool = False) -> Path:
    """Train a parser and return its model directory, ``config.output/model``.

    A new run wants a folder without one; with ``resume`` it goes on from the last completed epoch of the run in
    ``config.output``, or from the start where there is none, and ends with the weights of an unbroken run, bit for bit
    on the same machine with the same number of threads.

    Sets the seed of torch's default generator. Raises ``TreeparseError`` for all that the caller can mend.
    """
    console, run = Console(quiet=quiet), RunDirectory(config.output)
    if not resume and run.holds_run():
        raise TreeparseError(
            f"There is a run in {run.path} already: go on with --resume {run.path}, or name another --output."
        )
    state = run.read_state() if resume else None
    with without_notices(), repeatable(config.trainer.device):
        training = _prepare(config, state, console)
        run.begin(config.to_yaml())
        run.write_parser(training.module.parser)
        history = fit(training, run, state, console)
        export_model(run)
    _say_result(run, history, console)
    return run.model


def _prepare(config: TrainConfig, state: RunState | None, console: Console) -> Training:
    train, dev = (_load(config, name, console) for name in ("train", "dev"))
    train_words, dev_words = [s.words for s in train], [s.words for s in dev]
    objective = build_objective(config.objective)
    torch.manual_seed(config.seed)
    parser, remark = initial_parser(config, train_words)
    if remark is not None and state is None:
        console.say(remark)
    identity = _identity(config, parser, train_words, dev_words)
    if state is not None:
        _check_identity(state, identity, Path(config.output))
    module = ParserModule(parser, objective, config.optimization, train=train, dev=dev_words, seed=config.seed)
    if state is not None:
        module.restore(state)
    data = TreebankModule(
        train_words,
        dev_words,
        parser.indexer.collate,
        batch_words=config.data.batch_words,
        batch_squared=config.data.batch_squared,
        workers=config.data.workers,
        start_method=config.data.start_method,
        seed=config.seed,
    )
    console.say(f"{len(train):,} sentences to train on, {len(dev):,} dev sentences")
    return Training(config, module, data, identity)


def _load(config: TrainConfig, name: str, console: Console) -> list[ConlluSentence]:
    patterns = getattr(config.data, name)
    skipped: list[DataError] = []
    sentences = load_treebank(
        [patterns] if isinstance(patterns, str) else patterns,
        single_root=config.model.single_root,
        on_invalid=skipped.append if config.data.skip_invalid else None,
    )
    if skipped:
        console.say(f"left out {len(skipped):,} sentences of data.{name} that are not valid, the first: {skipped[0]}")
    return sentences


def _identity(
    config: TrainConfig, parser: Parser, train: Sequence[Sentence], dev: Sequence[Sentence]
) -> dict[str, Any]:
    """What fixes a run's outcome: its settings, and digests of its sentences and vocabularies."""
    settings = config.to_dict()
    for section, names in FREE_SETTINGS.items():
        for name in names:
            del (settings[section] if section else settings)[name]
    digests = {
        "sentences of data.train": _digest(train),
        "sentences of data.dev": _digest(dev),
        "vocabulary": _digest([parser.indexer.to_json()]),
    }
    return {"settings": settings, "digests": digests}


def _digest(items: Sequence[object]) -> str:
    digest = hashlib.sha256()
    for item in items:
        digest.update(repr(item).encode() + b"\n")
    return digest.hexdigest()


def _check_identity(state: RunState, identity: Mapping[str, Any], path: Path) -> None:
    problems = differing_settings(state.identity["settings"], identity["settings"])
    before, now = state.identity["digests"], identity["digests"]
    problems += [f"the {name} changed" for name in now if before.get(name) != now[name]]
    if problems:
        raise TreeparseError(
            f"The run in {path} cannot go on with other settings or data: {'; '.join(problems)}. "
            "Resume it with its own, or start another run under another --output."
        )


def _say_result(run: RunDirectory, history: Sequence[EpochRecord], console: Console) -> None:
    best, seconds = best_record(history), sum(record.seconds for record in history)
    console.say(
        f"best dev UAS {best.dev_uas:.2%}, LAS {best.dev_las:.2%} in epoch {best.epoch} of {len(history)}; "
        f"{time.strftime('%H:%M:%S', time.gmtime(seconds))} in all"
    )
    console.say(f"model: {run.model}")
