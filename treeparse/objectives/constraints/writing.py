"""Constraints as YAML text, which `read_constraints` reads."""

from collections.abc import Sequence
from typing import Any

import yaml

from .constraint import Constraint, WordSet


def constraints_to_yaml(constraints: Sequence[Constraint], comments: Sequence[str] = ()) -> str:
    """Return the text of a file of constraints, with an optional comment of one line before each."""
    lines = [""] * len(constraints) if not comments else [f"# {comment}\n" for comment in comments]
    return "".join(line + _entry(constraint) for line, constraint in zip(lines, constraints, strict=True))


def _entry(constraint: Constraint) -> str:
    return yaml.safe_dump([_plain(constraint)], default_flow_style=None, sort_keys=False, allow_unicode=True, width=1e6)


def _plain(constraint: Constraint) -> dict[str, Any]:
    target, distance = constraint.target, constraint.distance
    parts = {
        "dependent": _words(constraint.dependent),
        "head": _words(constraint.head),
        "direction": constraint.direction,
        "label": _one_or_list(constraint.label),
        "distance": distance and _one_or_list((distance.nearest, distance.farthest)),
    }
    if target.is_exact:
        parts["probability"] = target.least
    elif target.most == 1:
        parts["at_least"] = target.least
    elif target.least == 0:
        parts["at_most"] = target.most
    else:
        parts["probability"] = [target.least, target.most]
    return {key: value for key, value in parts.items() if value is not None}


def _words(words: WordSet | str | None) -> Any:
    if not isinstance(words, WordSet):
        return words
    parts = {"upos": _one_or_list(words.upos), "word": _one_or_list(words.word)}
    return {key: value for key, value in parts.items() if value is not None}


def _one_or_list(values: Sequence[Any]) -> Any:
    """Return None for no value, the value if all are equal, and otherwise a list."""
    if not values:
        return None
    return values[0] if len({*values}) == 1 else list(values)
