"""Try hostile input for long: ``scripts/fuzz --minutes N``."""

import argparse
import os
import platform
import sys
import time

import torch

from fuzz.targets import TARGETS
from fuzz.turns import Turn, turns


def main() -> int:
    """Try all chosen targets; the exit code is 1 if an example failed."""
    names = [target.name for target in TARGETS]
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="Try hostile input, and print what fails.")
    parser.add_argument("--minutes", type=float, default=10.0, metavar="N", help="how long (default: 10)")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these targets alone")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where seeds begin (default: the time)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: all CPUs)")
    parser.add_argument("--cases", type=int, metavar="N", help="no more turns of a target after so many cases")
    args = parser.parse_args()
    print(f"Python {platform.python_version()}, torch {torch.__version__}, seed {args.seed}", flush=True)
    all_turns: list[Turn] = []
    for turn in turns(args.only, args.minutes, args.seed, args.jobs, args.cases):
        all_turns.append(turn)
        if turn.failure:
            print(f"{turn.name}, seed {turn.seed}:\n{turn.failure}", flush=True)
    for name in args.only:
        own = [turn for turn in all_turns if turn.name == name]
        cases, seconds = sum(turn.cases for turn in own), sum(turn.seconds for turn in own)
        failed = sum(bool(turn.failure) for turn in own)
        print(f"{name}: {cases:,} cases in {seconds:,.0f} s of one core, turns that failed: {failed}")
    return int(any(turn.failure for turn in all_turns))


if __name__ == "__main__":
    sys.exit(main())
