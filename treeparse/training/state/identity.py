"""What fixes the outcome of a run, and whether a run may go on under the settings and data it is resumed with."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from treeparse.data.batches.mixing import PLAIN, Mixture
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence
from treeparse.setting_fields import values_of_before
from treeparse.training.settings.config import TrainConfig
from treeparse.training.settings.reading import differing_settings

# Settings that change no bit of the outcome: a run may be resumed under others.
FREE_SETTINGS = {
    "": ("output",),
    "data": ("train", "dev", "unlabelled", "vectors", "workers", "start_method"),
    "optimization": ("steps",),  # the epochs that they ask for count
    "trainer": ("device",),
}


def run_identity(
    config: TrainConfig,
    vocabulary: object,
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    mixture: Mixture = PLAIN,
) -> dict[str, Any]:
    """What fixes a run's outcome: its settings, and digests of its sentences and vocabularies."""
    settings = _binding(config.to_dict())
    digests = {
        "sentences of data.train": _digest(train),
        "sentences of data.dev": _digest(dev),
        "vocabulary": _digest([vocabulary]),
    }
    if mixture.draw is not None:
        digests["treebanks of data.train"] = _digest([mixture.draw])
    if mixture.unlabelled is not None:
        digests["files of data.unlabelled"] = _digest(mixture.unlabelled.digests())
    return {"settings": settings, "digests": digests}


def _binding(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without those that are free; of the cache, whether there is one."""
    for section, names in FREE_SETTINGS.items():
        for name in names:
            (settings[section] if section else settings).pop(name, None)
    data = settings["data"]  # what is kept in a cache is rounded, wherever it lies
    data["cache"] = bool(data.get("cache"))
    return settings


def _digest(items: Sequence[object]) -> str:
    digest = hashlib.sha256()
    for item in items:
        digest.update(_written(item).encode() + b"\n")
    return digest.hexdigest()


def _written(item: object) -> str:
    """An item as text: as earlier versions wrote it, so that a sentence shows what came later only where it has it."""
    text = repr(item)
    return text.removesuffix(", allowed=None)") + ")" if isinstance(item, Sentence) and item.allowed is None else text


def check_identity(before: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    """Raise unless a run that began as ``before`` may go on as ``now``.

    Its patience may change, and its epochs too where the learning rate is constant: past steps are then what they would
    have been under the new settings.
    """
    earlier, settings = _binding(deepcopy(dict(before["settings"]))), deepcopy(dict(now["settings"]))
    constant = settings["optimization"]["schedule"] == "constant"
    for name in ("patience", "epochs") if constant else ("patience",):
        settings["optimization"][name] = earlier["optimization"].get(name)
    problems = differing_settings(earlier, settings)
    only_budget = [problem.split()[0] for problem in problems] == ["optimization.epochs"]
    digests, found = before["digests"], now["digests"]
    problems += [f"the {name} changed" for name in {**found, **digests} if digests.get(name) != found.get(name)]
    if only_budget and len(problems) == 1:
        raise TreeparseError(
            f"The run in {path} cannot get another budget ({problems[0]}): by its schedule, "
            f"{settings['optimization']['schedule']}, the learning rate of all its steps, past ones too, hangs on it. "
            f"Train on from its model by --init-from {path}/model under another --output; the budget of a run with "
            "--optimization.schedule constant may be raised."
        )
    if problems:
        raise TreeparseError(
            f"The run in {path} cannot go on with other settings or data: {'; '.join(problems)}. "
            "Resume it with its own, or start another run under another --output."
        )


def with_values_of_before(settings: Mapping[str, Any], config: Any) -> dict[str, Any]:
    """The settings of an earlier run, with what they lack because it came later.

    Args:
        settings: of all a run, or of one section, as plain data.
        config: the present settings, a dataclass, which say what there is.
    """
    nested = {name: value for name, value in vars(config).items() if is_dataclass(value)}
    before = json.dumps(values_of_before(config), default=asdict)
    found = json.loads(before) | settings  # with lists for tuples, as in settings
    sections = {name: found[name] for name in nested if isinstance(found.get(name), Mapping)}
    return found | {name: with_values_of_before(values, nested[name]) for name, values in sections.items()}
