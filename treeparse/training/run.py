"""A training run from its settings to its model directory, and its resumption."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from treeparse.batch import pick_device
from treeparse.data.batches.module import TreebankModule
from treeparse.data.features.indexer import PLAIN_LABELS, any_tree, with_plain_labels
from treeparse.data.files import expand_paths
from treeparse.data.text.multiword import multiword_tokens
from treeparse.errors import TreeparseError
from treeparse.progress import Console
from treeparse.training.data.frozen_layers import cached_indexer
from treeparse.training.data.treebanks import check_objective, files_remark, load_mixture, load_treebanks
from treeparse.training.loop.fit import Training, fit, repeatable
from treeparse.training.loop.initial_parser import initial_parser
from treeparse.training.loop.module import ParserModule
from treeparse.training.loop.progress import without_notices
from treeparse.training.release.export import export_model
from treeparse.training.settings.batch_bounds import within_budget
from treeparse.training.settings.config import TrainConfig
from treeparse.training.settings.reading import build_objective
from treeparse.training.settings.resolve import Sizes, plan_remarks, planned, settled, workload
from treeparse.training.state.history import EpochRecord, best_record
from treeparse.training.state.identity import check_identity, run_identity, with_values_of_before
from treeparse.training.state.provenance import Origin
from treeparse.training.state.run_directory import RunDirectory, RunState
from treeparse.upgrades import upgraded_settings

AHEAD = 2


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
    state = _state_to_resume(run, config) if resume else None
    with without_notices(), repeatable(config.trainer.device):
        training = _prepare(config, state, console)
        run.begin(training.config.to_yaml(), replace=resume)
        run.write_parser(training.module.parser)
        run.write_origin(_origin(config, training))
        history = fit(training, run, state, console)
        export_model(run)
    _say_result(run, history, console)
    return run.model


def _state_to_resume(run: RunDirectory, config: TrainConfig) -> RunState | None:
    """The state of a run, its settings with what they lack because it came later; None before the first epoch."""
    state = run.read_state()
    if state is None:
        return None
    settings = with_values_of_before(upgraded_settings(state.identity["settings"]), config)
    return replace(state, identity={**state.identity, "settings": settings})


def _prepare(config: TrainConfig, state: RunState | None, console: Console) -> Training:
    with console.during("reading the treebanks"):
        treebanks = load_treebanks(config, console.say)
    train_words, dev_words = ([s.words for s in side] for side in (treebanks.train, treebanks.dev))
    lengths, dev_lengths = ([len(words) for words in side] for side in (train_words, dev_words))
    objective = build_objective(config.objective)
    check_objective(objective, train_words, unlabelled=config.data.unlabelled is not None)
    if config.init_from is None and not any_tree(train_words):
        console.say(f"no tree in data.train: the labels are {' and '.join(PLAIN_LABELS)}, in data.dev too")
        dev_words = [with_plain_labels(words) for words in dev_words]
    mixture = load_mixture(config, treebanks, console.say)
    text = mixture.unlabelled
    torch.manual_seed(config.seed)
    with console.during("building the vocabularies and the parser"):
        parser, remark = initial_parser(config, train_words, [] if text is None else [s.words for s in text.share(0)])
    if remark is not None and state is None:
        console.say(remark)
    length = parser.indexer.features.length
    sizes = Sizes([*map(length, train_words)], length)
    earlier = None if state is None else state.identity["settings"]
    with console.during("measuring the memory of a step"):
        bounded = within_budget(config, parser, objective, train_words, console.say, mixture=mixture, earlier=earlier)
    config = planned(bounded, lengths, earlier, mixture, sizes)
    console.remark(files_remark(config.data, treebanks))
    for remark in plan_remarks(bounded, config) if state is None else ():
        console.remark(remark)
    identity = run_identity(config, parser.indexer.to_json(), train_words, dev_words, mixture)
    if state is not None:
        check_identity(state.identity, identity, Path(config.output))

    # Only now: what a run may go on with does not depend on them, nor does any weight.
    parser.indexer.multiword_tokens |= multiword_tokens(treebanks.train)
    indexer = cached_indexer(config, parser, [*train_words, *dev_words], console)

    def name_of(place: int) -> str:
        if text is not None and place >= len(treebanks.train):
            return text.name(place - len(treebanks.train))
        sentence = treebanks.train[place]
        return sentence.sent_id or f"{sentence.source}:{sentence.line}"

    module = ParserModule(parser, objective, config.optimization, dev=dev_words, name_of=name_of, seed=config.seed)
    if state is not None:
        module.restore(state)
    data = TreebankModule(
        train_words,
        dev_words,
        indexer.collate,
        batch_words=settled(config.data.batch_words),
        batch_squared=config.data.batch_squared,
        workers=config.data.workers,
        start_method=config.data.start_method,
        seed=config.seed,
        mixture=mixture,
        check=parser.indexer.features.check,
        length=length,
        ahead=batches_ahead(pick_device(config.trainer.device)),
    )
    return Training(config, workload(config, lengths, dev_lengths, mixture, sizes), module, data, identity)


def batches_ahead(device: torch.device) -> int:
    """How many batches are made while a device computes; none where that is the CPU, which would have to do both."""
    return 0 if device.type == "cpu" else AHEAD


def _origin(config: TrainConfig, training: Training) -> Origin:
    """What the model of a run comes from."""
    patterns = [config.data.train] if isinstance(config.data.train, str) else config.data.train
    return Origin.of(expand_paths(patterns), training.data.train_data.sentences, config.trainer.device)


def _say_result(run: RunDirectory, history: Sequence[EpochRecord], console: Console) -> None:
    best, seconds = best_record(history), sum(record.seconds for record in history)
    result = f"the model is that of epoch {best.epoch} of {history[-1].epoch}"
    if best.dev_uas is not None and best.dev_las is not None:
        result = f"best dev UAS {best.dev_uas:.2%}, LAS {best.dev_las:.2%} in epoch {best.epoch} of {history[-1].epoch}"
    console.say(f"{result}; {time.strftime('%H:%M:%S', time.gmtime(seconds))} in all")
    console.say(f"model: {run.model}")
