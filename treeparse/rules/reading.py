"""Rules as YAML that a linguist can write; errors name the line of every mistake.

A file has any of these keys::

    at_most_one:                      # a head has at most one dependent with one of these labels
      - [nsubj, csubj]                # a name matches its subtypes: nsubj:pass too
      - obj
      - {labels: [aux], except: ["aux:pass"]}
    forbidden:                        # no word with the label dependent hangs from a word with the label head
      - {head: [case, mark], dependent: [nsubj, obj]}
      - {head: punct, dependent: {labels: nsubj, except: "nsubj:outer"}}
    root_upos: [VERB, NOUN, ADJ]      # only words of these UPOS hang from the root, if the sentence has any
    trees: projective                 # no arcs cross
"""

from pathlib import Path
from typing import Any

import yaml

from treeparse.data.yaml.nodes import at, compose, entries, line_of, read_yaml_text, scalar, shown, texts
from treeparse.errors import DataError, TreeparseError
from treeparse.rules.labels import LabelSet
from treeparse.rules.rules import Rules
from treeparse.rules.violations import AtMostOne, ForbiddenPair, RootTags, Rule

KEYS = ("at_most_one", "forbidden", "root_upos", "trees")


def read_rules(path: str | Path) -> Rules:
    """Return the rules of a file.

    Raises:
        DataError: if the file has a mistake; it names the line.
        OSError: if the file cannot be read.
    """
    return parse_rules(read_yaml_text(path, "rules"), str(path))


def parse_rules(text: str, source: str = "rules") -> Rules:
    """Return the rules of a text; ``source`` is its name in messages; otherwise as ``read_rules``."""
    root = compose(text, source)
    if root is None or (isinstance(root, yaml.MappingNode) and not root.value):
        raise DataError(f"there is no rule in it: give one of {', '.join(KEYS)}", source=source)
    rules: list[Rule] = []
    trees = None
    with at(root, source):
        for key, node in entries(root, KEYS, "a file of rules", source).items():
            if key == "trees":
                trees = _trees(node, source)
            elif key == "root_upos":
                rules.append(_root_tags(node, source))
            else:
                rules += _each(key, node, source)
    return Rules(tuple(rules), trees, source)


def _trees(node: yaml.Node, source: str) -> Any:
    with at(node, source):
        if scalar(node) != "projective":
            raise TreeparseError(f"trees are {shown(node)}, but can only be projective: leave it out for all trees")
    return "projective"


def _root_tags(node: yaml.Node, source: str) -> RootTags:
    with at(node, source):
        return RootTags(texts(node, "root_upos"), line_of(node))


def _each(key: str, node: yaml.Node, source: str) -> list[Rule]:
    """Return the rules of one kind from their list."""
    with at(node, source):
        if not isinstance(node, yaml.SequenceNode):
            raise TreeparseError(f"{key} is {shown(node)}, but should be a list: begin each rule of it with '- '")
        if not node.value:
            raise TreeparseError(f"the list of {key} is empty: leave it out, or begin each rule of it with '- '")
    return [_READERS[key](rule, source) for rule in node.value]


def _at_most_one(node: yaml.Node, source: str) -> AtMostOne:
    return AtMostOne(_labels(node, source), line_of(node))


def _forbidden(node: yaml.Node, source: str) -> ForbiddenPair:
    with at(node, source):
        keyed = entries(node, ("head", "dependent"), "a forbidden pair", source)
        for key in ("head", "dependent"):
            if key not in keyed:
                raise TreeparseError(f"a forbidden pair lacks {key}: give head and dependent, the labels of both arcs")
    return ForbiddenPair(_labels(keyed["head"], source), _labels(keyed["dependent"], source), line_of(node))


def _labels(node: yaml.Node, source: str) -> LabelSet:
    with at(node, source):
        if not isinstance(node, yaml.MappingNode):
            return LabelSet(texts(node, "labels"))
        keyed = entries(node, ("labels", "except"), "a set of labels", source)
        if "labels" not in keyed:
            raise TreeparseError("a set of labels lacks labels: give them, and except if you like")
        return LabelSet(*(texts(value, key) for key, value in sorted(keyed.items(), reverse=True)))


_READERS: dict[str, Any] = {"at_most_one": _at_most_one, "forbidden": _forbidden}
