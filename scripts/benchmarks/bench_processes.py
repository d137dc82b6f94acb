"""Words per second of training in two processes of one thread, beside one process of two threads, on two cores.

    python -m scripts.benchmarks.bench_processes --treebank $EWT-dev.conllu --output FILE

Both take the same batches in every step, and so learn the same. The commands of a user run as a whole; the words per
second are those that the runs report.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.support.reports.markdown import Opening, report

EPOCHS = 2  # the first one compiles kernels and warms up
WAYS = {
    "one process, two threads": (["--trainer.accumulate_grad_batches", "2"], 2),
    "one process, one thread": (["--trainer.accumulate_grad_batches", "2"], 1),
    "two processes, one thread each": (["--trainer.devices", "2"], 1),
}
REFERENCE = "one process, two threads"
OPENING = Opening(
    title="Training in two processes on two cores",
    measured="words a second of training, dev set left out, as `treeparse train` reports them.",
    on="a treebank, two batches a step.",
    read="medians over runs in turns of the second epoch's words a second; a ratio is the median over one process of "
    "two threads in the same turn.",
    repeat="python -m scripts.benchmarks.bench_processes --treebank "
    "$TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-dev.conllu "
    "--output scripts/experiments/results/bench_processes.md",
    details="Losses of all ways are the same but for rounding (`tests/training/test_several_processes.py`).",
)


def speed(config: str, treebank: Path, options: Iterable[str], threads: int) -> float:
    """Train in a folder that is then removed; return the words per second of the last epoch."""
    with TemporaryDirectory() as folder:
        run = Path(folder, "run")
        settings = {
            "--config": config,
            "--output": str(run),
            "--data.train": str(treebank),
            "--data.dev": "null",
            "--optimization.epochs": str(EPOCHS),
            "--optimization.steps": "0",
            "--optimization.dev_every": "1",
            "--trainer.accelerator": "cpu",
        }
        command = [sys.executable, "-m", "treeparse", "train", "--quiet"]
        command += [part for setting in settings.items() for part in setting] + [*options]
        subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": str(threads)})
        rows = list(csv.DictReader((run / "metrics.csv").read_text(encoding="utf-8").splitlines()))
        return float(rows[-1]["words_per_second"])


def table(configs: Iterable[str], treebank: Path, rounds: int) -> Iterator[str]:
    """Words per second and ratios of every config and way."""
    yield f"\n| config | {' | '.join(f'{way}, words/s' for way in WAYS)} | two processes over two threads |"
    yield f"|:--|{'--:|' * (len(WAYS) + 1)}"
    for config in configs:
        turns = [{way: speed(config, treebank, *given) for way, given in WAYS.items()} for _ in range(rounds)]
        medians = [statistics.median(turn[way] for turn in turns) for way in WAYS]
        ratio = statistics.median(turn["two processes, one thread each"] / turn[REFERENCE] for turn in turns)
        yield f"| `{config}` | {' | '.join(f'{each:,.0f}' for each in medians)} | {ratio:.2f} |"


def main() -> None:
    """Print the table, and write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", type=Path, required=True, metavar="FILE")
    parser.add_argument("--configs", nargs="+", default=["tiny", "fast"], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each way (default: 3)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here, as markdown")
    args = parser.parse_args()
    report(chain([OPENING.text(), "\n## Words a second"], table(args.configs, args.treebank, args.rounds)), args.output)


if __name__ == "__main__":
    main()
