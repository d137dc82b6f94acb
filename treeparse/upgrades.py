"""Upgrades of configs, runs and model folders that earlier versions wrote: one table a kind.

A new setting is declared by `added_setting`. A class that moves or gets another name adds its old path to
``CLASS_PATHS``. A setting that gets another name adds a line to ``SETTING_KEYS``. Any other change of a model folder
raises ``FORMAT`` and adds a function to ``UPGRADES``. No line is ever removed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, TypeVar, cast

T = TypeVar("T")

BEFORE = "value of before"  # key in the metadata of a field
FORMAT = 1  # of the JSON files in model folders and runs
UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}  # from a format's config to the next format

# Renamed settings of a run, by dotted keys: "model.old" to "model.new". Model folders hold the section "model".
SETTING_KEYS: Mapping[str, str] = {}

# Packages that export classes for configs, each with the modules that hold or held these classes.
_EXPORTED = {
    "treeparse.objectives": {
        "treeparse.objectives.constraints": "GeneralizedExpectation PosteriorRegularization",
        "treeparse.objectives.constraints.generalized_expectation": "GeneralizedExpectation Objective",
        "treeparse.objectives.constraints.posterior_regularization": "PosteriorRegularization Objective",
        "treeparse.objectives.entropy": "Entropy Objective",
        "treeparse.objectives.likelihood": "HeadSelection Objective TreeLikelihood",
        "treeparse.objectives.listed_risk": "KBestRisk Objective Ramp SampledRisk",
        "treeparse.objectives.margin": "MaxMargin Objective",
        "treeparse.objectives.objective": "Objective",
        "treeparse.objectives.reference": "ArcScores Itself Reference ShortArcs",
        "treeparse.objectives.risk": "MinimumRisk Objective",
        "treeparse.objectives.schedule": "Ramp",
        "treeparse.objectives.teaching": "Divergence Itself Objective Reference SilverTrees",
        "treeparse.objectives.weighted_sum": "Objective Weighted WeightedSum",
        "treeparse.model.parser": "Objective",
        "treeparse.model.teacher": "Reference",
    },
    "treeparse.model": {
        "treeparse.model.teacher": "Teacher",
    },
}
CLASS_PATHS: Mapping[str, str] = {
    f"{module}.{name}": f"{package}.{name}"
    for package, modules in _EXPORTED.items()
    for module, names in modules.items()
    for name in names.split()
}

# Dataclasses, whose class path settings may leave out.
DATACLASSES = ("treeparse.objectives.Ramp", "treeparse.objectives.Weighted")

_PATH = re.compile(r"(?<![\w./])treeparse(?:\.\w+)+(?![\w./])")


def present_class_paths(text: str) -> str:
    """Replace former paths of the package's classes by present ones, in a path, an option or a JSON text."""
    return _PATH.sub(lambda match: CLASS_PATHS.get(match[0], match[0]), text)


def upgraded_settings(settings: Any, prefix: str = "") -> Any:
    """Return settings with the present keys and class paths, as new plain data.

    Args:
        settings: nested mappings and lists of plain values; numbers and None are returned unchanged.
        prefix: the dotted key of the settings in the config of a run, with a dot at its end: ``"model."``.
    """
    if isinstance(settings, str):
        return present_class_paths(settings)
    if isinstance(settings, list):
        return [upgraded_settings(item, prefix) for item in settings]
    if not isinstance(settings, Mapping):
        return settings
    if present_class_paths(str(settings.get("class_path"))) in DATACLASSES:
        return upgraded_settings(settings.get("init_args", {}), prefix)
    result: dict[Any, Any] = {}
    for name, value in settings.items():
        value = upgraded_settings(value, f"{prefix}{name}.")
        present = SETTING_KEYS.get(f"{prefix}{name}")
        if present is None:
            result[name] = value
        else:
            _set_nested(result, present.removeprefix(prefix), value)
    return result


def _set_nested(settings: dict[Any, Any], key: str, value: Any) -> None:
    *sections, name = key.split(".")
    for section in sections:
        settings = settings.setdefault(section, {})
    settings[name] = value


def added_setting(default: T, *, before: T) -> T:
    """Declare a setting, as a dataclass field, that files of earlier versions lack.

    Such files are read as if they held ``before``, the behaviour of those versions. ``default`` may change; ``before``
    must never change.
    """
    return cast(T, field(default=default, metadata={BEFORE: before}))


def values_of_before(settings: Any) -> dict[str, Any]:
    """Return the value of each setting of a dataclass, or of its instance, that files of earlier versions lack."""
    return {each.name: each.metadata[BEFORE] for each in fields(settings) if BEFORE in each.metadata}
