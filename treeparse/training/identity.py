"""The identity of a run: the settings and digests that its outcome depends on, compared at resumption."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from treeparse.data.batches.mixing import ALL_LABELLED, TrainingMix
from treeparse.data.columns import COLUMNS, Column, column_named
from treeparse.data.features.indexer import Indexer
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence
from treeparse.training.resolve import batches_per_step
from treeparse.training.train_config import ResolvedConfig
from treeparse.training.trainer import BINDING

# Settings that change no bit of the outcome: a run may resume with other values.
FREE_SETTINGS = {
    "": ("output",),
    "data": ("train", "treebanks", "dev", "train_on_dev", "unlabelled", "vectors", "workers", "start_method"),
    "optimization": ("steps",),  # the epochs count
}


def run_identity(
    config: ResolvedConfig,
    indexer: Indexer,
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    mix: TrainingMix = ALL_LABELLED,
    processes: int = 1,
) -> dict[str, Any]:
    """Return what a run's outcome depends on: its settings, and digests of its sentences and vocabularies."""
    settings = _binding(config.to_dict(), processes)
    others = [column_named(name) for name in indexer.features.tag_columns() if name not in COLUMNS]
    digests: dict[str, Any] = {
        "sentences of data.train": _digest(_columns(train, others)),
        "sentences of data.dev": _digest(_columns(dev, others)),
        "vocabulary": _digest([indexer.to_json()]),
    }
    if mix.draw is not None:
        digests["treebanks of data.train"] = _digest([mix.draw])
    if mix.unlabelled is not None:
        digests["files of data.unlabelled"] = mix.unlabelled.digests()
    return {"settings": settings, "digests": digests}


def _binding(settings: dict[str, Any], processes: int) -> dict[str, Any]:
    """Remove the free settings; replace the folder of the cache by whether there is one, and devices by batches."""
    for section, names in FREE_SETTINGS.items():
        for name in names:
            del (settings[section] if section else settings)[name]
    data = settings["data"]  # cached vectors are rounded, whatever the folder
    data["cache"] = bool(data["cache"])
    trainer = settings["trainer"]
    settings["trainer"] = {name: trainer[name] for name in BINDING if name in trainer}
    settings["trainer"]["batches_per_step"] = batches_per_step(trainer, processes)
    return settings


def _columns(sentences: Sequence[Sentence], others: Sequence[Column]) -> Iterator[object]:
    """Yield the columns of each sentence on which training may depend; ``others`` are those that the model reads."""
    for sentence in sentences:
        trees = sentence.heads, sentence.labels, sentence.allowed
        yield sentence.forms, *(column.values(sentence) for column in (*COLUMNS.values(), *others)), *trees


def _digest(items: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for item in items:
        digest.update(repr(item).encode() + b"\n")
    return digest.hexdigest()


def check_identity(before: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    """Raise unless a run with the identity ``before`` may resume with the identity ``now``.

    The patience may change, and with a constant learning rate or a linear model the number of epochs too, because past
    steps are then the same under the new settings.
    """
    earlier, settings = before["settings"], deepcopy(dict(now["settings"]))
    constant = settings["optimization"]["schedule"] == "constant"
    for name in ("patience", "epochs") if constant else ("patience",):
        settings["optimization"][name] = earlier["optimization"].get(name)
    if "learning" in settings:  # the steps of a linear model do not depend on their number
        settings["learning"] |= {name: earlier.get("learning", {}).get(name) for name in ("epochs", "patience")}
    problems = differing_settings(earlier, settings)
    only_budget = [problem.split()[0] for problem in problems] == ["optimization.epochs"]
    old_digests, digests = before["digests"], now["digests"]
    problems += [
        f"the {name} changed" for name in {**digests, **old_digests} if old_digests.get(name) != digests.get(name)
    ]
    if only_budget and len(problems) == 1:
        raise TreeparseError(
            f"The run in {path} cannot get another budget ({problems[0]}): with its schedule, "
            f"{settings['optimization']['schedule']}, the learning rate of all steps, past ones too, depends on it. "
            f"Train on from its model by --init-from {path}/model under another --output; the budget of a run with "
            "--optimization.schedule constant may be raised."
        )
    if problems:
        raise TreeparseError(
            f"The run in {path} cannot resume with other settings or data: {'; '.join(problems)}. "
            "Resume it with its own, or start another run under another --output."
        )


def differing_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe the values that differ between two configs as plain data: ``"optimization.epochs was 3 and is 4"``."""
    flat_before, flat_now = flattened(before), flattened(now)
    return [
        f"{key} was {_shown(flat_before, key)} and is {_shown(flat_now, key)}"
        for key in sorted(flat_before.keys() | flat_now.keys())
        if flat_before.get(key) != flat_now.get(key)
    ]


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _shown(flat: Mapping[str, Any], key: str) -> str:
    return json.dumps(flat[key], ensure_ascii=False) if key in flat else "absent"
