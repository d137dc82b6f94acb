"""The weights of the features by which a linear model scores an arc, the other parts of a tree, and a label."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from treeparse.errors import TreeparseError
from treeparse.feature_templates import BETWEEN, ROLES, AttributeHashes, Template
from treeparse.kernels.linear.updates import WeightedParts, feature_vectors
from treeparse.model.linear_scorer import LinearScorer, byte_table, nodes_of
from treeparse.model.parser import Parser
from treeparse.sentence import Sentence

ABSENT = "none"


class FeatureWeight(NamedTuple):
    """A feature, as the attributes that it has: ``h.upos=VERB d.form=her left``, and its weight."""

    feature: str
    weight: float


def part_weights(parser: Parser, sentence: Sentence, heads: Sequence[int], word: int) -> list[FeatureWeight]:
    """Return all features of the parts of a tree that belong to a word, from 1: its arc, and its other parts if any.

    Raises:
        TreeparseError: the parser is not linear.
    """
    explained = _Explained(parser, sentence)
    cells = [heads[word - 1] * explained.size + word]
    tree = torch.tensor([[-1, *heads]])
    for kind in parser.config.tree_family.part_kinds:
        cells += kind.of_trees(tree, explained.lengths)[:, word].tolist()
    names = ("arcs", *explained.scorer.kinds)
    return [
        weight for name, cell in zip(names, cells, strict=True) if cell >= 0 for weight in explained.of_part(name, cell)
    ]


def label_weights(parser: Parser, sentence: Sentence, head: int, word: int, label: str) -> list[FeatureWeight]:
    """Return all features of an arc and their weights for a label; otherwise as `part_weights`."""
    explained = _Explained(parser, sentence)
    if label not in parser.label_names:
        raise TreeparseError(f"The model has no label {label!r:.50}.")
    return explained.of_part("labels", head * explained.size + word, parser.label_names.index(label))


class _Explained:
    """A sentence whose features are named."""

    def __init__(self, parser: Parser, sentence: Sentence) -> None:
        scorer, features = parser.scorer, parser.indexer.features
        if not isinstance(scorer, LinearScorer) or not isinstance(features, AttributeHashes):
            raise TreeparseError("Only a linear model (model.scorer LinearConfig) has weights of features.")
        batch = parser.indexer.collate([sentence])
        self.scorer, self.size, self.lengths = scorer, len(sentence) + 1, batch.lengths
        self.nodes, self.values = nodes_of(batch), features.values(sentence)

    def of_part(self, kind: str, cell: int, label: int | None = None) -> list[FeatureWeight]:
        """Return the features of one part, by its index in flattened scores."""
        weights, scale = (self.scorer.parts, 0) if label is None else (self.scorer.labels, 1)
        table = byte_table(weights, float(self.scorer.scales[scale]))
        is_arc = kind in ("arcs", "labels")
        one = np.zeros(1, np.int64), np.array([cell]), np.zeros(1, np.int64), np.ones(1, np.float32)
        parts = WeightedParts(*one, self.scorer.arrays[kind], is_arc)
        indices = feature_vectors(self.nodes, self.lengths.numpy(), [parts], 1, table.values).indices
        bytes_ = table.values[indices] if label is None else table.values[indices, label]
        nodes = (cell // self.size, cell % self.size)
        if not is_arc:
            nodes = (cell // self.size**2, cell // self.size % self.size, cell % self.size)
        texts = [text for template in self.scorer.templates[kind] for text in self._texts(template, nodes)]
        values = torch.from_numpy(bytes_).view(weights.dtype).float() * float(table.scale)
        return [FeatureWeight(*pair) for pair in zip(texts, values.tolist(), strict=True)]

    def _texts(self, template: Template, nodes: tuple[int, ...]) -> list[str]:
        """Return the features of a template, in the order of the kernel."""
        head, dependent = nodes[:2]
        step = 1 if dependent > head else -1
        between = [slot.attribute for slot in template.slots if slot.role == BETWEEN]
        values = [""]
        if between:
            inner = range(head + step, dependent, step)
            values = list(dict.fromkeys(self.values[node][between[0]] for node in inner))
        last = nodes[2] if len(nodes) == 3 else head
        distance = [f"distance={abs(dependent - last)}"] if template.distance else []
        side = ["right" if dependent > head else "left"]
        return [" ".join([*self._slots(template, nodes, value), *distance, *side]) for value in values]

    def _slots(self, template: Template, nodes: tuple[int, ...], between: str) -> list[str]:
        texts = []
        for slot in template.slots:
            value = between
            if slot.role != BETWEEN:
                role = ROLES[slot.role]
                at = nodes[role] + slot.offset
                is_absent = role == ROLES["s"] and nodes[role] == nodes[0]
                value = ABSENT if is_absent or not 0 <= at < self.size else self.values[at][slot.attribute]
            texts.append(f"{slot}={value}")
        return texts
