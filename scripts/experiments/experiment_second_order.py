"""Train parsers that score arcs alone, siblings, and grandparents, from equal settings, and compare their test scores.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT, UD_Latin-Perseus and UD_Turkish-IMST
    python -m scripts.experiments.experiment_second_order --threads 1

The settings are those of the config ``second_order``; ``model.trees`` and what it calls for differ. Parsers that are
trained by a margin go on from one of likelihood or of mean field for three epochs. Latin has no dev file: the last 134
of its training sentences choose the epoch. EWT-half is EWT with the heads of half of its words. Each run appends a line
to a file of JSON lines once its test scores are known, and runs that the file holds are not repeated.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import torch
from scripts.support.reports.markdown import cpu_name
from scripts.support.reports.spread import spread
from scripts.support.training.options import add_run_options, working_folder
from scripts.support.training.runs import Record, append_record, read_records, train_and_score
from scripts.support.training.treebanks import EWT_FILES, LATIN_FILES, TURKISH_FILES, Parts, files_of

from treeparse.data import load_treebank

OUTPUT = Path(__file__).parent / "results" / "experiment_second_order.jsonl"
RUN = ("treebank", "trees", "seed")  # tell the runs of a file apart
MARGIN = {
    "objective": "treeparse.objectives.MaxMargin",
    "optimization.epochs": 3,
    "optimization.steps": 1,
    "optimization.learning_rate": 5e-4,
}
MEAN_FIELD = {
    "model.trees": "nonprojective_siblings",
    "model.decoder": "minimum_risk",
    "objective": "treeparse.objectives.MeanField",
}
METHODS: Mapping[str, Mapping[str, object]] = {
    "nonprojective": {"model.trees": "nonprojective"},
    "projective": {"model.trees": "projective"},
    "siblings": {"model.trees": "siblings"},
    "second_order": {"model.trees": "second_order"},
    "mean_field": MEAN_FIELD,
    "nonprojective_margin": {"model.trees": "nonprojective", **MARGIN},
    "nonprojective_siblings": {"model.trees": "nonprojective_siblings", **MARGIN},
}
STARTS = {"nonprojective_margin": "nonprojective", "nonprojective_siblings": "mean_field"}
FIFTH = slice(None, None, 5)
TREEBANKS = {
    "EWT": Parts(EWT_FILES),
    "Turkish": Parts(TURKISH_FILES),
    "Latin": Parts(LATIN_FILES, slice(-134), slice(-134, None), "train"),
    "EWT-100": Parts(EWT_FILES, slice(100), FIFTH),
    "EWT-1000": Parts(EWT_FILES, slice(1000), FIFTH),
    "EWT-half": Parts(EWT_FILES, half_of_the_heads=True),
}
COLUMNS = {"UAS": "uas", "LAS": "las", "all heads right": "complete_match_unlabeled", "whole trees": "complete_match"}


def experiment(runs: Sequence[tuple[str, ...]], arguments: argparse.Namespace, work: Path) -> None:
    """Make the runs that the output file lacks."""
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    for run in runs:
        name, method, seed = run
        if run in {tuple(str(record[key]) for key in RUN) for record in read_records(arguments.output)}:
            continue
        print(" ".join(run), flush=True)
        treebank = TREEBANKS[name]
        files = files_of(treebank, arguments.treebanks, work / "data")
        gold = [sentence.words for sentence in load_treebank([f"{arguments.treebanks / treebank.files}test.conllu"])]
        options: dict[str, object] = {**files, "seed": seed}
        if method in STARTS:
            start = work / "-".join((name, STARTS[method], seed))
            if not (start / "model").is_dir():  # its folder was a temporary one of a former call
                train_and_score("second_order", {**options, **METHODS[STARTS[method]]}, gold, start)
            options["init_from"] = start / "model"
        scores = train_and_score("second_order", {**options, **METHODS[method]}, gold, work / "-".join(run))
        machine = {"threads": torch.get_num_threads(), "cpu": cpu_name()}
        append_record(arguments.output, {**dict(zip(RUN, run, strict=True)), **scores, **machine})


def table(records: Sequence[Record]) -> Iterator[str]:
    """Markdown: a row for each kind of trees on each treebank."""
    yield f"| treebank | trees | seeds | {' | '.join(COLUMNS)} | minutes |"
    yield "|:--|:--|" + "--:|" * (len(COLUMNS) + 2)
    for treebank, trees in product(TREEBANKS, METHODS):
        runs = [record for record in records if (record["treebank"], record["trees"]) == (treebank, trees)]
        if runs:
            cells = [spread([100 * run[name] for run in runs]) for name in COLUMNS.values()]
            minutes = spread([run["seconds"] / 60 for run in runs])
            yield f"| {treebank} | {trees} | {len(runs)} | {' | '.join(cells)} | {minutes} |"


def main(options: Sequence[str] | None = None) -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TREEBANKS)} (default: all)")
    parser.add_argument("--trees", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", default=["1", "2", "3"], metavar="N", help="default: 1 2 3")
    add_run_options(parser, OUTPUT)
    arguments = parser.parse_args(options)
    if unknown := set(arguments.names) - set(TREEBANKS):
        parser.error(f"unknown treebank {', '.join(sorted(unknown))}: there are {', '.join(TREEBANKS)}")
    with working_folder(arguments, "experiment_second_order") as work:
        names = arguments.names or list(TREEBANKS)
        experiment(list(product(names, arguments.trees, arguments.seeds)), arguments, work)
    print("\n".join(table(read_records(arguments.output))))


if __name__ == "__main__":
    main()
