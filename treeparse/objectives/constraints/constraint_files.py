"""Files of constraints in YAML, which a linguist can write: an error names the line of every mistake.

A file is a list; each entry names a set of words, the expected share of them, and a kind of head or arc::

    - dependent: {upos: DET}          # among these words; or {word: [the, a]}, a list means any of it; default: all
      head: {upos: NOUN}              # a set of their heads, or root
      direction: left                 # the word is to the left of its head
      probability: 0.9                # or an interval [0.8, 1.0], or at_least: 0.8, or at_most: 0.1
    - dependent: {upos: NOUN}
      head: {upos: VERB}
      label: [nsubj, obj]
      distance: [1, 5]                # words apart; a number alone is exactly that
      probability: 0.6
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from treeparse.data.yaml import at, compose, entries, line_of, read_yaml_text, scalar, shown, texts
from treeparse.errors import DataError, TreeparseError

from .constraint import ROOT, Constraint, Distance, Root, Target, WordSet, direction_named

TARGETS = ("probability", "at_least", "at_most")
KEYS = ("dependent", "head", "direction", "label", "distance", *TARGETS)


def read_constraints(path: str | Path) -> tuple[Constraint, ...]:
    """Read the constraints of a file.

    Raises:
        DataError: for every mistake, with its line.
        OSError: the file cannot be read.
    """
    return parse_constraints(read_yaml_text(path, "constraints"), str(path))


def parse_constraints(text: str, source: str = "constraints") -> tuple[Constraint, ...]:
    """Parse the constraints of a text; errors name ``source``. All else is as for ``read_constraints``."""
    root = compose(text, source)
    if root is None or (isinstance(root, yaml.SequenceNode) and not root.value):
        raise DataError("there is no constraint in it: each is an entry of a list, after '- '", source=source)
    if not isinstance(root, yaml.SequenceNode):
        with at(root, source):
            raise TreeparseError("constraints are a list: begin each of them with '- '")
    lines: dict[tuple[object, ...], int] = {}
    constraints = []
    for node in root.value:
        with at(node, source):
            constraint = _constraint(node, source)
            first = lines.setdefault(constraint.event, line_of(node))
            if first != line_of(node):
                raise TreeparseError(f"constraints must differ, but '{constraint}' is in line {first} too: remove one")
        constraints.append(constraint)
    return tuple(constraints)


def _constraint(node: yaml.Node, source: str) -> Constraint:
    keyed = entries(node, KEYS, "a constraint", source)
    targets = [key for key in TARGETS if key in keyed]
    if not targets:
        raise TreeparseError(f"a constraint must have one target of {', '.join(TARGETS)}, got none")
    if len(targets) > 1:
        raise TreeparseError(
            f"a constraint must have one target, got {targets[0]} and {targets[1]}: for an interval write "
            "'probability: [0.8, 0.9]'"
        )
    readers: dict[str, Callable[[yaml.Node], Any]] = {
        "dependent": partial(_dependent, source=source),
        "head": partial(_head, source=source),
        "direction": lambda value: direction_named(scalar(value)),
        "label": partial(texts, what="label"),
        "distance": _distance,
    }
    values = {}
    for key, value in keyed.items():
        with at(value, source):
            if key in TARGETS:
                values["target"] = _target(key, value)
            else:
                values[key] = readers[key](value)
    return Constraint(**values)


def _target(key: str, node: yaml.Node) -> Target:
    if key == "probability" and isinstance(node, yaml.SequenceNode):
        return Target(*_pair(node, _probability, "an interval must be two probabilities, such as [0.8, 1.0]"))
    value = _probability(node)
    return Target(0.0 if key == "at_most" else value, 1.0 if key == "at_least" else value)


def _probability(node: yaml.Node) -> float:
    text = scalar(node)
    try:
        return float(text)
    except ValueError:
        raise TreeparseError(f"a probability must be a number from 0 to 1, got {shown(node)}") from None


def _dependent(node: yaml.Node, source: str) -> WordSet:
    if isinstance(node, yaml.ScalarNode) and node.value == ROOT:
        raise TreeparseError("dependent must be words, got the root, which has no head: is it the head?")
    return _words(node, "dependent", source)


def _head(node: yaml.Node, source: str) -> WordSet | Root:
    is_root = isinstance(node, yaml.ScalarNode) and node.value == ROOT
    return ROOT if is_root else _words(node, "head", source)


def _words(node: yaml.Node, what: str, source: str) -> WordSet:
    if not isinstance(node, yaml.MappingNode):
        root = "root, " if what == "head" else ""
        raise TreeparseError(f"{what} must be {root}{{upos: NOUN}}, {{word: [a, an]}} or the like, got {shown(node)}")
    if any(key.value == ROOT for key, _ in node.value):
        raise TreeparseError("a set of words has no key root: write 'head: root' without UPOS and word")
    keyed = entries(node, ("upos", "word"), what, source)
    values = {}
    for key, value in keyed.items():
        with at(value, source):
            values[key] = texts(value, key)
            if key == "upos":
                WordSet(upos=values[key])  # so that a mistake is named with this line
    return WordSet(**values)


def _distance(node: yaml.Node) -> Distance:
    if isinstance(node, yaml.SequenceNode):
        return Distance(*_pair(node, _whole, "an interval of distances must be two numbers, such as [1, 5]"))
    return Distance(_whole(node), _whole(node))


def _whole(node: yaml.Node) -> int:
    text = scalar(node)
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise TreeparseError(f"a distance must be a whole number of words, got {shown(node)}")
    return int(text)


def _pair(node: yaml.SequenceNode, read: Any, problem: str) -> Sequence[Any]:
    if len(node.value) != 2:
        raise TreeparseError(problem)
    return [read(end) for end in node.value]


def constraints_to_yaml(constraints: Sequence[Constraint], comments: Sequence[str] = ()) -> str:
    """Return the text of a file of constraints, with an optional comment of one line before each."""
    lines = [f"# {comment}\n" for comment in comments] or [""] * len(constraints)
    style = {"default_flow_style": None, "sort_keys": False, "allow_unicode": True, "width": 1e6}
    entries = [yaml.safe_dump([_plain(constraint)], **style) for constraint in constraints]
    return "".join(line + entry for line, entry in zip(lines, entries, strict=True))


def _plain(constraint: Constraint) -> dict[str, Any]:
    target, distance = constraint.target, constraint.distance
    parts = {
        "dependent": _plain_words(constraint.dependent),
        "head": _plain_words(constraint.head),
        "direction": constraint.direction,
        "label": _one_or_list(constraint.label),
        "distance": distance and _one_or_list((distance.nearest, distance.farthest)),
    }
    if target.most == 1 and not target.is_exact:
        parts["at_least"] = target.least
    elif target.least == 0 and not target.is_exact:
        parts["at_most"] = target.most
    else:
        parts["probability"] = _one_or_list((target.least, target.most))
    return {key: value for key, value in parts.items() if value is not None}


def _plain_words(words: WordSet | str | None) -> Any:
    if not isinstance(words, WordSet):
        return words
    parts = {"upos": _one_or_list(words.upos), "word": _one_or_list(words.word)}
    return {key: value for key, value in parts.items() if value is not None}


def _one_or_list(values: Sequence[Any]) -> Any:
    """Return None for no value, the value if all are equal, and otherwise a list."""
    if not values:
        return None
    return values[0] if len({*values}) == 1 else list(values)
