#!/usr/bin/env python
"""The bill of a large corpus: words per second of a core, and what 10^9 words cost; several processes beside one.

    scripts/bench_corpus.py --treebank $TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-train.conllu --output FILE

Models are trained for an epoch, since speed does not need a good one, with the configs of --configs. The corpus has
the sentences of the treebank again and again, made distinct by a number in the place of a word's end. Each figure is a
whole command, its start included.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from support.corpora import TREEPARSE, distinct, seconds, train_briefly
from support.reports.markdown import Opening, report

from treeparse.data import read_conllu

PRICE = 0.04  # dollars of a core-hour, as clouds ask for in 2026
WORDS = 10**9
DEPCC = 2.5e11  # tokens of DepCC (Panchenko et al. 2018)
JOBS = 2
OPENING = Opening(
    title="What parsing a large corpus costs",
    measured="whole `treeparse predict` commands on CoNLL-U, one thread a process.",
    on="sentences of a treebank, made distinct.",
    read="words a second of one core; two processes that share one command (`--jobs 2`) over two commands that know "
    f"nothing of each other (`--shard`); dollars at ${PRICE} a core-hour.",
    repeat="scripts/bench_corpus.py --treebank $TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-train.conllu "
    "--output scripts/results/bench_corpus.md",
    details="Parsing takes as long whatever the weights are, so the models are trained for one epoch.",
)


def table(configs: Sequence[str], treebank: Path, sentences: int) -> Iterator[str]:
    """Speeds and costs of the models of all configs."""
    yield f"\n| model | words/s of a core | {JOBS} jobs over {JOBS} shards | $ for 10^9 words | $ for DepCC |"
    yield "|:--|--:|--:|--:|--:|"
    with TemporaryDirectory() as folder:
        corpus, known = Path(folder, "corpus.conllu"), [*read_conllu(treebank)]
        corpus.write_text("".join(distinct(known, sentences)), encoding="utf-8")
        words = sum(len(known[index % len(known)].words) for index in range(sentences))
        for config in configs:
            name, _, precision = config.partition(":")
            run = Path(folder, name)
            if not run.exists():
                train_briefly(name, treebank, run)
            predict = [*TREEPARSE, "predict", run, corpus, "--threads=1", "-q", f"--precision={precision or 32}"]
            alone = seconds([[*predict, "-o", Path(folder, "one.conllu")]])
            shards = [[*predict, "-o", Path(folder, f"{i}.conllu"), f"--shard={i}/{JOBS}"] for i in range(1, JOBS + 1)]
            apart, together = seconds(shards), seconds([[*predict, "-o", Path(folder, "jobs"), f"--jobs={JOBS}"]])
            dollars = PRICE * WORDS * alone / words / 3600
            title = f"`{name}`{f', {precision}' if precision else ''}"
            yield (
                f"| {title} | {words / alone:,.0f} | {apart / together:.2f} | {dollars:,.2f} | "
                f"{dollars * DEPCC / WORDS:,.0f} |"
            )


def main() -> None:
    """Print the table, and write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", type=Path, required=True, metavar="FILE")
    parser.add_argument("--sentences", type=int, default=100_000, metavar="N", help="of the corpus (default: 100000)")
    configs = ["tiny", "tiny:int8", "fast", "fast:int8", "bilstm", "linear"]
    parser.add_argument("--configs", nargs="+", default=configs, metavar="NAME[:PRECISION]")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here, as markdown")
    args = parser.parse_args()
    lines = table(args.configs, args.treebank, args.sentences)
    report(chain([OPENING.text(), "\n## Words a second and dollars"], lines), args.output)


if __name__ == "__main__":
    main()
