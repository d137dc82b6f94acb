"""Self-training in rounds: each parser learns from the trees and from the parses of its predecessor."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from treeparse.data.batches.unlabelled import UnlabelledText
from treeparse.data.columns import column_named
from treeparse.data.conllu import ConlluSentence, write_conllu
from treeparse.data.files import expand_paths
from treeparse.data.outputs import atomic_write
from treeparse.errors import DataError, TreeparseError
from treeparse.json_files import from_json
from treeparse.model import Parser
from treeparse.model.folder import file_digest
from treeparse.progress import Console
from treeparse.training.fit import without_notices
from treeparse.training.identity import FREE_SETTINGS, flattened
from treeparse.training.reading import build_objective
from treeparse.training.release import export_model
from treeparse.training.run import train
from treeparse.training.run_directory import RunDirectory, begin_runs, best_record
from treeparse.training.train_config import DataConfig, OptimizationConfig, TrainConfig
from treeparse.training.trainer import BINDING, Processes, join, training_device
from treeparse.training.treebanks import check_rereadable_files, listed

SETTINGS, ROUNDS, MODEL = "self-training.json", "rounds.json", "model"
STEPS = 1600  # of a round with text, if the config sets neither steps nor epochs
CHUNK = 2000  # sentences parsed at once
# Settings that may differ when the same command resumes. Digests of the data files are compared, not their names.
FREE = {"output", *(f"data.{name}" for name in FREE_SETTINGS["data"])}


@dataclass(frozen=True)
class Round:
    """A finished round.

    Attributes:
        number: 0 for the trees alone.
        dev_uas: UAS on the dev set, in [0, 1], of the model's epoch; None without a dev set.
        dev_las: LAS of that epoch, in [0, 1]; None without a dev set, or if it has no labels.
        silver: number of sentences of the text that the round learned from.
        text: number of all sentences of the text.
    """

    number: int
    dev_uas: float | None
    dev_las: float | None
    silver: int
    text: int


def self_train(
    config: TrainConfig, rounds: int = 2, *, least_log_prob: float | None = None, quiet: bool = False
) -> list[Round]:
    """Train on the trees, then in each round on the trees and on the text as the previous round parses it.

    The folder ``config.output`` holds a run for each round, ``round-0`` (the trees alone) to ``round-N``, and the best
    model so far in ``model``. The same call resumes an interrupted one, with the same bits; a call with more rounds
    adds rounds. `round_config` returns the settings of a round.

    Args:
        config: settings of training, with ``data.train`` and ``data.unlabelled``.
        rounds: number of rounds after round 0, at least 1.
        least_log_prob: leave out sentences whose best tree has a lower log probability a word; None for no such limit.
        quiet: whether to print nothing.

    Returns:
        All finished rounds.

    Raises:
        TreeparseError: the config or the text cannot be used, the folder holds other files, or as in
            `treeparse.training.train`.
    """
    if rounds < 1:
        raise TreeparseError(f"rounds must be at least 1, got {rounds}.")
    with without_notices(quiet=quiet):
        processes = join(config.trainer)
    work = _SelfTraining(config, least_log_prob, Console(quiet=quiet or not processes.is_first), processes)
    processes.in_first(work.begin)
    done = read_rounds(work.folder)
    for number in range(len(done), rounds + 1):
        done.append(work.round(number, rounds))
        processes.in_first(partial(work.end, done))
    return done


def round_config(config: TrainConfig, number: int, selected: bool = False) -> TrainConfig:
    """Return the settings of a round: ``treeparse train`` with these settings trains the round.

    Round 0 learns the trees alone. Later rounds also learn the previous round's best trees (`SilverTrees`), with the
    same weight. They take 1,600 steps if the config sets neither steps nor epochs, and have no patience if it is
    ``auto``.

    Args:
        config: the settings of self-training.
        number: number of the round.
        selected: whether the text is a file of selected sentences in the folder, instead of ``data.unlabelled``.
    """
    folder = Path(config.output)
    output = str(_run(folder, number))
    if not number:
        plain = DataConfig(train=config.data.train)
        names = "unlabelled", "unlabelled_ratio", "unlabelled_max_words", "mixing"
        data = replace(config.data, **{name: getattr(plain, name) for name in names})
        return replace(config, data=data, output=output)
    data = replace(config.data, unlabelled=str(_silver(folder, number))) if selected else config.data
    teacher = _class("treeparse.model.Teacher", models=[str(_run(folder, number - 1) / MODEL)])
    silver = _class("treeparse.objectives.SilverTrees", reference=teacher)
    terms = [{"objective": config.objective, "data": "labelled"}, {"objective": silver, "data": "unlabelled"}]
    objective = _class("treeparse.objectives.WeightedSum", terms=terms)
    optimization = _with_text(config.optimization)
    return replace(config, data=data, objective=objective, optimization=optimization, output=output)


def read_rounds(folder: Path) -> list[Round]:
    """Read the finished rounds of a folder.

    Raises:
        TreeparseError: the file of rounds is damaged.
    """
    path = folder / ROUNDS
    if not path.is_file():
        return []
    try:
        return [Round(**values) for values in from_json(path.read_bytes())]
    except (TypeError, ValueError) as error:
        raise TreeparseError(
            f"{path} is damaged ({error}): remove it, and the same command writes it again without further training."
        ) from error


class _SelfTraining:
    """The rounds of a folder, with the settings and the text that they share."""

    def __init__(
        self, config: TrainConfig, least_log_prob: float | None, console: Console, processes: Processes
    ) -> None:
        self.config, self.least_log_prob, self.console, self.processes = config, least_log_prob, console, processes
        self.folder, self.text = Path(config.output), _text(config)
        check_rereadable_files(config.data, "self-training reads its data in every round")
        self.text.share(0)  # raises if there is no sentence
        self.sentences = _count_checked(self.text, getattr(config.model.encoder, "tags", ()))

    def begin(self) -> None:
        """Write the settings to the folder; raise if the folder was begun with others, or holds other files."""
        flat = flattened(self.config.to_dict())
        settings = {key: value for key, value in flat.items() if key not in FREE and not _is_free_argument(key)}
        settings["least_log_prob"] = self.least_log_prob
        for name in ("train", "dev"):
            paths = expand_paths(listed(getattr(self.config.data, name)))
            settings[f"files of data.{name}"] = [file_digest(path) for path in paths]
        settings["files of data.unlabelled"] = [list(digest) for digest in self.text.digests()]
        replaceable = set() if _run(self.folder, 0).exists() else set(settings)
        if not (_run(self.folder, 1).exists() or _silver(self.folder, 1).exists()):
            replaceable.add("least_log_prob")
        begin_runs(self.folder / SETTINGS, settings, "self-training", replaceable=replaceable)

    def round(self, number: int, last: int) -> Round:
        """Train a round, or resume it; the message names the last round."""
        source = f"the trees, and the text as round {number - 1} parses it" if number else "the trees alone"
        self.console.say(f"round {number} of {last}: {source}")
        silver = self.processes.after_first(lambda: self._select(number)) if number else 0
        config = round_config(self.config, number, selected=self.least_log_prob is not None)
        train(config, resume=True, quiet=self.console.quiet)
        best = best_record(RunDirectory(config.output).read_history())
        return Round(number, best.dev_uas, best.dev_las, silver, self.sentences)

    def end(self, done: Sequence[Round]) -> None:
        """Write the model, if the last of these rounds is the best, and the table of rounds."""
        if best_record(done) is done[-1]:
            export_model(RunDirectory(_run(self.folder, len(done) - 1)), self.folder / MODEL)
        atomic_write(self.folder / ROUNDS, json.dumps([*map(asdict, done)], indent=2) + "\n")

    def _select(self, number: int) -> int:
        """Count the sentences that a round learns from: all, or a selection by log probability, written to a file."""
        if self.least_log_prob is None:
            return self.sentences
        path = _silver(self.folder, number)
        if not path.is_file():
            device = training_device(self.config.trainer)
            parser = Parser.from_pretrained(_run(self.folder, number - 1)).to(device)
            write_conllu(path, self._sure_parses(parser, self.least_log_prob))
        return sum(1 for _ in UnlabelledText([path], words=1, max_words=self.text.max_words).once())

    def _sure_parses(self, parser: Parser, least: float) -> Iterator[ConlluSentence]:
        """Yield the sentences whose best tree has at least this log probability a word, with this tree."""
        rest, surest = self.text.once(), -math.inf
        with self.console.bar(self.sentences, " sentences") as bar:
            while chunk := list(islice(rest, CHUNK)):
                words = [sentence.words for sentence in chunk]
                parses = parser.parse(words, progress=lambda indices: bar.update(len(indices)))
                for sentence, parse in zip(chunk, parses, strict=True):
                    log_prob = parse.log_prob / len(sentence.words)
                    surest = max(surest, log_prob)
                    if log_prob >= least:
                        yield sentence.alone().with_parse(parse.heads, parse.labels)
        if surest < least:
            raise TreeparseError(
                f"No sentence of the text has a tree of log probability {least} a word or more; the surest has "
                f"{surest:.2f}: lower the limit."
            )


def _text(config: TrainConfig) -> UnlabelledText:
    """Return the text; raise if there is none, or if the objective learns from sentences without trees."""
    data = config.data
    if data.treebanks:
        raise TreeparseError("Self-training learns from one treebank: name its files as data.train.")
    if data.unlabelled is None:
        raise TreeparseError("Self-training needs sentences without trees: name files as data.unlabelled.")
    kinds = build_objective(config.objective).kinds()
    if others := [name for name, kind in kinds.items() if kind != "labelled"]:
        raise TreeparseError(
            f"The objective {others[0]} is not for trees alone, but self-training itself adds the text: leave the "
            "objective out, or train with treeparse train."
        )
    skip = (lambda fault: None) if data.skip_invalid else None
    return UnlabelledText(listed(data.unlabelled), words=1, max_words=data.unlabelled_max_words, on_invalid=skip)


def _count_checked(text: UnlabelledText, columns: Sequence[str]) -> int:
    """Count the sentences of the text; raise for a fault in any of them, because otherwise round 1 would raise it."""
    count = 0
    for sentence in text.once():
        count += 1
        try:
            for column in columns:
                column_named(column).read(sentence.words)
        except TreeparseError as error:
            raise DataError(str(error), source=sentence.source, line=sentence.line) from error
    return count


def _with_text(optimization: OptimizationConfig) -> OptimizationConfig:
    """Set the length and the patience that the config leaves to ``auto``, for a round with text."""
    if optimization.epochs == optimization.steps == "auto":
        optimization = replace(optimization, steps=STEPS)
    return replace(optimization, patience=None) if optimization.patience == "auto" else optimization


def _is_free_argument(key: str) -> bool:
    """Return whether a key is an argument of the Trainer that changes no bit of a run's outcome."""
    section, _, name = key.partition(".")
    return section == "trainer" and name.partition(".")[0] not in (*BINDING, "accumulate_grad_batches")


def _class(path: str, **arguments: object) -> dict[str, Any]:
    """Return a class with its arguments, as in a config."""
    return {"class_path": path, "init_args": arguments}


def _run(folder: Path, number: int) -> Path:
    return folder / f"round-{number}"


def _silver(folder: Path, number: int) -> Path:
    return folder / f"silver-{number}.conllu"
