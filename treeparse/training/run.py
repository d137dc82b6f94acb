"""A training run: from its settings to its model directory, and its resumption."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from treeparse.data.batches.module import TreebankModule
from treeparse.data.features.indexer import Indexer
from treeparse.data.files import expand_paths
from treeparse.data.text.rawtext import multiword_tokens
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.objectives import Objective
from treeparse.progress import Console
from treeparse.sentence import Sentence
from treeparse.training.data.frozen_layers import cached_indexer
from treeparse.training.data.treebanks import (
    check_objective,
    dev_sentences,
    files_remark,
    listed,
    load_training_mix,
    load_treebanks,
    say_crossing_arcs,
    say_many_labels,
)
from treeparse.training.linear.fit import LinearTraining, check_linear, fit_linear
from treeparse.training.loop.fit import fit, repeatable
from treeparse.training.loop.initial_parser import initial_parser
from treeparse.training.loop.module import ParserModule
from treeparse.training.loop.processes import Processes, join
from treeparse.training.loop.progress import without_notices
from treeparse.training.loop.training import Training
from treeparse.training.release import export_model
from treeparse.training.settings.config import ResolvedConfig, TrainConfig
from treeparse.training.settings.reading import build_objective
from treeparse.training.settings.resolve import TreebankFacts, resolution_remarks, resolve_settings, workload
from treeparse.training.settings.trainer import training_device
from treeparse.training.state.history import EpochRecord, best_record, clock
from treeparse.training.state.identity import check_identity, run_identity
from treeparse.training.state.provenance import Provenance
from treeparse.training.state.run_directory import RunDirectory, RunState

AHEAD = 2


def train(config: TrainConfig, *, resume: bool = False, quiet: bool = False) -> Path:
    """Train a parser and return its model directory, ``config.output/model``, which a run without an epoch lacks.

    A new run needs a folder without a run. With ``resume``, the run in ``config.output`` continues after its last
    completed epoch, or starts if it has none, and ends with the weights of an uninterrupted run, bit for bit on the
    same machine with the same number of threads.

    Several devices train together (``config.trainer.devices``): Lightning then starts the running script, or command,
    once more for each further device, or torchrun or Slurm has started them all.

    The function sets the seed of torch's default generator. It raises ``TreeparseError`` for every fault that the
    caller can correct.
    """
    run = RunDirectory(config.output)
    with without_notices(quiet=quiet), repeatable(training_device(config.trainer)):
        processes = join(config.trainer)
        console = Console(quiet=quiet or not processes.is_first)
        if processes.is_first and not resume and run.holds_run():
            raise TreeparseError(
                f"{run.path} already holds a run: resume it with --resume {run.path}, or name another --output."
            )
        if config.is_linear:
            history = _train_linear(config, run, console, resume=resume)
        else:
            history = _train_neural(config, run, processes, console, resume=resume)
        if history:
            processes.in_first(lambda: export_model(run))
    _say_result(run, history, console)
    return run.model


def prepare(config: TrainConfig, *, quiet: bool = False) -> Training:
    """Return what the epochs of a run need, for a Trainer of one's own; nothing is written.

    Of the result, ``config`` has the settings with numbers in the place of ``auto``, ``module`` is the LightningModule,
    ``data`` its batches, and ``trainer_options`` are what the Trainer needs. The function sets the seed of torch's
    default generator.

    Raises:
        TreeparseError: for every fault that the caller can correct; for a linear model, which no Trainer trains.
    """
    if config.is_linear:
        raise TreeparseError("A linear model is not trained by Lightning's Trainer: use treeparse.training.train.")
    processes = join(config.trainer)
    return _prepare(config, RunDirectory(config.output), None, processes, Console(quiet=quiet))


def _train_neural(
    config: TrainConfig, run: RunDirectory, processes: Processes, console: Console, *, resume: bool
) -> Sequence[EpochRecord]:
    def begun() -> tuple[Training, RunState | None]:
        state = run.read_state() if resume else None
        training = _prepare(config, run, state, processes, console)
        if processes.is_first:
            _begin(run, training.config, training.module.parser, training.data.train_data.sentences, resume=resume)
        return training, state

    training, state = processes.after_first(begun)
    return fit(training, run, state, console)


def _train_linear(config: TrainConfig, run: RunDirectory, console: Console, *, resume: bool) -> Sequence[EpochRecord]:
    state = run.read_state() if resume else None
    training = _prepare_linear(config, state, console)
    _begin(run, training.config, training.parser, training.train, resume=resume)
    return fit_linear(training, run, state, console)


def _prepare(
    config: TrainConfig, run: RunDirectory, state: RunState | None, processes: Processes, console: Console
) -> Training:
    """Build everything that the epochs of a run need; the settings are the first process's."""
    earlier = None if state is None else state.identity["settings"]
    if not processes.is_first:
        earlier = run.read_settings()
    with console.during("reading the treebanks"):
        treebanks = load_treebanks(config, console.say)
    train = treebanks.train_words
    objective = _build_objective(config, train)
    say_crossing_arcs(config.model.trees, train, console.say)
    say_many_labels(train, console.say)
    dev = dev_sentences(config, treebanks, train, console.say)
    mix = load_training_mix(config, treebanks, console.say)
    facts = TreebankFacts([*map(len, train)], sum(map(len, treebanks.dev_words)), mix=mix)

    parser = _build_parser(config, train, facts, console, is_new=state is None)
    length = parser.indexer.features.length
    facts = replace(facts, sizes=[*map(length, train)], size_of=length)
    resolved = resolve_settings(config, facts, earlier, processes=processes.count)
    console.remark(files_remark(resolved.data, treebanks))
    for remark in resolution_remarks(config, resolved) if state is None else ():
        console.remark(remark)

    identity = run_identity(resolved, parser.indexer.to_json(), train, dev, mix, processes.count)
    if state is not None:
        check_identity(state.identity, identity, Path(config.output))
    # Only after the check of identity, because neither resumption nor any weight depends on these.
    parser.indexer.multiword_tokens |= multiword_tokens(treebanks.train)
    indexer = cached_indexer(resolved, parser, [*train, *dev], console)

    name_of = partial(treebanks.name_of, text=mix.unlabelled)
    module = ParserModule(parser, objective, resolved.optimization, name_of=name_of)
    data = _build_batches(resolved, indexer, parser, objective, train, dev, facts)
    return Training(resolved, workload(resolved, facts, processes.count), module, data, identity, processes)


def _prepare_linear(config: TrainConfig, state: RunState | None, console: Console) -> LinearTraining:
    """Build everything that the epochs of a run of a linear model need."""
    earlier = None if state is None else state.identity["settings"]
    with console.during("reading the treebanks"):
        treebanks = load_treebanks(config, console.say)
    check_linear(config)
    train = treebanks.train_words
    dev = dev_sentences(config, treebanks, train, console.say)
    facts = TreebankFacts([*map(len, train)], sum(map(len, treebanks.dev_words)))
    parser = _build_parser(config, train, facts, console, is_new=state is None)
    resolved = resolve_settings(config, facts, earlier)
    console.remark(files_remark(resolved.data, treebanks))
    identity = run_identity(resolved, parser.indexer.to_json(), train, dev)
    if state is not None:
        check_identity(state.identity, identity, Path(config.output))
    parser.indexer.multiword_tokens |= multiword_tokens(treebanks.train)
    return LinearTraining(resolved, parser, train, dev, identity)


def _build_objective(config: TrainConfig, train: Sequence[Sentence]) -> Objective:
    objective = build_objective(config.objective)
    unlabelled = config.data.unlabelled is not None
    check_objective(objective, train, trees=config.model.trees, unlabelled=unlabelled)
    return objective


def _build_parser(
    config: TrainConfig, train: Sequence[Sentence], facts: TreebankFacts, console: Console, *, is_new: bool
) -> Parser:
    """Build the parser that the run starts from; its weights depend on the seed alone."""
    text = facts.mix.unlabelled
    torch.manual_seed(config.seed)
    with console.during("building the vocabularies and the parser"):
        parser, remark = initial_parser(config, train, [] if text is None else [s.words for s in text.share(0)])
    if config.trainer.get("precision") == "64-true":
        parser.double()
    if remark is not None and is_new:
        console.say(remark)
    return parser


def _build_batches(
    config: ResolvedConfig,
    indexer: Indexer,
    parser: Parser,
    objective: Objective,
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    facts: TreebankFacts,
) -> TreebankModule:
    return TreebankModule(
        train,
        dev,
        indexer.collate,
        partial(parser.words_of_terms, objective=objective),
        batch_words=config.data.batch_words,
        batch_squared=config.data.batch_squared,
        workers=config.data.workers,
        start_method=config.data.start_method,
        seed=config.seed,
        mix=facts.mix,
        check=parser.indexer.features.check,
        length=facts.size_of,
        ahead=batches_ahead(training_device(config.trainer)),
    )


def batches_ahead(device: torch.device) -> int:
    """Return the number of batches made in advance while a device computes; 0 on the CPU, which would do both."""
    return 0 if device.type == "cpu" else AHEAD


def _begin(
    run: RunDirectory, config: ResolvedConfig, parser: Parser, train: Sequence[Sentence], *, resume: bool
) -> None:
    """Write the files of a run that no epoch changes."""
    run.begin(config.to_yaml(), replace=resume)
    run.write_parser(parser)
    files = expand_paths(listed(config.data.train))
    device = "cpu" if config.is_linear else str(training_device(config.trainer))
    run.write_provenance(Provenance.of(files, train, device))


def _say_result(run: RunDirectory, history: Sequence[EpochRecord], console: Console) -> None:
    if not history:
        console.say("no epoch was measured, so there is no model")
        return
    best, seconds = best_record(history), sum(record.seconds for record in history)
    result = f"the model is that of epoch {best.epoch} of {history[-1].epoch}"
    if best.dev_uas is not None and best.dev_las is not None:
        result = f"best dev UAS {best.dev_uas:.2%}, LAS {best.dev_las:.2%} in epoch {best.epoch} of {history[-1].epoch}"
    console.say(f"{result}; {clock(seconds)} in all")
    console.say(f"model: {run.model}")
