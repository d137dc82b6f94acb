"""A parser from half of all heads, beside one from all of them and one from half of the sentences.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT
    python -m scripts.experiments.experiment_partial

In the first, HEAD and DEPREL of a random half of all words of EWT's training set are hidden, and the likelihood sums
over all trees that agree with the others; in the last, every second sentence is left out, so that as many heads are
known. All have the config fast. Each run appends a line to a file of JSON lines, and runs that stand there are not
repeated; with --work a broken-off run goes on where it was. In the end it prints a table.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from scripts.support.reports.markdown import cpu_name
from scripts.support.training.options import add_run_options, working_folder
from scripts.support.training.runs import Record, append_record, read_records, train_and_score
from scripts.support.training.treebanks import hide_half_of_the_heads

from treeparse.data import load_treebank
from treeparse.data.conllu import write_conllu

OUTPUT = Path(__file__).parent / "results" / "experiment_partial.jsonl"
EWT = "UD_English-EWT/en_ewt-ud-{}.conllu"
ALL, HEADS, SENTENCES = "all heads", "half of the heads", "half of the sentences"
SETTINGS = (ALL, HEADS, SENTENCES)


def settings_of(setting: str, treebanks: Path, folder: Path) -> Mapping[str, object]:
    """The data of a run; what is cut is written into the folder."""
    train, dev = (treebanks / EWT.format(part) for part in ("train", "dev"))
    folder.mkdir(parents=True, exist_ok=True)
    if setting == HEADS:
        hide_half_of_the_heads(train, folder / "half-of-the-heads.conllu")
        return {"data.train": folder / "half-of-the-heads.conllu", "data.dev": dev, "data.partial": "true"}
    if setting == SENTENCES:
        write_conllu(folder / "half-of-the-sentences.conllu", load_treebank(train)[::2])
        return {"data.train": folder / "half-of-the-sentences.conllu", "data.dev": dev}
    return {"data.train": train, "data.dev": dev}


def experiment(
    settings: Sequence[str], seed: int, config: str, treebanks: Path, output: Path, work: Path
) -> list[Record]:
    """The records of the runs; those that the output lacks are made and appended."""
    records = {(record["setting"], record["seed"]): record for record in read_records(output)}
    gold = [sentence.words for sentence in load_treebank(treebanks / EWT.format("test"))]
    output.parent.mkdir(parents=True, exist_ok=True)
    for setting in settings:
        if (setting, seed) not in records:
            print(f"{setting}, seed {seed}", flush=True)
            data = settings_of(setting, treebanks, work / "data")
            directory = work / f"{setting}-{seed}".replace(" ", "_")
            scores = train_and_score(config, {"seed": seed, **data}, gold, directory)
            machine = {"threads": torch.get_num_threads(), "cpu": cpu_name()}
            records[setting, seed] = {"setting": setting, "seed": seed, **scores, **machine}
            append_record(output, records[setting, seed])
    return [records[setting, seed] for setting in settings]


def table(records: Sequence[Record]) -> Iterator[str]:
    """Markdown: a row a setting."""
    yield "| training data | UAS | LAS | minutes |"
    yield "|:--|--:|--:|--:|"
    for record in records:
        scores = " | ".join(f"{100 * record[name]:.2f}" for name in ("uas", "las"))
        yield f"| {record['setting']} | {scores} | {record['seconds'] / 60:.1f} |"


def main(options: Sequence[str] | None = None) -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_run_options(parser, OUTPUT)
    parser.add_argument("--config", default="fast", help="a YAML file, or a name from treeparse config (default: fast)")
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, default=SETTINGS, metavar="NAME", help=", ".join(SETTINGS)
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of training (default: 1)")
    arguments = parser.parse_args(options)
    with working_folder(arguments, "experiment_partial") as work:
        records = experiment(
            arguments.settings, arguments.seed, arguments.config, arguments.treebanks, arguments.output, work
        )
    print("\n".join(table(records)))


if __name__ == "__main__":
    main()
