"""Train the shipped configs on small treebanks: with the fixed epochs of before, as shipped, and with epochs by hand.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT, UD_Latin-Perseus and UD_Turkish-IMST
    python -m scripts.experiments.experiment_recipes --threads 1 --encoder ~/models/all-MiniLM-L6-v2

Each small treebank is the first 1,000 training sentences of a large one. Every fifth dev sentence measures; Latin has
no dev file, and the last 134 of its training sentences measure. Each run appends a line to a file of JSON lines once
its test scores are known, and runs that the file holds are not repeated. The table has the LAS on the test set. Of the
epochs by hand it shows those with the highest dev LAS.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import torch
from scripts.support.reports.markdown import cpu_name
from scripts.support.reports.spread import spread
from scripts.support.training.fixed import FIXED
from scripts.support.training.options import add_run_options, working_folder
from scripts.support.training.runs import Record, append_record, read_records, train_and_score
from scripts.support.training.treebanks import EWT_FILES, LATIN_FILES, TURKISH_FILES, Parts, files_of

from treeparse.data import load_treebank

OUTPUT = Path(__file__).parent / "results" / "experiment_recipes.jsonl"
RUN = ("config", "treebank", "setting", "seed")  # tell the runs of a file apart
FIFTH = slice(None, None, 5)
TREEBANKS = {
    "EWT-1000": Parts(EWT_FILES, slice(1000), FIFTH),
    "Latin-1000": Parts(LATIN_FILES, slice(1000), slice(-134, None), "train"),
    "Turkish-1000": Parts(TURKISH_FILES, slice(1000), FIFTH),
    "EWT": Parts(EWT_FILES),
}


def settings_of(config: str, setting: str) -> dict[str, object]:
    """The options over a config for ``now``, ``before`` or a number of epochs by hand."""
    if setting == "now":
        return {}
    if setting == "before":
        return FIXED[config]
    by_hand = {"optimization.epochs": int(setting), "optimization.dev_every": max(1, int(setting) // 10)}
    return {**FIXED[config], **by_hand}


def experiment(runs: Sequence[tuple[str, ...]], arguments: argparse.Namespace, work: Path) -> None:
    """Make the runs that the output file lacks."""
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    for run in runs:
        config, name, setting, seed = run
        if run in {tuple(str(record[key]) for key in RUN) for record in read_records(arguments.output)}:
            continue
        print(" ".join(run), flush=True)
        treebank = TREEBANKS[name]
        options = {**files_of(treebank, arguments.treebanks, work / "data"), **settings_of(config, setting)}
        if config == "transformer" and arguments.encoder is not None:
            options["model.encoder.model"] = arguments.encoder
        gold = [sentence.words for sentence in load_treebank([f"{arguments.treebanks / treebank.files}test.conllu"])]
        scores = train_and_score(config, {**options, "seed": seed}, gold, work / "-".join(run))
        machine = {"threads": torch.get_num_threads(), "cpu": cpu_name()}
        append_record(arguments.output, {**dict(zip(RUN, run, strict=True)), **scores, **machine})


def table(records: Sequence[Record]) -> Iterator[str]:
    """Markdown: a row for each config on each treebank."""
    yield "| config | treebank | before | as shipped | by hand | epochs by hand |"
    yield "|:--|:--|--:|--:|--:|:--|"
    for config, treebank in product(FIXED, TREEBANKS):
        these = [record for record in records if (record["config"], record["treebank"]) == (config, treebank)]
        if not these:
            continue
        before, now = ([record for record in these if record["setting"] == name] for name in ("before", "now"))
        by_hand = [record for record in these if record["setting"].isdecimal()]
        best = max(by_hand, key=lambda record: record["dev_las"], default=None)
        tried = ", ".join(
            f"**{record['setting']}**" if record is best else record["setting"]
            for record in sorted(by_hand, key=lambda record: int(record["setting"]))
        )
        yield f"| {config} | {treebank} | {_las(before)} | {_las(now)} | {_las([best] if best else [])} | {tried} |"


def _las(records: Sequence[Record]) -> str:
    return spread([100 * record["las"] for record in records])


def main(options: Sequence[str] | None = None) -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TREEBANKS)} (default: all)")
    parser.add_argument("--configs", nargs="+", choices=FIXED, default=list(FIXED))
    parser.add_argument("--settings", nargs="+", default=["before", "now", "40", "80"], metavar="before|now|EPOCHS")
    parser.add_argument("--seeds", nargs="+", default=["1"], metavar="N")
    parser.add_argument("--encoder", type=Path, metavar="DIR", help="the pretrained encoder of transformer")
    add_run_options(parser, OUTPUT)
    arguments = parser.parse_args(options)
    if unknown := set(arguments.names) - set(TREEBANKS):
        parser.error(f"unknown treebank {', '.join(sorted(unknown))}: there are {', '.join(TREEBANKS)}")
    with working_folder(arguments, "experiment_recipes") as work:
        names = arguments.names or list(TREEBANKS)
        experiment(list(product(arguments.configs, names, arguments.settings, arguments.seeds)), arguments, work)
    print("\n".join(table(read_records(arguments.output))))


if __name__ == "__main__":
    main()
