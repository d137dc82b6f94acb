#!/usr/bin/env python
"""Call every public function with wrong arguments, at random, and print each outcome that is no result or sentence.

    scripts/check_arguments.py --cases 20000 --seed 1

A case replaces one to three arguments. The exit status is 1 if there was a fault.
"""

import argparse
import random
import warnings
from collections import Counter

from support.wrong_arguments import calls, fault_of, odd_values, small_parser


def main() -> None:
    """Make the calls, and print the faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000, metavar="N", help="calls (default 20000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the choice (default 1)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen, tried, odd = random.Random(options.seed), calls(small_parser()), odd_values()
    faults = Counter[str]()
    for _ in range(options.cases):
        call = chosen.choice(tried)
        names = chosen.sample(sorted(call.arguments), min(chosen.randint(1, 3), len(call.arguments)))
        picked = {name: chosen.choice(sorted(odd)) for name in names}
        fault = fault_of(call, {name: odd[value] for name, value in picked.items()})
        if fault:
            faults[f"{call.name} with {picked}: {fault}"] += 1
    for fault, count in faults.most_common():
        print(f"{count} x {fault}")
    print(f"{options.cases} cases, {faults.total()} faults")
    if faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
