"""Parsers from 100 sentences with trees and 12,444 without, and from no tree at all.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT
    python -m scripts.experiments.experiment_semisup

Few trees: the default config on the first 100 training sentences of EWT alone, and beside unlabelled text (the words
and tags of the rest; the parser reads no tags), on which entropy is made small, 20 constraints that the 100 sentences
show are to hold, or, as an upper line, a parser of all of EWT teaches; and `treeparse self-train` on both, two rounds
after that of the 100 sentences alone. The dev set is every fifth dev sentence.
No tree: sentences of up to 20 words with gold UPOS and 20 constraints that were written by hand from the UD guidelines
(configs/constraints/ud.yaml), measured on the test sentences of up to 20 words beside attachment to a neighbour.

Each run appends a line to a file of JSON lines, and runs that stand there are not repeated; with --work a broken-off
run goes on where it was. In the end it prints tables of means and standard deviations over seeds and draws a plot.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from scripts.support.reports.markdown import cpu_name
from scripts.support.reports.spread import spread
from scripts.support.semisup.files import attachment_baselines, cut, every, short, write_constraints
from scripts.support.semisup.plot import draw
from scripts.support.training.options import add_run_options, working_folder
from scripts.support.training.runs import Record, append_record, read_records, scores_of_run, train_and_score

from treeparse.cli.main import main as main_command
from treeparse.data import load_treebank
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

OUTPUT = Path(__file__).parent / "results" / "experiment_semisup.jsonl"
RUN = ("labelled", "setting", "seed")  # tell the runs of a file apart
EWT = "UD_English-EWT/en_ewt-ud-{}.conllu"
LABELLED, DEV_STEP, CONSTRAINTS, SHORT = 100, 5, 20, 20
BY_HAND = Path(__file__).parents[2] / "configs" / "constraints" / "ud.yaml"

Settings = Mapping[str, object]
SUPERVISED, SELF_TRAINED = "100 trees alone", "self-training"
ROUNDS = [f"{SELF_TRAINED}, round {number}" for number in range(3)]
NO_TREE = "constraints alone"
COLUMNS = {"UAS": "uas", "LAS": "las", "dev LAS": "dev_las"}


class Paths(NamedTuple):
    """What the settings of a run are made of."""

    labelled: Path
    unlabelled: Path
    dev: Path
    constraints: Path
    teacher: Path  # a parser of all trees


def term(name: str, weight: object, **arguments: object) -> dict[str, object]:
    """One term of a weighted sum, for unlabelled text."""
    return {
        "objective": {"class_path": f"treeparse.objectives.{name}", "init_args": arguments},
        "weight": weight,
        "data": "unlabelled",
    }


def teacher(model: Path) -> dict[str, object]:
    """A saved model as a reference."""
    return {"class_path": "treeparse.model.Teacher", "init_args": {"models": [str(model)]}}


ADDED: Mapping[str, Callable[[Paths], dict[str, object]]] = {
    "entropy": lambda paths: term("Entropy", {"start": 0.0, "end": 0.1}),
    "20 constraints": lambda paths: term("GeneralizedExpectation", 2.0, constraints=str(paths.constraints)),
    "a teacher of all trees": lambda paths: term("Divergence", 1.0, reference=teacher(paths.teacher)),
}
BESIDE = {
    "data.unlabelled_ratio": 4.0,
    "optimization.epochs": 1,
    "optimization.steps": 1600,
    "optimization.dev_every": 10,
    "optimization.patience": "null",
}
ALONE_STEPS = {"optimization.epochs": 1, "optimization.steps": 1500}


def settings_of(setting: str, paths: Paths) -> Settings:
    """The settings of a run with some trees, over the default config."""
    data = {"data.train": paths.labelled, "data.dev": paths.dev}
    if setting == SUPERVISED:
        return data
    terms = [{"objective": "treeparse.objectives.TreeLikelihood"}, ADDED[setting](paths)]
    objective = {"objective.class_path": "treeparse.objectives.WeightedSum"}
    return {
        **data,
        **BESIDE,
        **objective,
        "objective.init_args.terms": json.dumps(terms),
        "data.unlabelled": paths.unlabelled,
    }


class Experiment:
    """The runs, made where a file lacks them."""

    def __init__(self, treebanks: Path, output: Path, work: Path, full: Path | None) -> None:
        self.treebanks, self.output, self.work, self.full = treebanks, output, work, full
        self.records = {tuple(record[name] for name in RUN): record for record in read_records(output)}
        output.parent.mkdir(parents=True, exist_ok=True)

    def file(self, part: str) -> Path:
        """A file of the treebank."""
        return self.treebanks / EWT.format(part)

    def few_trees(self, settings: Sequence[str], seeds: Sequence[int]) -> list[Record]:
        """The records of the runs with some trees."""
        data = self.work / "data"
        labelled, unlabelled = cut(self.file("train"), LABELLED, data)
        dev = every(self.file("dev"), DEV_STEP, data)
        constraints = write_constraints(labelled, CONSTRAINTS, data / f"constraints-{LABELLED}.yaml")
        gold = [sentence.words for sentence in load_treebank(self.file("test"))]
        full = self.full or self.folder("all trees", 1) / "model"
        paths = Paths(labelled, unlabelled, dev, constraints, full)
        for seed in seeds:
            for setting in settings:
                if setting == SELF_TRAINED:
                    self.self_train(paths, gold, seed)
                elif (LABELLED, setting, seed) not in self.records:
                    self.make_teacher(setting, paths, gold)
                    self.run(LABELLED, setting, seed, "default", settings_of(setting, paths), gold)
        names = [name for setting in settings for name in (ROUNDS if setting == SELF_TRAINED else [setting])]
        return [self.records[LABELLED, name, seed] for seed in seeds for name in names]

    def self_train(self, paths: Paths, gold: Sequence[Sentence], seed: int) -> None:
        """Make the rounds of a seed by the command, if a record is missing, and append their records."""
        folder, missing = self.folder(SELF_TRAINED, seed), [(LABELLED, name, seed) for name in ROUNDS]
        if all(run in self.records for run in missing):
            return
        files = {"train": paths.labelled, "dev": paths.dev, "unlabelled": paths.unlabelled}
        options = {"output": folder, "seed": seed, **{f"data.{name}": path for name, path in files.items()}}
        rounds = ["--rounds", str(len(ROUNDS) - 1)]
        if main_command(["self-train", *rounds, *(f"--{name}={value}" for name, value in options.items())]):
            raise TreeparseError(f"treeparse self-train failed in {folder}.")
        for number, run in enumerate(missing):
            if run not in self.records:
                self.add(*run, {**scores_of_run(folder / f"round-{number}", gold), **machine()})

    def make_teacher(self, setting: str, paths: Paths, gold: Sequence[Sentence]) -> None:
        """Train the parser of all trees, if a run learns from it and its folder is not there."""
        if setting == "a teacher of all trees" and not paths.teacher.is_dir():
            files = {"data.train": self.file("train"), "data.dev": self.file("dev")}
            train_and_score("fast", files, gold, paths.teacher.parent)

    def no_tree(self, seeds: Sequence[int]) -> list[Record]:
        """The records of the runs without any tree, and of attachment to a neighbour."""
        data = self.work / "data"
        train, test = (short(self.file(part), SHORT, data, trees=part == "test") for part in ("train", "test"))
        gold = [sentence.words for sentence in load_treebank(test)]
        for name, uas in attachment_baselines(gold).items():
            if (0, name, 0) not in self.records:
                self.add(0, name, 0, {"uas": round(uas, 6)})
        # Nothing is measured on the way: not even the choice of an epoch sees a tree.
        files = {"data.train": train, "data.dev": "null", "objective.init_args.constraints": BY_HAND, **ALONE_STEPS}
        for seed in seeds:
            if (0, NO_TREE, seed) not in self.records:
                self.run(0, NO_TREE, seed, "ge", files, gold)
        baselines = [record for (labelled, _, seed), record in self.records.items() if labelled == 0 == seed]
        return [*baselines, *(self.records[0, NO_TREE, seed] for seed in seeds)]

    def run(
        self, labelled: int, setting: str, seed: int, config: str, settings: Settings, gold: Sequence[Sentence]
    ) -> None:
        """Make one run and append its record."""
        print(f"{setting}, seed {seed}", flush=True)
        scores = train_and_score(config, {"seed": seed, **settings}, gold, self.folder(setting, seed))
        self.add(labelled, setting, seed, {**scores, **machine()})

    def add(self, labelled: int, setting: str, seed: int, values: Mapping[str, object]) -> None:
        """Append a record."""
        run = (labelled, setting, seed)
        self.records[run] = {**dict(zip(RUN, run, strict=True)), **values}
        append_record(self.output, self.records[run])

    def folder(self, setting: str, seed: int) -> Path:
        """Where a run lies."""
        return self.work / f"{setting.replace(' ', '_')}-{seed}"


def machine() -> dict[str, object]:
    """What a run was made by."""
    return {"threads": torch.get_num_threads(), "cpu": cpu_name()}


def table(records: Sequence[Record], columns: Mapping[str, str]) -> Iterator[str]:
    """Markdown: a row a setting, with its gains over the first, seed by seed."""
    settings = list(dict.fromkeys(record["setting"] for record in records))
    by_run = {(record["setting"], record["seed"]): record for record in records}
    yield f"| setting | seeds | {' | '.join(columns)} | {' | '.join(f'{name}, gain' for name in columns)} |"
    yield "|:--" + "|--:" * (1 + 2 * len(columns)) + "|"
    for setting in settings:
        seeds = [seed for name, seed in by_run if name == setting]
        scores = [spread([100 * by_run[setting, seed][key] for seed in seeds]) for key in columns.values()]
        pairs = [(by_run[settings[0], seed], by_run[setting, seed]) for seed in seeds if (settings[0], seed) in by_run]
        gains = [spread([100 * (b[key] - a[key]) for a, b in pairs], sign="+") for key in columns.values()]
        yield f"| {setting} | {len(seeds)} | {' | '.join(scores)} | {' | '.join(gains)} |"


def show(few: Sequence[Record], none: Sequence[Record], picture: Path) -> None:
    """Print the tables and draw the plot."""
    in_rounds = [record for record in few if record["setting"] in ROUNDS]
    beside = [record for record in few if record["setting"] not in ROUNDS]
    for records, columns in ((beside, COLUMNS), (in_rounds, COLUMNS), (none, {"UAS": "uas"})):
        if records:
            print("\n".join([*table(records, columns), ""]))
    draw(few, none, picture)


def replot(output: Path) -> None:
    """Show the runs of a file."""
    order = {name: place for place, name in enumerate([SUPERVISED, *ADDED, *ROUNDS])}
    records = sorted(read_records(output), key=lambda record: (order.get(record["setting"], 0), record["seed"]))
    few, none = ([r for r in records if bool(r["labelled"]) is some] for some in (True, False))
    show(few, none, output.with_suffix(".png"))


def main(options: Sequence[str] | None = None) -> None:
    """Run what is missing, print the tables and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    everything = [SUPERVISED, *ADDED, SELF_TRAINED]
    add_run_options(parser, OUTPUT)
    parser.add_argument(
        "--settings", nargs="*", choices=everything, default=everything, metavar="NAME", help=", ".join(everything)
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N", help="default: 1 2 3")
    parser.add_argument(
        "--constraints-alone", action=argparse.BooleanOptionalAction, default=True, help="train on no tree, too"
    )
    parser.add_argument(
        "--teacher", type=Path, metavar="MODEL", help="the parser of all trees (default: it is trained)"
    )
    parser.add_argument("--replot", type=Path, metavar="JSONL", help="train nothing: show the runs of this file")
    arguments = parser.parse_args(options)
    if arguments.replot:
        return replot(arguments.replot)
    with working_folder(arguments, "experiment_semisup") as work:
        experiment = Experiment(arguments.treebanks, arguments.output, work, arguments.teacher)
        few = experiment.few_trees(arguments.settings, arguments.seeds) if arguments.settings else []
        none = experiment.no_tree(arguments.seeds) if arguments.constraints_alone else []
    show(few, none, arguments.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
