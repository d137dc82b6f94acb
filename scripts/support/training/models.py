"""Parsers of several treebanks, trained where they are missing.

Models and cut treebanks lie in one folder: ``fast-TreeLikelihood-EWT/model``, ``data/la_perseus-ud-train-1200.conllu``.
"""

from pathlib import Path

from scripts.support.training.treebanks import Treebank, part_of

from treeparse.model import Parser
from treeparse.shipped import shipped_files
from treeparse.training import load_config, train


def trained_parser(treebank: Treebank, treebanks: Path, models: Path, config: str, objective: str) -> Parser:
    """The parser in the folder of models; it is trained, or its broken-off run is continued, if it is not there."""
    run = models / f"{Path(config).stem}-{objective}-{treebank.name}"
    if not (run / "model").is_dir():
        path = Path(config) if Path(config).is_file() else shipped_files().get(config, Path(config))
        options = {
            "output": run,
            "objective": f"treeparse.objectives.{objective}",
            "data.train": part_of(treebanks / treebank.train, slice(treebank.train_stop), models / "data"),
            "data.dev": part_of(treebanks / treebank.dev, slice(treebank.dev_start, None), models / "data"),
        }
        train(load_config(path, [f"--{key}={value}" for key, value in options.items()]), resume=True)
    return Parser.from_pretrained(run / "model")
