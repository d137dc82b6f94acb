"""Three parsers alone, as one by each way of combining them, and a parser of their size that learns from them.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT
    python -m scripts.experiments.experiment_ensemble --models runs/ensemble

The parsers have the config fast and differ in their seeds alone. They are trained on EWT unless their folders,
fast-1/model and so on, are there. The last ones have the first one's seed and the objective of the config distill: the
cross-entropy from the mean of the others' distributions over the trees of the same sentences, and the likelihood of the
gold trees. One starts from nothing, fast-distilled/model, another, fast-continued/model, from the first one's weights,
at half the learning rate and for fewer epochs. With --text there is a third, fast-text/model: it starts from the first
one's weights too, and the others speak of this text besides, of twice as many words an epoch as there are in trees. The
figures in the results are of MASC (anc.org): half a million words of letters, mail, news, talk and fiction, a sentence
a line, without the 43 that stand in EWT's dev or test set:

    python -m nltk.downloader -d nltk masc_tagged && unzip nltk/corpora/masc_tagged.zip
    find masc_tagged -name '*.txt' -exec cat {} + | sed -E 's/_[^_ ]+( |$)/ /g' | awk 'NF > 2 && NF <= 60' |
        sort -u | shuf --random-source=nltk/corpora/masc_tagged.zip > masc.txt

Each result appends a line to a file of JSON lines, and those that stand there are not repeated. In the end it prints a
table.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
import yaml
from scripts.support.reports.markdown import cpu_name
from scripts.support.training.options import add_run_options, working_folder
from scripts.support.training.runs import Record, append_record, read_records, scores_of, train_and_score

from treeparse.data import load_treebank
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.names import COMBINATIONS
from treeparse.shipped import shipped_files

OUTPUT = Path(__file__).parent / "results" / "experiment_ensemble.jsonl"
EWT = "UD_English-EWT/en_ewt-ud-{}.conllu"
ALONE, DISTILLED, CONTINUED = "one model", "distilled", "distilled, from the first one on"
WITH_TEXT = "distilled with more text, from the first one on"
# Of what starts from trained weights.
CONTINUING: Mapping[str, object] = {"optimization.learning_rate": 1e-3, "optimization.epochs": 10}
CONTINUING_WITH_TEXT = {**CONTINUING, "optimization.epochs": 8, "data.unlabelled_ratio": 2.0}
SETTINGS = (ALONE, *COMBINATIONS, DISTILLED, CONTINUED, WITH_TEXT)


def distilling(teachers: Sequence[Path]) -> Mapping[str, object]:
    """The objective of the config distill, as options, with these teachers."""
    objective = yaml.safe_load(shipped_files()["distill"].read_text(encoding="utf-8"))["objective"]
    [divergence, _] = objective["init_args"]["terms"]
    reference = divergence["objective"]["init_args"]["reference"]
    reference["init_args"]["models"] = [str(teacher) for teacher in teachers]
    return {
        "objective.class_path": objective["class_path"],
        "objective.init_args.terms": json.dumps(objective["init_args"]["terms"]),
    }


class Experiment:
    """The results, made where a file lacks them; a setting's seeds are those of the models in it."""

    def __init__(
        self, config: str, seeds: Sequence[int], treebanks: Path, output: Path, models: Path, text: Path | None
    ) -> None:
        self.config, self.seeds, self.output, self.models, self.text = config, tuple(seeds), output, models, text
        self.name = Path(config).stem
        self.data = {f"data.{part}": treebanks / EWT.format(part) for part in ("train", "dev")}
        self.gold = [sentence.words for sentence in load_treebank(treebanks / EWT.format("test"))]
        self.records = {(each["config"], each["setting"], tuple(each["seeds"])): each for each in read_records(output)}
        output.parent.mkdir(parents=True, exist_ok=True)

    def results(self, settings: Sequence[str]) -> list[Record]:
        """The records of the settings, in order."""
        runs = [(name, seeds) for name in settings for seeds in self._seeds_of(name)]
        for setting, seeds in runs:
            if (self.name, setting, seeds) not in self.records:
                print(f"{setting}, seeds {', '.join(map(str, seeds))}", flush=True)
                run = {"config": self.name, "setting": setting, "seeds": seeds}
                machine = {"threads": torch.get_num_threads(), "cpu": cpu_name()}
                self.records[self.name, setting, seeds] = {**run, **self._scores(setting, seeds), **machine}
                append_record(self.output, self.records[self.name, setting, seeds])
        return [self.records[self.name, *run] for run in runs]

    def _seeds_of(self, setting: str) -> list[tuple[int, ...]]:
        return [(seed,) for seed in self.seeds] if setting == ALONE else [self.seeds]

    def _scores(self, setting: str, seeds: Sequence[int]) -> Record:
        if setting == ALONE:
            return self._trained(str(seeds[0]), {"seed": seeds[0]})
        folders = [self._model(str(seed)) for seed in seeds]
        for seed, folder in zip(seeds, folders, strict=True):
            if not folder.is_dir():
                self._trained(str(seed), {"seed": seed})
        if setting == DISTILLED:
            return self._trained("distilled", {"seed": seeds[0], **distilling(folders)})
        start = {"seed": seeds[0], "init_from": folders[0], **distilling(folders)}
        if setting == CONTINUED:
            return self._trained("continued", {**start, **CONTINUING})
        if setting == WITH_TEXT:
            if self.text is None and not self._model("text").is_dir():
                raise TreeparseError("The setting with more text needs it: name the file as --text.")
            return self._trained("text", {**start, **CONTINUING_WITH_TEXT, "data.unlabelled": self.text})
        return scores_of(Ensemble.from_pretrained(folders, setting), self.gold)

    def _trained(self, name: str, options: Mapping[str, object]) -> Record:
        """The scores of a model, which is trained if its folder is not there."""
        if self._model(name).is_dir():
            return scores_of(Parser.from_pretrained(self._model(name)), self.gold)
        return train_and_score(self.config, {**self.data, **options}, self.gold, self._model(name).parent)

    def _model(self, name: str) -> Path:
        return self.models / f"{self.name}-{name}" / "model"


def table(records: Sequence[Record]) -> Iterator[str]:
    """Markdown: a row a result, with what it gains in LAS over the mean of the models alone."""
    alone = [record["las"] for record in records if record["setting"] == ALONE]
    yield "| parser | seeds | UAS | LAS | gain |"
    yield "|:--|:--|--:|--:|--:|"
    for record in records:
        scores = " | ".join(f"{100 * record[name]:.2f}" for name in ("uas", "las"))
        gain = f"{100 * (record['las'] - sum(alone) / len(alone)):+.2f}" if alone else ""
        yield f"| {record['setting']} | {', '.join(map(str, record['seeds']))} | {scores} | {gain} |"


def main(options: Sequence[str] | None = None) -> None:
    """Make what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_run_options(parser, OUTPUT)
    parser.add_argument("--models", type=Path, metavar="DIR", help="where the models are, or go (default: as --work)")
    parser.add_argument("--config", default="fast", help="a YAML file, or a name from treeparse config (default: fast)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N", help="default: 1 2 3")
    parser.add_argument(
        "--text", type=Path, metavar="FILE", help="more text for the three: a tokenised sentence a line"
    )
    names = f"{', '.join(SETTINGS)} (default: all, the last one with --text)"
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, metavar="NAME", help=names)
    arguments = parser.parse_args(options)
    settings = arguments.settings or (SETTINGS if arguments.text else SETTINGS[:-1])
    with working_folder(arguments, "experiment_ensemble") as work:
        models = arguments.models or work
        given = (arguments.config, arguments.seeds, arguments.treebanks, arguments.output, models, arguments.text)
        records = Experiment(*given).results(settings)
    print("\n".join(table(records)))


if __name__ == "__main__":
    main()
