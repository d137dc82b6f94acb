"""Time first calls in fresh processes, with nothing compiled and with all kernels cached: imports and the call itself.

python -m scripts.benchmarks.bench_start --model DIR --output scripts/experiments/results/bench_start.md
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from scripts.support.reports.markdown import Opening, report

OPENING = Opening(
    title="First calls",
    measured="seconds from the start of a program to the end of its first call, imports included, and CPU seconds.",
    on="32 sentences of 20 words; the parser parses one sentence of four words; a training of one epoch on the demo "
    "treebank.",
    read="compiled: nothing is compiled yet; cached: another process has just made the same call.",
    repeat="python -m scripts.benchmarks.bench_start --model DIR --output scripts/experiments/results/bench_start.md",
)
PROGRAM = """
import time
start = time.perf_counter()
{call}
print(time.perf_counter() - start, time.process_time())
"""
ROOT = Path(__file__).resolve().parents[2]
CALLS = {
    "log partition with its gradient": "import torch, treeparse; scores = torch.randn(32, 21, 21, requires_grad=True); "
    "treeparse.NonProjectiveCRF(scores).log_partition.sum().backward()",
    "5 best trees": "import torch, treeparse; treeparse.NonProjectiveCRF(torch.randn(32, 21, 21)).topk(5)",
    "parse": "import treeparse; treeparse.Parser.from_pretrained({model!r}).parse([['So', 'it', 'is', '.']])",
    "train, 1 epoch": "from treeparse.cli.main import main; main(['train', '-q', '--config', 'demo', '--output', "
    "{folder!r}, '--optimization.epochs', '1'])",
}


def seconds(call: str, site: str, model: Path) -> tuple[float, float]:
    """Return the seconds and CPU seconds of a call in a process of its own, by the package in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        program = PROGRAM.format(call=call.format(model=str(model), folder=f"{folder}/run"))
        environment = os.environ | {"PYTHONPATH": site, "NUMBA_CACHE_DIR": ""}
        command = [sys.executable, "-P", "-c", program]
        done = subprocess.run(command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    wall, cpu = map(float, done.stdout.split()[-2:])
    return wall, cpu


def table(model: Path) -> Iterator[str]:
    """Return a row for each call."""
    yield "\n## Seconds\n"
    yield "| call | compiled | CPU | cached | CPU |\n|:--|--:|--:|--:|--:|"
    for name, call in CALLS.items():
        with tempfile.TemporaryDirectory() as site:
            ignore = shutil.ignore_patterns("__pycache__")  # compiled code lies there
            shutil.copytree(ROOT / "treeparse", Path(site, "treeparse"), ignore=ignore)
            shutil.copytree(ROOT / "configs", Path(site, "treeparse", "configs"))
            numbers = chain(*(seconds(call, site, model) for _ in range(2)))
            yield f"| {name} | {' | '.join(f'{number:.1f}' for number in numbers)} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="a trained model")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here, as markdown")
    options = parser.parse_args()
    report(chain([OPENING.text()], table(options.model.resolve())), options.output)


if __name__ == "__main__":
    main()
