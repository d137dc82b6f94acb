"""Train the default config on treebanks of very different sizes, beside configs set by hand for each, and compare.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT, UD_Latin-Perseus and UD_Turkish-IMST
    python -m scripts.experiments.experiment_default --threads 2

Of EWT there are three sizes: the first 100 and the first 1,000 training sentences, measured by every fifth dev
sentence, and all. Latin-Perseus has no dev file: the last 134 training sentences are held out, and once more nothing
is. Each run appends a line to a file of JSON lines once its test scores are known, and runs that stand there are not
repeated; with --work a broken-off run goes on where it was. The table has the scores on the test set and the minutes of
training, dev sets included.
"""

import argparse
from collections import ChainMap
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from scripts.support.reports.markdown import cpu_name
from scripts.support.training.fixed import FIXED
from scripts.support.training.options import add_run_options, working_folder
from scripts.support.training.runs import Record, append_record, read_records, train_and_score
from scripts.support.training.treebanks import EWT_FILES, LATIN_FILES, TURKISH_FILES, Parts, files_of

from treeparse.data import load_treebank

OUTPUT = Path(__file__).parent / "results" / "experiment_default.jsonl"
RUN = ("treebank", "setting")  # tell the runs of a file apart
TREEBANKS = {
    "EWT-100": Parts(EWT_FILES, slice(100), slice(None, None, 5)),
    "EWT-1000": Parts(EWT_FILES, slice(1000), slice(None, None, 5)),
    "Latin": Parts(LATIN_FILES, slice(-134), slice(-134, None), "train"),
    "Latin, no dev set": Parts(LATIN_FILES, dev=None),
    "Turkish": Parts(TURKISH_FILES),
    "EWT": Parts(EWT_FILES),
}

# Settings by hand, over the config fast as it was. The first six are for 1,000 sentences, the others for 100.
Settings = dict[str, object]
FEWER: Settings = {"optimization.dev_every": 5}
DROPOUT: Settings = dict.fromkeys(("model.dropout", "model.encoder.dropout", "model.encoder.embedding_dropout"), 0.33)
SMALL: Settings = {"model.encoder.hidden_size": 128, "model.arc_size": 200}
HEADS: Settings = {"objective": "treeparse.objectives.HeadSelection"}


def by_hand(batch_words: int, epochs: int, *others: Settings) -> Settings:
    """Settings of one run."""
    return dict(ChainMap({"data.batch_words": batch_words, "optimization.epochs": epochs}, *others, FIXED["fast"]))


LOWER: Settings = {"optimization.learning_rate": 1e-3}
AVERAGED: Settings = {"optimization.average_decay": 0.995}
SETTINGS: dict[str, dict[str, Settings]] = {
    "EWT-100": {
        "100 epochs of 200 words": by_hand(200, 100, FEWER),
        "150 epochs of 200 words, averaged": by_hand(200, 150, AVERAGED, FEWER),
        "100 epochs of 100 words, averaged, more dropout": by_hand(100, 100, AVERAGED, FEWER, DROPOUT),
        "150 epochs of 300 words, half the learning rate": by_hand(300, 150, FEWER, LOWER),
        "100 epochs of 200 words, head selection": by_hand(200, 100, FEWER, HEADS),
        "150 epochs of 200 words, half the size": by_hand(200, 150, FEWER, SMALL),
    },
    "EWT-1000": {
        "60 epochs of 500 words": by_hand(500, 60),
        "45 epochs of 300 words, averaged, more dropout": by_hand(
            300, 45, {"optimization.average_decay": 0.997}, FEWER, DROPOUT
        ),
        "40 epochs of 500 words, averaged": by_hand(500, 40, AVERAGED, FEWER),
        "40 epochs of 500 words, head selection": by_hand(500, 40, FEWER, HEADS),
        "40 epochs of 500 words, half the size": by_hand(500, 40, FEWER, SMALL),
        "40 epochs of 300 words, half the learning rate": by_hand(300, 40, FEWER, LOWER),
    },
    "Latin": {"fast": FIXED["fast"]},
    "Turkish": {"fast": FIXED["fast"]},
    "EWT": {"fast": FIXED["fast"]},
}


def settings_of(treebank: str) -> dict[str, tuple[str, Settings]]:
    """The runs on a treebank by name: a config, and options that win over it."""
    own = {name: ("fast", options) for name, options in SETTINGS.get(treebank, {}).items()}
    return {"default": ("default", {}), **own}


def experiment(names: Sequence[str], treebanks: Path, output: Path, work: Path) -> list[Record]:
    """The records of all runs on these treebanks; those that ``output`` lacks are made and appended."""
    records = {tuple(record[name] for name in RUN): record for record in read_records(output)}
    output.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        treebank = TREEBANKS[name]
        for setting, (config, options) in settings_of(name).items():
            if (name, setting) in records:
                continue
            print(f"{name}: {setting}", flush=True)
            data = files_of(treebank, treebanks, work / "data")
            gold = [sentence.words for sentence in load_treebank([f"{treebanks / treebank.files}test.conllu"])]
            directory = work / f"{name}-{setting}".replace(" ", "_").replace(",", "")
            scores = train_and_score(config, {**data, **options}, gold, directory)
            machine = {"threads": torch.get_num_threads(), "cpu": cpu_name()}
            records[name, setting] = {**dict(zip(RUN, (name, setting), strict=True)), **scores, **machine}
            append_record(output, records[name, setting])
    return [records[name, setting] for name in names for setting in settings_of(name)]


def table(records: Sequence[Record]) -> Iterator[str]:
    """Markdown: a row a run."""
    yield "| treebank | config | UAS | LAS | minutes | threads | CPU |"
    yield "|:--|:--|--:|--:|--:|--:|:--|"
    for record in records:
        cells = [record["treebank"], record["setting"], f"{100 * record['uas']:.2f}", f"{100 * record['las']:.2f}"]
        yield f"| {' | '.join(cells)} | {record['seconds'] / 60:.1f} | {record['threads']} | {record['cpu']} |"


def main(options: Sequence[str] | None = None) -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TREEBANKS)} (default: all)")
    add_run_options(parser, OUTPUT)
    arguments = parser.parse_args(options)
    if unknown := set(arguments.names) - set(TREEBANKS):
        parser.error(f"unknown treebank {', '.join(sorted(unknown))}: there are {', '.join(TREEBANKS)}")
    with working_folder(arguments, "experiment_default") as work:
        records = experiment(arguments.names or list(TREEBANKS), arguments.treebanks, arguments.output, work)
    print("\n".join(table(records)))


if __name__ == "__main__":
    main()
