"""A pretrained transformer on EWT: fine-tuned, with a BiLSTM on top, by adapters, and frozen.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT
    python -m scripts.experiments.experiment_pretrained --model ~/models/all-MiniLM-L6-v2 --threads 1

Words are the gold ones; nothing else of the treebank is read. Each run appends a line to a file of JSON lines once its
test scores are known, and runs that stand there are not repeated; with --work a broken-off run goes on where it was.
The table has the means over seeds on the test set with their standard deviations, and the minutes of one run, dev sets
included.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean

import torch
from scripts.support.reports.markdown import cpu_name
from scripts.support.reports.spread import spread
from scripts.support.training.options import add_run_options, working_folder
from scripts.support.training.runs import Record, append_record, read_records, train_and_score

from treeparse.data import load_treebank

OUTPUT = Path(__file__).parent / "results" / "experiment_pretrained.jsonl"
EWT = "UD_English-EWT/en_ewt-ud-{}.conllu"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
RUN = ("setting", "seed", "model")  # tell the runs of a file apart

# By name: a config, and options that win over it.
SETTINGS: dict[str, tuple[str, Mapping[str, object]]] = {
    "fine-tuned": ("transformer", {}),
    "fine-tuned, BiLSTM on top": ("transformer", {"model.encoder.hidden_size": 256, "model.encoder.char_filters": 80}),
    "adapters of rank 8": ("transformer", {"model.encoder.lora_rank": 8, "model.encoder.learning_rate_factor": 1.0}),
    "frozen, BiLSTM on top": ("frozen", {}),
}


def experiment(arguments: argparse.Namespace, work: Path) -> list[Record]:
    """The records of the runs asked for; those that the file lacks are made and appended."""
    files, output, model = str(arguments.treebanks / EWT), arguments.output, Path(arguments.model).name
    records = {tuple(record[name] for name in RUN): record for record in read_records(output)}
    output.parent.mkdir(parents=True, exist_ok=True)
    gold = [sentence.words for sentence in load_treebank(files.format("test"))]
    data = {f"data.{part}": files.format(part) for part in ("train", "dev")}
    runs = [(setting, seed, model) for setting in arguments.settings for seed in arguments.seeds]
    for run in runs:
        if run in records:
            continue
        setting, seed, _ = run
        print(f"{setting}, seed {seed}", flush=True)
        config, own = SETTINGS[setting]
        cache = {"data.cache": work / "cache"} if config == "frozen" else {}
        options = {**data, **cache, "model.encoder.model": arguments.model, **own, "seed": seed}
        scores = train_and_score(config, options, gold, work / f"{setting}-{seed}".replace(" ", "_").replace(",", ""))
        machine = {"threads": torch.get_num_threads(), "cpu": cpu_name()}
        records[run] = {**dict(zip(RUN, run, strict=True)), **scores, **machine}
        append_record(output, records[run])
    return [records[run] for run in runs]


def table(records: Sequence[Record]) -> Iterator[str]:
    """Markdown: a row a setting."""
    yield "| encoder | seeds | UAS | LAS | minutes | threads | CPU |"
    yield "|:--|--:|--:|--:|--:|--:|:--|"
    for setting in SETTINGS:
        if runs := [record for record in records if record["setting"] == setting]:
            scores = " | ".join(spread([100 * run[name] for run in runs]) for name in ("uas", "las"))
            minutes = mean(run["seconds"] for run in runs) / 60
            yield f"| {setting} | {len(runs)} | {scores} | {minutes:.0f} | {runs[0]['threads']} | {runs[0]['cpu']} |"


def main(options: Sequence[str] | None = None) -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_run_options(parser, OUTPUT)
    parser.add_argument("--model", default=MODEL, help=f"a folder, or a name on the hub (default: {MODEL})")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N", help="default: 1 2 3")
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="NAME", help="; ".join(SETTINGS)
    )
    arguments = parser.parse_args(options)
    with working_folder(arguments, "experiment_pretrained") as work:
        records = experiment(arguments, work)
    print("\n".join(table(records)))


if __name__ == "__main__":
    main()
