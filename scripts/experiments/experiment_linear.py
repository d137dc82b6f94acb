"""Train linear models by each algorithm and over each kind of trees, and compare scores, time and speed.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT, UD_Latin-Perseus and UD_Turkish-IMST
    python -m scripts.experiments.experiment_linear --threads 1 EWT Latin Turkish

All tags are gold. The settings are those of the config ``linear`` or, for ``rich``, of ``linear_rich``. The dev file
chooses the epoch; Latin has none, so that the last 134 of its training sentences do. The speed is that of
``Parser.parse`` on the test file, Python's objects included: the best of three passes after a first one. Each run
appends a line to a file of JSON lines, and runs that the file holds are not repeated. UDPipe's scores are those that
its authors publish for UDPipe 1.2 on UD 2.5, an earlier release of these treebanks, with gold tokens and gold
morphology.
"""

import argparse
import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import torch
from scripts.support.reports.markdown import cpu_name
from scripts.support.training.options import add_run_options, working_folder
from scripts.support.training.runs import Record, append_record, read_records, train_and_score
from scripts.support.training.treebanks import EWT_FILES, LATIN_FILES, TURKISH_FILES, Parts, files_of

from treeparse import Parser
from treeparse.data import load_treebank
from treeparse.sentence import Sentence
from treeparse.training.run_directory import RunDirectory, best_record

OUTPUT = Path(__file__).parent / "results" / "experiment_linear.jsonl"
RUN = ("treebank", "method")  # tell the runs of a file apart
METHODS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "perceptron": ("linear", {"learning.algorithm": "perceptron"}),
    "mira": ("linear", {}),
    "mira, 5 trees": ("linear", {"learning.k": 5}),
    "log_linear": ("linear", {"learning.algorithm": "log_linear"}),
    "mira, all trees": ("linear", {"model.trees": "nonprojective"}),
    "mira, siblings": ("linear", {"model.trees": "siblings"}),
    "mira, second order": ("linear", {"model.trees": "second_order"}),
    "rich, arcs": ("linear_rich", {"model.trees": "projective"}),
    "rich": ("linear_rich", {}),
}
TREEBANKS = {
    "EWT": Parts(EWT_FILES),
    "Turkish": Parts(TURKISH_FILES),
    "Latin": Parts(LATIN_FILES, slice(-134), slice(-134, None), "train"),
    "Afrikaans": Parts("UD_Afrikaans-AfriBooms/af_afribooms-ud-"),
    "Maltese": Parts("UD_Maltese-MUDT/mt_mudt-ud-"),
}
UDPIPE = {  # UAS and LAS
    "EWT": (88.1, 86.2),
    "Turkish": (66.9, 61.4),
    "Latin": (67.6, 61.8),
    "Afrikaans": (87.6, 85.0),
    "Maltese": (82.2, 77.9),
}
PASSES = 3


def experiment(runs: Sequence[tuple[str, ...]], arguments: argparse.Namespace, work: Path) -> None:
    """Make the runs that the output file lacks."""
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    for run in runs:
        name, method = run
        if run in {tuple(str(record[key]) for key in RUN) for record in read_records(arguments.output)}:
            continue
        print(": ".join(run), flush=True)
        config, options = METHODS[method]
        treebank, folder = TREEBANKS[name], work / "-".join(run).replace(", ", "-").replace(" ", "-")
        files = files_of(treebank, arguments.treebanks, work / "data")
        gold = [sentence.words for sentence in load_treebank([f"{arguments.treebanks / treebank.files}test.conllu"])]
        scores = train_and_score(config, {**files, **options}, gold, folder)
        best = best_record(RunDirectory(folder).read_history())
        more = {"dev_uas": best.dev_uas, "words_per_second": round(speed(Parser.from_pretrained(folder), gold))}
        machine = {"threads": torch.get_num_threads(), "cpu": cpu_name()}
        append_record(arguments.output, {**dict(zip(RUN, run, strict=True)), **scores, **more, **machine})


def speed(parser: Parser, sentences: Sequence[Sentence]) -> float:
    """Words a second of parsing, as in a process of its own: what training left in memory is no garbage to look for."""
    seconds = []
    gc.collect()
    gc.freeze()
    for _ in range(PASSES + 1):
        started = time.perf_counter()
        parser.parse(sentences)
        seconds.append(time.perf_counter() - started)
    gc.unfreeze()
    return sum(map(len, sentences)) / min(seconds[1:])


def table(records: Sequence[Record]) -> Iterator[str]:
    """Markdown: a row for each method on each treebank."""
    yield "| treebank | method | dev UAS | LAS | test UAS | LAS | training, s | words/s |"
    yield "|:--|:--|--:|--:|--:|--:|--:|--:|"
    for treebank, method in product(TREEBANKS, METHODS):
        for run in (each for each in records if (each["treebank"], each["method"]) == (treebank, method)):
            scores = (f"{100 * run[name]:.2f}" for name in ("dev_uas", "dev_las", "uas", "las"))
            speeds = f"{run['seconds']:.0f} | {run['words_per_second']:,}"
            yield f"| {treebank} | {method} | {' | '.join(scores)} | {speeds} |"
        if method == list(METHODS)[-1] and any(each["treebank"] == treebank for each in records):
            uas, las = UDPIPE[treebank]
            yield f"| {treebank} | UDPipe 1.2, published | | | {uas} | {las} | | |"


def main(options: Sequence[str] | None = None) -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TREEBANKS)} (default: all)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    add_run_options(parser, OUTPUT)
    arguments = parser.parse_args(options)
    if unknown := set(arguments.names) - set(TREEBANKS):
        parser.error(f"unknown treebank {', '.join(sorted(unknown))}: there are {', '.join(TREEBANKS)}")
    with working_folder(arguments, "experiment_linear") as work:
        names = arguments.names or list(TREEBANKS)
        experiment(list(product(names, arguments.methods)), arguments, work)
    print("\n".join(table(read_records(arguments.output))))


if __name__ == "__main__":
    main()
