#!/usr/bin/env python
"""Time first calls in fresh processes where no kernel is compiled yet: imports, kernels and the call itself.

    scripts/bench_start.py --model DIR --output scripts/results/bench_start.md

Run it by the Python of an environment that has treeparse-kernels (``scripts/build_kernels.py``). The cache of compiled
kernels is an empty folder for each process.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from build_kernels import features_of
from support.reports.markdown import Opening, report

OPENING = Opening(
    title="First calls",
    measured="seconds from the start of a program to the end of its first call, imports included, and the seconds of"
    " another call after it.",
    on="four sentences of 20 words; the parser parses one sentence of four words.",
    read="shipped: kernels are those of treeparse-kernels for this processor, or for x86-64-v3, as which it was taken; "
    "compiled: they are compiled. The fastest of three processes, compiled once.",
    repeat="scripts/bench_start.py --model DIR --output scripts/results/bench_start.md",
)
PROGRAM = """
import time
start = time.perf_counter()
from contextlib import nullcontext
from treeparse.kernels.compile import without_shipped_code
with {context}():
    {first}
    end = time.perf_counter()
    {second}
print(end - start, time.perf_counter() - end)
"""
SCORES = "import torch, treeparse; scores = torch.randn(4, 21, 21, requires_grad=True)"
CALLS = {
    "log partition with backward, then 5 best trees": (
        f"{SCORES}; treeparse.NonProjectiveCRF(scores).log_partition.sum().backward()",
        "treeparse.NonProjectiveCRF(scores.detach()).topk(5)",
    ),
    "parse, then parse again": (
        "import treeparse; parser = treeparse.Parser.from_pretrained({model!r}); words = [['So', 'it', 'is', '.']]; "
        "parser.parse(words)",
        "parser.parse(words)",
    ),
}
TIMES = 3


def seconds(program: str, settings: dict[str, str]) -> tuple[float, float]:
    """What the program prints in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | settings | {"NUMBA_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE)
    first, second = map(float, done.stdout.split())
    return first, second


def table(model: Path) -> Iterator[str]:
    """A row for each pair of calls and where its kernels come from."""
    yield "\n## Seconds\n"
    yield "| calls | kernels | first | second |\n|:--|:--|--:|--:|"
    v3 = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": features_of("x86-64-v3")}
    for name, (first, second) in CALLS.items():
        for kernels, context, settings, times in (
            ("shipped", "nullcontext", {}, TIMES),
            ("shipped, v3", "nullcontext", v3, TIMES),
            ("compiled", "without_shipped_code", {}, 1),
        ):
            program = PROGRAM.format(context=context, first=first.format(model=str(model)), second=second)
            found = [seconds(program, settings) for _ in range(times)]
            least = (min(column) for column in zip(*found, strict=True))
            yield f"| {name} | {kernels} | {' | '.join(f'{each:.2f}' for each in least)} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="a trained model")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here, as markdown")
    options = parser.parse_args()
    report(chain([OPENING.text()], table(options.model.resolve())), options.output)


if __name__ == "__main__":
    main()
