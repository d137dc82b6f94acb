"""Constraints as YAML, which a linguist can write: every mistake is named with its line.

A file is a list; each entry says of which words a share is expected to have what, and the share::

    - dependent: {upos: DET}          # of these words; or {word: [the, a]}, lists mean any of; left out, of all words
      head: {upos: NOUN}              # the same of their heads, or root
      direction: left                 # the word stands to the left of its head
      probability: 0.9                # or an interval [0.8, 1.0], or at_least: 0.8, or at_most: 0.1
    - dependent: {upos: NOUN}
      head: {upos: VERB}
      label: [nsubj, obj]
      distance: [1, 5]                # words apart; a number alone is exactly that
      probability: 0.6
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from treeparse.core import DataError, TreeparseError, did_you_mean
from treeparse.data.yaml_bounds import LONGEST, check_yaml

from .constraint import ROOT, Constraint, Direction, Distance, Root, Target, Words, direction_named

TARGETS = ("probability", "at_least", "at_most")
KEYS = ("dependent", "head", "direction", "label", "distance", *TARGETS)
KINDS = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}


def read_constraints(path: str | Path) -> tuple[Constraint, ...]:
    """The constraints of a file.

    Raises:
        DataError: for every mistake, with its line.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as stream:
        data = stream.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise DataError(f"the file has more than {LONGEST:,} bytes; are these constraints?", source=str(path))
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DataError("the file is not text in UTF-8", source=str(path)) from error
    return parse_constraints(text, str(path))


def parse_constraints(text: str, source: str = "constraints") -> tuple[Constraint, ...]:
    """The constraints of a text; ``source`` is what messages call it, the rest as for ``read_constraints``."""
    root = _compose(text, source)
    if root is None or (isinstance(root, yaml.SequenceNode) and not root.value):
        raise DataError("there is no constraint in it: each is an entry of a list, after '- '", source=source)
    if not isinstance(root, yaml.SequenceNode):
        with _at(root, source):
            raise TreeparseError("constraints are a list: begin each of them with '- '")
    found: dict[tuple[object, ...], int] = {}
    constraints = []
    for node in root.value:
        with _at(node, source):
            constraint = _constraint(node, source)
            first = found.setdefault(constraint.event, _line(node))
            if first != _line(node):
                raise TreeparseError(f"'{constraint}' was constrained in line {first} already: keep one of the two")
        constraints.append(constraint)
    return tuple(constraints)


def _compose(text: str, source: str) -> yaml.Node | None:
    """The tree of a text's YAML, bounded in size."""
    try:
        check_yaml(text)
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        raise DataError(f"this is no YAML: {error.problem or error.context}", source=source, line=line) from error
    except yaml.YAMLError as error:
        problem, *_ = str(error).splitlines()
        raise DataError(problem, source=source) from error


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


@contextmanager
def _at(node: yaml.Node, source: str) -> Iterator[None]:
    """Say of an error where it is, unless that is known better already."""
    try:
        yield
    except DataError:
        raise
    except TreeparseError as error:
        raise DataError(str(error), source=source, line=_line(node)) from error


def _constraint(node: yaml.Node, source: str) -> Constraint:
    entries = _entries(node, KEYS, "a constraint", source)
    targets = [key for key in TARGETS if key in entries]
    if not targets:
        raise TreeparseError(f"the constraint has no target: give one of {', '.join(TARGETS)}")
    if len(targets) > 1:
        raise TreeparseError(
            f"the constraint has two targets, {targets[0]} and {targets[1]}: for an interval write 'probability: "
            "[0.8, 0.9]'"
        )
    values = {}
    for key, value in entries.items():
        with _at(value, source):
            if key in TARGETS:
                values["target"] = _target(key, value)
            else:
                values[key] = _READERS[key](value, source)
    return Constraint(**values)


def _entries(node: yaml.Node, keys: Collection[str], what: str, source: str) -> dict[str, yaml.Node]:
    """The values of a mapping whose keys are among these."""
    if not isinstance(node, yaml.MappingNode):
        raise TreeparseError(f"{what} is {_shown(node)}, but should be a mapping with keys such as {next(iter(keys))}")
    entries = {}
    for key, value in node.value:
        with _at(key, source):
            if not isinstance(key, yaml.ScalarNode) or key.value not in keys:
                problem = f"there is no key {_shown(key)} in {what}, only {', '.join(keys)}"
                raise TreeparseError(problem + did_you_mean(str(key.value), keys))
            entries[key.value] = value
    return entries


def _target(key: str, node: yaml.Node) -> Target:
    if key == "probability" and isinstance(node, yaml.SequenceNode):
        return Target(*_pair(node, _probability, "an interval is two probabilities, such as [0.8, 1.0]"))
    value = _probability(node)
    return Target(0.0 if key == "at_most" else value, 1.0 if key == "at_least" else value)


def _probability(node: yaml.Node) -> float:
    text = _scalar(node)
    try:
        return float(text)
    except ValueError:
        raise TreeparseError(f"a probability is a number from 0 to 1, not {_shown(node)}") from None


def _dependent(node: yaml.Node, source: str) -> Words:
    if isinstance(node, yaml.ScalarNode) and node.value == ROOT:
        raise TreeparseError("the root hangs from nothing, so it is no dependent; is it the head?")
    return _words(node, "dependent", source)


def _head(node: yaml.Node, source: str) -> Words | Root:
    if isinstance(node, yaml.ScalarNode) and node.value == ROOT:
        return ROOT
    return _words(node, "head", source)


def _words(node: yaml.Node, what: str, source: str) -> Words:
    if not isinstance(node, yaml.MappingNode):
        root = "root, or " if what == "head" else ""
        raise TreeparseError(
            f"{what} is {_shown(node)}, but should be {root}such as {{upos: NOUN}} or {{word: [a, an]}}"
        )
    if any(key.value == ROOT for key, _ in node.value):
        raise TreeparseError("the root has neither UPOS nor word: write 'head: root' and nothing else of the head")
    entries = _entries(node, ("upos", "word"), what, source)
    values = {}
    for key, value in entries.items():
        with _at(value, source):
            values[key] = _texts(value, key)
            if key == "upos":
                Words(upos=values[key])  # so that a mistake is named with this line
    return Words(**values)


def _direction(node: yaml.Node, source: str) -> Direction:
    return direction_named(_scalar(node))


def _label(node: yaml.Node, source: str) -> tuple[str, ...]:
    return _texts(node, "label")


def _distance(node: yaml.Node, source: str) -> Distance:
    if isinstance(node, yaml.SequenceNode):
        return Distance(*_pair(node, _whole, "a distance from one number to another is two of them, such as [1, 5]"))
    return Distance(_whole(node), _whole(node))


_READERS: dict[str, Any] = {
    "dependent": _dependent,
    "head": _head,
    "direction": _direction,
    "label": _label,
    "distance": _distance,
}


def _whole(node: yaml.Node) -> int:
    text = _scalar(node)
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise TreeparseError(f"a distance is a whole number of words, not {_shown(node)}")
    return int(text)


def _pair(node: yaml.SequenceNode, read: Any, problem: str) -> Sequence[Any]:
    if len(node.value) != 2:
        raise TreeparseError(problem)
    return [read(each) for each in node.value]


def _texts(node: yaml.Node, what: str) -> tuple[str, ...]:
    """One text or several, as they are written: 'no' and '1' are words too."""
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if not nodes:
        raise TreeparseError(f"the list of {what} is empty: leave it out, or name some")
    return tuple(map(_scalar, nodes))


def _scalar(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise TreeparseError(f"one value should stand here, not {_shown(node)}")
    if not node.value:
        raise TreeparseError("a value is missing here")
    return node.value


def _shown(node: yaml.Node) -> str:
    """What stands there, in short."""
    return KINDS.get(type(node)) or (f"{node.value!r:.50}" if node.value else "empty")
