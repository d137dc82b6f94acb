"""Train a config under several objectives and seeds, score the parsers on a test set, and compare the objectives.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT
    python -m scripts.experiments.experiment_objectives

Two comparisons: parsers trained from nothing, and parsers trained on from one parser, that of likelihood and the first
seed, for equal further steps. Of these the expected risk on the dev set, the share of words that a tree drawn from the
parser gets wrong, is measured before and after.

Each run appends a line to a file of JSON lines once its test scores are known, and runs that stand there are not
repeated: a broken-off experiment goes on where it was, with --work even within a run. In the end it prints a table of
each comparison: means and standard deviations over seeds, and differences to the first objective, taken seed by seed.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from scripts.support.reports.spread import spread
from scripts.support.training.risk import expected_risk
from scripts.support.training.runs import Record, append_record, read_records, train_and_score

from treeparse.data import load_treebank
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

OUTPUT = Path(__file__).parent / "results" / "experiment_objectives.jsonl"
DATA = "$TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-{}.conllu"
RUN = ("config", "test", "objective", "seed")  # tell the runs of a file apart
COLUMNS = {
    "UAS": "uas",
    "LAS": "las",
    "CLAS": "clas",
    "all heads right": "complete_match_unlabeled",
    "all heads and labels": "complete_match",
    "dev LAS": "dev_las",
    "dev risk": "dev_risk",
}

Settings = Mapping[str, object]
START = "the start"


def objective(name: str, **arguments: object) -> Settings:
    """The settings of an objective of the package."""
    path = "objective" if not arguments else "objective.class_path"
    return {path: f"treeparse.objectives.{name}"} | {
        f"objective.init_args.{key}": str(value).lower() for key, value in arguments.items()
    }


FROM_NOTHING: Mapping[str, Settings] = {name: objective(name) for name in ("HeadSelection", "TreeLikelihood")}
TRAINED_ON: Mapping[str, Settings] = {
    "on with likelihood": objective("TreeLikelihood"),
    "exact minimum risk": objective("MinimumRisk"),
    "minimum risk, 8 trees drawn": objective("SampledRisk", samples=8, replacement=True),
    "minimum risk, 8 different trees drawn": objective("SampledRisk", samples=8, replacement=False),
    "minimum risk, 8 best trees": objective("KBestRisk", trees=8),
    "margin": objective("MaxMargin"),
}
EPOCHS_ON = {"optimization.epochs": 2, "optimization.learning_rate": 5e-4, "optimization.warmup_steps": 50}


def data_of(config: str) -> Settings:
    """The files of EWT for a shipped config; a config file names its own."""
    return {} if Path(config).is_file() else {f"data.{part}": DATA.format(part) for part in ("train", "dev")}


class Files(NamedTuple):
    """What is measured by, what is written, and where runs lie."""

    dev: Sequence[Sentence]
    test: Sequence[Sentence]
    test_name: str
    output: Path
    work: Path


def run_all(
    config: str, objectives: Mapping[str, Settings], seeds: Sequence[int], files: Files, *, with_risk: bool
) -> list[Record]:
    """The records of the runs of all objectives and seeds; those that the output lacks are made and appended."""
    records = known(files)
    files.output.parent.mkdir(parents=True, exist_ok=True)
    runs = [(Path(config).stem, files.test_name, name, seed) for seed in seeds for name in objectives]
    for run in runs:
        if run not in records:
            _, _, name, seed = run
            print(f"{name}, seed {seed}", flush=True)
            directory = folder(config, name, seed, files)
            scores = train_and_score(
                config, {**data_of(config), "seed": seed, **objectives[name]}, files.test, directory
            )
            risk = {"dev_risk": expected_risk(directory / "model", files.dev)} if with_risk else {}
            versions = {"treeparse": version("treeparse")}
            records[run] = {**dict(zip(RUN, run, strict=True)), **scores, **risk, **versions}
            append_record(files.output, records[run])
    return [records[run] for run in runs]


def trained_on(config: str, names: Sequence[str], seeds: Sequence[int], files: Files) -> list[Record]:
    """The start and the parsers trained on from it."""
    likelihood = objective("TreeLikelihood")
    records = run_all(config, {START: likelihood}, seeds[:1], files, with_risk=True)
    start = folder(config, START, seeds[0], files)
    runs = {(Path(config).stem, files.test_name, name, seed) for name in names for seed in seeds}
    missing = runs - known(files).keys()
    if missing and not (start / "model").is_dir():  # its folder was a temporary one of a former call
        train_and_score(config, {**data_of(config), "seed": seeds[0], **likelihood}, files.test, start)
    wanted = {name: {**TRAINED_ON[name], **EPOCHS_ON, "init_from": start / "model"} for name in names}
    return records + run_all(config, wanted, seeds, files, with_risk=True)


def known(files: Files) -> dict[tuple[object, ...], Record]:
    """The runs that the output holds."""
    return {tuple(record[name] for name in RUN): record for record in read_records(files.output)}


def folder(config: str, name: str, seed: int, files: Files) -> Path:
    """Where a run lies."""
    return files.work / f"{Path(config).stem}-{name}-{seed}".replace(" ", "_").replace(",", "")


def table(records: Sequence[Record], objectives: Sequence[str]) -> Iterator[str]:
    """Markdown: a row an objective, then a row for each of its differences to the first."""
    columns = {title: name for title, name in COLUMNS.items() if any(name in record for record in records)}
    by_run = {(record["objective"], record["seed"]): record for record in records}
    seeds = {objective: [seed for name, seed in by_run if name == objective] for objective in objectives}
    yield f"| objective | seeds | {' | '.join(columns)} | minutes |"
    yield "|:--" + "|--:" * (len(columns) + 2) + "|"
    for objective in objectives:
        runs = [by_run[objective, seed] for seed in seeds[objective]]
        cells = [spread([100 * record[name] for record in runs]) for name in columns.values()]
        minutes = spread([record["seconds"] / 60 for record in runs])
        yield f"| {objective} | {len(runs)} | {' | '.join(cells)} | {minutes} |"
    first, *others = objectives
    for other in others:
        pairs = [(by_run[first, seed], by_run[other, seed]) for seed in seeds[other] if seed in seeds[first]]
        cells = [spread([100 * (b[name] - a[name]) for a, b in pairs], sign="+") for name in columns.values()]
        yield f"| {other} less {first} | {len(pairs)} | {' | '.join(cells)} | |"


def main(options: Sequence[str] | None = None) -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebanks", metavar="DIR", help="instead of the variable TREEPARSE_TREEBANKS")
    parser.add_argument("--config", default="fast", help="a YAML file, or a name from treeparse config (default: fast)")
    test, dev = DATA.format("test"), DATA.format("dev")
    parser.add_argument("--test", default=test, metavar="CONLLU", help=f"default: {test}")
    parser.add_argument("--dev", default=dev, metavar="CONLLU", help=f"where risk is measured (default: {dev})")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N", help="default: 1 2 3")
    parser.add_argument(
        "--objectives", nargs="*", default=[*FROM_NOTHING], metavar="NAME", help="classes, from nothing"
    )
    parser.add_argument(
        "--on", nargs="*", default=[*TRAINED_ON], metavar="NAME", choices=[*TRAINED_ON], help="objectives trained on"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="JSONL", help="default: in experiments/results")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the runs here (default: a temporary folder)")
    arguments = parser.parse_args(options)
    if arguments.treebanks:
        os.environ["TREEPARSE_TREEBANKS"] = arguments.treebanks
    with tempfile.TemporaryDirectory() as temporary:
        try:
            test, dev = ([s.words for s in load_treebank([path])] for path in (arguments.test, arguments.dev))
            work = arguments.work or Path(temporary)
            files = Files(dev, test, Path(arguments.test).name, arguments.output, work)
            if arguments.objectives:
                objectives = {name: objective(name) for name in arguments.objectives}
                records = run_all(arguments.config, objectives, arguments.seeds, files, with_risk=False)
                print("\n".join(table(records, arguments.objectives)), flush=True)
            if arguments.on:
                records = trained_on(arguments.config, arguments.on, arguments.seeds, files)
                print("\n".join(["", *table(records, [*arguments.on, START])]))
        except TreeparseError as error:
            sys.exit(f"experiment_objectives: {error}")


if __name__ == "__main__":
    main()
