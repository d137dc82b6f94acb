"""Constraints as YAML, which a linguist can write: an error names the line of every mistake.

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

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from treeparse.data.yaml.nodes import at, compose, entries, line_of, read_yaml_text, scalar, shown, texts
from treeparse.errors import DataError, TreeparseError

from .constraint import ROOT, Constraint, Direction, Distance, Root, Target, WordSet, direction_named

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
    values = {}
    for key, value in keyed.items():
        with at(value, source):
            if key in TARGETS:
                values["target"] = _target(key, value)
            else:
                values[key] = _READERS[key](value, source)
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
    if isinstance(node, yaml.ScalarNode) and node.value == ROOT:
        return ROOT
    return _words(node, "head", source)


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


def _direction(node: yaml.Node, source: str) -> Direction:
    return direction_named(scalar(node))


def _label(node: yaml.Node, source: str) -> tuple[str, ...]:
    return texts(node, "label")


def _distance(node: yaml.Node, source: str) -> Distance:
    if isinstance(node, yaml.SequenceNode):
        return Distance(*_pair(node, _whole, "an interval of distances must be two numbers, such as [1, 5]"))
    return Distance(_whole(node), _whole(node))


_READERS: dict[str, Any] = {
    "dependent": _dependent,
    "head": _head,
    "direction": _direction,
    "label": _label,
    "distance": _distance,
}


def _whole(node: yaml.Node) -> int:
    text = scalar(node)
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise TreeparseError(f"a distance must be a whole number of words, got {shown(node)}")
    return int(text)


def _pair(node: yaml.SequenceNode, read: Any, problem: str) -> Sequence[Any]:
    if len(node.value) != 2:
        raise TreeparseError(problem)
    return [read(each) for each in node.value]
