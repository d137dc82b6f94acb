#!/usr/bin/env python
"""Train a config under several objectives and seeds, score the parsers on a test set, and compare the objectives.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT
    scripts/experiment_objectives.py

Each run appends a line to a file of JSON lines once its test scores are known, and runs that stand there are not
repeated: a broken-off experiment goes on where it was, with --work even within a run. In the end it prints a table:
means and standard deviations over seeds, and differences to the first objective, taken seed by seed.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from support.training.runs import Record, append_record, read_records, train_and_score

from treeparse.core import TreeparseError
from treeparse.data import load_treebank

OUTPUT = Path(__file__).parent / "results" / "experiment_objectives.jsonl"
TEST = "$TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-test.conllu"
RUN = ("config", "test", "objective", "seed")  # tell the runs of a file apart
COLUMNS = {
    "UAS": "uas",
    "LAS": "las",
    "CLAS": "clas",
    "all heads right": "complete_match_unlabeled",
    "all heads and labels": "complete_match",
    "dev LAS": "dev_las",
}


def experiment(
    config: str, objectives: Sequence[str], seeds: Sequence[int], test: str, output: Path, work: Path
) -> list[Record]:
    """The records of all these runs; those that ``output`` lacks are made and appended."""
    records = {tuple(record[name] for name in RUN): record for record in read_records(output)}
    gold = [sentence.words for sentence in load_treebank([test])]
    output.parent.mkdir(parents=True, exist_ok=True)
    runs = [(Path(config).stem, Path(test).name, objective, seed) for seed in seeds for objective in objectives]
    for run in runs:
        if run not in records:
            _, _, objective, seed = run
            print(f"{objective}, seed {seed}", flush=True)
            options = {"seed": seed, "objective": f"treeparse.objectives.{objective}"}
            scores = train_and_score(config, options, gold, work / f"{Path(config).stem}-{objective}-{seed}")
            records[run] = {**dict(zip(RUN, run, strict=True)), **scores, "treeparse": version("treeparse")}
            append_record(output, records[run])
    return [records[run] for run in runs]


def table(records: Sequence[Record], objectives: Sequence[str]) -> Iterator[str]:
    """Markdown: a row an objective, then a row for each of its differences to the first."""
    by_run = {(record["objective"], record["seed"]): record for record in records}
    seeds = {objective: [seed for name, seed in by_run if name == objective] for objective in objectives}
    yield f"| objective | seeds | {' | '.join(COLUMNS)} | minutes |"
    yield "|:--" + "|--:" * (len(COLUMNS) + 2) + "|"
    for objective in objectives:
        runs = [by_run[objective, seed] for seed in seeds[objective]]
        cells = [spread([100 * record[name] for record in runs]) for name in COLUMNS.values()]
        minutes = spread([record["seconds"] / 60 for record in runs])
        yield f"| {objective} | {len(runs)} | {' | '.join(cells)} | {minutes} |"
    first, *others = objectives
    for other in others:
        pairs = [(by_run[first, seed], by_run[other, seed]) for seed in seeds[other] if seed in seeds[first]]
        cells = [spread([100 * (b[name] - a[name]) for a, b in pairs], sign="+") for name in COLUMNS.values()]
        yield f"| {other} less {first} | {len(pairs)} | {' | '.join(cells)} | |"


def spread(values: Sequence[float], sign: str = "") -> str:
    """Mean and standard deviation as a cell."""
    if not values:
        return ""
    mean = f"{statistics.mean(values):{sign}.2f}"
    return f"{mean} ± {statistics.stdev(values):.2f}" if len(values) > 1 else mean


def main(options: Sequence[str] | None = None) -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebanks", metavar="DIR", help="instead of the variable TREEPARSE_TREEBANKS")
    parser.add_argument("--config", default="fast", help="a YAML file, or a name from treeparse config (default: fast)")
    parser.add_argument("--test", default=TEST, metavar="CONLLU", help=f"default: {TEST}")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N", help="default: 1 2 3")
    parser.add_argument(
        "--objectives", nargs="+", default=["HeadSelection", "TreeLikelihood"], metavar="NAME", help="classes"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="JSONL", help="default: in scripts/results")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the runs here (default: a temporary folder)")
    arguments = parser.parse_args(options)
    if arguments.treebanks:
        os.environ["TREEPARSE_TREEBANKS"] = arguments.treebanks
    with tempfile.TemporaryDirectory() as temporary:
        try:
            work = arguments.work or Path(temporary)
            records = experiment(
                arguments.config, arguments.objectives, arguments.seeds, arguments.test, arguments.output, work
            )
        except TreeparseError as error:
            sys.exit(f"experiment_objectives: {error}")
    print("\n".join(table(records, arguments.objectives)))


if __name__ == "__main__":
    main()
