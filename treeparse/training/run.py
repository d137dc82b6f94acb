"""A training run: from its settings to its model directory, and its resumption."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from treeparse.data.batches.mixing import EpochSampler, TrainingMix
from treeparse.data.batches.steps import steps_of
from treeparse.data.batches.treebank_module import TreebankModule
from treeparse.data.features.root_label import root_label_use
from treeparse.data.files import display_name, expand_paths, is_stream
from treeparse.data.parses import with_parses
from treeparse.data.raw_text import multiword_tokens
from treeparse.errors import TreeparseError
from treeparse.metrics import TreebankScores, attachment_scores
from treeparse.model import Parser
from treeparse.model.promises import fit_promises
from treeparse.model.temperature import fit_temperatures
from treeparse.objectives import Objective
from treeparse.progress import Console
from treeparse.sentence import Sentence
from treeparse.training.fit import fit, repeatable, without_notices
from treeparse.training.frozen_layers import cached_indexer
from treeparse.training.identity import check_identity, run_identity
from treeparse.training.initial_parser import initial_parser
from treeparse.training.linear_model import LinearTraining, check_linear, fit_linear
from treeparse.training.parser_module import ParserModule, Training
from treeparse.training.reading import build_objective
from treeparse.training.release import Provenance, export_model
from treeparse.training.resolve import (
    batches_per_step,
    resolution_remarks,
    resolve_data,
    resolve_settings,
    with_trainers_epochs,
    with_treebank_column,
    workload,
)
from treeparse.training.run_directory import (
    EpochRecord,
    RunDirectory,
    RunState,
    best_record,
    clock,
    is_finished,
    write_csv,
)
from treeparse.training.train_config import TrainConfig
from treeparse.training.trainer import Processes, join, on_one_device, training_device
from treeparse.training.treebanks import (
    check_objective,
    check_rereadable_files,
    data_files,
    dev_sentences,
    files_remark,
    load_training_mix,
    load_treebanks,
    patterns_of,
    say_columns,
    say_doubts,
    say_missing,
)

AHEAD = 2
ENOUGH_WORDS = 20_000  # of the dev set, for temperatures


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
    if not on_one_device(config.trainer):
        check_rereadable_files(config.data, "each process of the run reads its data")
    device = training_device(config.trainer)
    with without_notices(quiet=quiet), repeatable(device):
        processes = join(config.trainer)
        console = Console(quiet=quiet or not processes.is_first)
        if processes.is_first and not resume and run.holds_run():
            raise TreeparseError(
                f"{run.path} already holds a run: resume it with --resume {run.path}, or name another --output."
            )
        training, state = processes.after_first(lambda: _begun(config, run, processes, console, resume=resume))
        history = _train(training, run, state, processes, console)
        if history:
            calibrate = partial(_calibrate, training=training, device=device, console=console)
            processes.in_first(lambda: export_model(run, calibrate=calibrate))
    _say_result(run, history, console)
    return run.model


def _train(
    training: Training | LinearTraining,
    run: RunDirectory,
    state: RunState | None,
    processes: Processes,
    console: Console,
) -> Sequence[EpochRecord]:
    """Train the remaining epochs and return the history of all."""
    history = [] if state is None else [*state.history]
    if processes.is_first:
        write_csv(run.metrics, history)
    limits = training.config.learning if isinstance(training, LinearTraining) else training.config.optimization
    if is_finished(history, epochs=limits.epochs, patience=limits.patience):
        console.say(f"the run in {run.path} is finished; nothing is left to train")
        return history
    if state is not None:
        console.say(f"resuming after epoch {history[-1].epoch}")
        threads = "threads", state.threads, torch.get_num_threads()
        for what, before, now in (threads, ("processes", state.processes, processes.count)):
            if before != now:
                console.say(f"the run had {before} {what}: another number may change the last bits")
    if isinstance(training, LinearTraining):
        return fit_linear(training, run, history, console)
    return fit(training, run, history, console)


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
    training = _prepare(config, RunDirectory(config.output), None, processes, Console(quiet=quiet))
    assert isinstance(training, Training)
    return training


def _begun(
    config: TrainConfig, run: RunDirectory, processes: Processes, console: Console, *, resume: bool
) -> tuple[Training | LinearTraining, RunState | None]:
    """Prepare a run or its resumption, and write the files of the run that no epoch changes."""
    state = run.read_state() if resume else None
    for path in filter(is_stream, data_files(config.data)):
        remedy = "to be able to resume, write it to a file first, and train from that file"
        console.say(f"{display_name(path)} is a pipe, so this run cannot be resumed: {remedy}")
    training = _prepare(config, run, state, processes, console)
    if processes.is_first:
        run.begin(training.config.to_yaml(), replace=resume)
        run.write_parser(training.parser)
        if not run.provenance.exists():
            device = torch.device("cpu") if config.is_linear else training_device(config.trainer)
            Provenance.of(expand_paths(patterns_of(config.data, "train")), training.train, device).write(run)
    return training, state


def _prepare(
    config: TrainConfig, run: RunDirectory, state: RunState | None, processes: Processes, console: Console
) -> Training | LinearTraining:
    """Build everything that the epochs of a run need; the settings are the first process's."""
    earlier = None if state is None else state.identity["settings"]
    if not processes.is_first:
        earlier = run.read_settings()
    config = with_treebank_column(with_trainers_epochs(config))
    with console.during("reading the treebanks"):
        treebanks = load_treebanks(config, console.say)
    train = treebanks.train_words
    objective = _checked_objective(config, train, console)
    dev = dev_sentences(config, treebanks, train, console.say)
    say_missing(train, dev, console.say)
    mix = load_training_mix(config, treebanks, console.say)

    parser = _build_parser(config, train, mix, console, is_new=state is None)
    if note := root_label_use(treebanks.train).note(reserved=parser.indexer.reserves_root):
        console.say(f"data.train: {note}")
    words, length = [*map(len, train)], parser.indexer.features.length
    data = resolve_data(config, words, earlier)
    bounds = {"max_words": data.batch_words, "max_squared": data.batch_squared}
    sampler = EpochSampler([*map(length, train)], **bounds, seed=config.seed, mix=mix, length=length)
    steps = steps_of(len(sampler), batches_per_step(config.trainer, processes.count))
    config = replace(config, model=replace(config.model, tags=parser.config.tags))
    resolved = resolve_settings(config, data, steps, earlier)
    console.remark(files_remark(data, treebanks))
    say_columns(parser, train, console.remark)
    for remark in resolution_remarks(config, resolved) if state is None and objective is not None else ():
        console.remark(remark)

    identity = run_identity(resolved, parser.indexer, train, dev, mix, processes.count)
    if state is not None:
        check_identity(state.identity, identity, run.path)
    # Only after the check of identity, because neither resumption nor any weight depends on these.
    parser.indexer.multiword_tokens |= multiword_tokens(treebanks.train)
    if objective is None:
        return LinearTraining(resolved, parser, train, dev, identity)
    indexer = cached_indexer(resolved, parser, [*train, *dev], console)
    name_of = partial(treebanks.name_of, text=mix.unlabelled)
    scores = TreebankScores.of(dev, data.dev_choice)
    module = ParserModule(parser, objective, resolved.optimization, name_of=name_of, scores=scores)
    work = workload(resolved, sampler, words, dev_words=sum(map(len, dev)))
    batches = TreebankModule(
        train,
        dev,
        indexer.collate,
        partial(parser.words_of_terms, objective=objective),
        sampler,
        workers=data.workers,
        start_method=data.start_method,
        check=parser.indexer.features.check,
        ahead=batches_ahead(training_device(config.trainer)),
    )
    return Training(resolved, work, module, batches, indexer, identity, processes)


def _checked_objective(config: TrainConfig, train: Sequence[Sentence], console: Console) -> Objective | None:
    """Build the objective, None for a linear model; raise if it or the model cannot learn from the sentences."""
    objective = None
    if config.is_linear:
        check_linear(config)
    else:
        objective = build_objective(config.objective)
        is_unlabelled = config.data.unlabelled is not None
        check_objective(objective, train, trees=config.model.trees, unlabelled=is_unlabelled)
    say_doubts(config, train, console.say)
    return objective


def _build_parser(
    config: TrainConfig, train: Sequence[Sentence], mix: TrainingMix, console: Console, *, is_new: bool
) -> Parser:
    """Build the parser that the run starts from; its weights depend on the seed alone."""
    text = mix.unlabelled
    torch.manual_seed(config.seed)
    with console.during("building the vocabularies and the parser"):
        parser, remark = initial_parser(config, train, [] if text is None else [s.words for s in text.share(0)])
    if config.trainer.get("precision") == "64-true":
        parser.double()
    if remark is not None and is_new:
        console.say(remark)
    return parser


def batches_ahead(device: torch.device) -> int:
    """Return the number of batches made in advance while a device computes; 0 on the CPU, which would do both."""
    return 0 if device.type == "cpu" else AHEAD


def _calibrate(parser: Parser, training: Training | LinearTraining, device: torch.device, console: Console) -> bool:
    """Fit the parser's temperatures to the dev set, or to a part of a large one, and say what became of it.

    Returns whether there are trees to fit to.
    """
    dev, own = training.dev, parser.indexer
    if not dev:
        console.say("probabilities stay as trained, without a dev set: treeparse calibrate MODEL DEV fits them")
        return False
    parser.indexer = training.indexer  # whose features may be cached
    try:
        part = dev[:: 1 + sum(map(len, dev)) // ENOUGH_WORDS]
        fits = fit_temperatures(parser.to(device), part)
        fit_promises(parser, part)
    except TreeparseError as error:
        console.say(f"probabilities stay as trained. {error}")
        return False
    else:
        scores = attachment_scores(dev, with_parses(dev, parser.parse(dev)))
    finally:
        parser.indexer = own
        parser.to("cpu")
    shown = ", ".join(
        f"{fit.temperature} of {name} (loss a word {fit.before:.4f} -> {fit.after:.4f})"
        for name, fit in (("arcs", fits.arcs), ("labels", fits.labels))
        if fit is not None
    )
    las = "" if math.isnan(scores.las) else f", LAS {scores.las:.2%}"
    console.say(f"probabilities fitted to the dev set: temperature {shown}; with them UAS {scores.uas:.2%}{las}")
    return True


def _say_result(run: RunDirectory, history: Sequence[EpochRecord], console: Console) -> None:
    if not history:
        console.say("no epoch was measured, so there is no model")
        return
    best, seconds = best_record(history), sum(record.seconds for record in history)
    result = f"the model is that of epoch {best.epoch} of {history[-1].epoch}"
    if best.dev_uas is not None:
        las = "" if best.dev_las is None else f", LAS {best.dev_las:.2%}"
        result = f"best dev UAS {best.dev_uas:.2%}{las} in epoch {best.epoch} of {history[-1].epoch}"
    console.say(f"{result}; {clock(seconds)} in all")
    console.say(f"model: {run.model}")
