"""Constraints as the YAML from which they are read again."""

from collections.abc import Sequence
from typing import Any

import yaml

from .constraint import Constraint, Words


def constraints_to_yaml(constraints: Sequence[Constraint], comments: Sequence[str] = ()) -> str:
    """The text of a file of constraints; a comment of one line, if there is one, stands before each."""
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


def _words(words: Words | str | None) -> Any:
    if not isinstance(words, Words):
        return words
    parts = {"upos": _one_or_list(words.upos), "word": _one_or_list(words.word)}
    return {key: value for key, value in parts.items() if value is not None}


def _one_or_list(values: Sequence[Any]) -> Any:
    """Nothing, a value that stands alone (or again and again), or a list."""
    if not values:
        return None
    return values[0] if len({*values}) == 1 else list(values)
