"""Training runs of experiments: each is scored on a test set and stands as one line in a file of JSON lines."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from treeparse.data.parses import with_parses
from treeparse.metrics import attachment_scores
from treeparse.model import Ensemble, Parser
from treeparse.sentence import Sentence
from treeparse.shipped import shipped_files
from treeparse.training import load_config, train

Record = Mapping[str, Any]
SCORES = ("uas", "las", "clas", "complete_match_unlabeled", "complete_match")


def train_and_score(config: str, options: Mapping[str, object], gold: Sequence[Sentence], directory: Path) -> Record:
    """Train one parser, or go on with the run in the directory, and score it against gold trees.

    Args:
        config: a YAML file or the name of a shipped config.
        options: dotted settings, which win over the config's.
        gold: the test set.
        directory: the folder of the run.
    """
    path = Path(config) if Path(config).is_file() else shipped_files().get(config, Path(config))
    settings = {**options, "output": directory}
    train(load_config(path, [f"--{key}={value}" for key, value in settings.items()]), resume=True)
    return scores_of_run(directory, gold)


def scores_of_run(directory: Path, gold: Sequence[Sentence]) -> Record:
    """How well the model of a finished run parses the words of gold trees, its dev LAS, and the seconds it took."""
    with (directory / "metrics.csv").open(encoding="utf-8", newline="") as file:
        epochs = list(csv.DictReader(file))
    return {
        **scores_of(Parser.from_pretrained(directory), gold),
        "dev_las": max((round(float(epoch["dev_las"]), 6) for epoch in epochs if epoch["dev_las"]), default=None),
        "seconds": round(sum(float(epoch["seconds"]) for epoch in epochs), 1),
    }


def scores_of(parser: Parser | Ensemble, gold: Sequence[Sentence]) -> Record:
    """How well a parser parses the words of gold trees."""
    parses = parser.parse(gold)
    system = with_parses(gold, parses)
    scores = attachment_scores(gold, system)
    return {name: round(getattr(scores, name), 6) for name in SCORES}


def read_records(path: Path) -> list[Record]:
    """The runs of a file, none if there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def append_record(path: Path, record: Record) -> None:
    """Add a line, in one piece."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
