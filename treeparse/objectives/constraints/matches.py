"""The arcs and labels of a batch that match constraints, and the expected numbers of matching words."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.data.features.padding import padded
from treeparse.errors import TreeparseError, did_you_mean
from treeparse.lazy import cached_property, graph_property
from treeparse.sentence import Sentence
from treeparse.trees import LabeledCRF
from treeparse.trees.batched_trees import BatchedTrees
from treeparse.trees.labels import label_sums

from .constraint import Constraint, WordSet, tags_of


class ConstraintMatches:
    """The arcs and labels that match R constraints in the trees of B sentences.

    Labels are scored only at arcs that match the rest of a constraint. Labels that no constraint distinguishes are
    summed up, in G kinds, so no tensor here has the size of all labels on all arcs.

    Args:
        constraints: R constraints.
        distribution: the distribution of the trees; values are float64 and differentiable in its scores.
        batch: the batch with its sentences and, if a constraint is on labels, the names of labels.

    Raises:
        TreeparseError: for a batch without sentences, for a sentence without UPOS that a constraint reads, and for
            labels that the model does not have.
    """

    def __init__(self, constraints: Sequence[Constraint], distribution: LabeledCRF, batch: Batch) -> None:
        self.trees, self.labels = distribution.arcs.batched, distribution.labels
        nodes = _Nodes(batch)
        dependents = [nodes.of(constraint.dependent) & batch.word_mask() for constraint in constraints]
        self.counts: Tensor = torch.stack(dependents, -1).sum(1).double()  # (B, R), of dependents
        matching = [
            _arcs(constraint, nodes.of(constraint.head), words, self.trees.is_arc)
            for constraint, words in zip(constraints, dependents, strict=True)
        ]
        column = torch.arange(len(matching), device=self.counts.device).repeat_interleave(
            torch.tensor([arcs.shape[1] for arcs in matching], device=self.counts.device)
        )
        entries = torch.cat([column.unsqueeze(0), torch.cat(matching, 1)])  # constraint, item, head, dependent
        sets = label_sets(constraints, batch.label_names, self.labels.count).to(self.counts.device)
        labelled = torch.tensor([bool(constraint.label) for constraint in constraints], device=self.counts.device)[
            entries[0]
        ]
        self.plain, self.labelled = entries[:, ~labelled], entries[:, labelled]
        # A arcs: labels of an arc that several constraints match are scored once.
        self.scored_arcs, self.rows = self.labelled[1:].unique(dim=1, return_inverse=True)
        self.kinds, self.members = sets.unique(dim=1, return_inverse=True)  # (R, G) bool; (L,) the kind of every label

    @graph_property
    def kind_log_probs(self) -> Tensor:
        """Log probabilities ``(A, G)`` of the kinds of labels, given their arcs."""
        item, head, dependent = self.scored_arcs
        if not len(item):
            return self.trees.arcs.new_zeros(0, self.kinds.shape[1])
        if len(item) <= self.trees.arcs[..., 0].numel():
            return self._sums_by_kind(self.labels.at(item, head, dependent))
        # If there are more arcs than words, it costs less to score the labels of all arcs, slice by slice.
        return self.labels.reduce(self._sums_by_kind)[item, head, dependent]

    def _sums_by_kind(self, scores: Tensor) -> Tensor:
        """Turn label scores ``(..., L)`` into log probabilities of kinds ``(..., G)``."""
        log_probs = label_sums.log_probs(scores)
        kinds = range(self.kinds.shape[1])
        return torch.stack(
            [label_sums.log_sum(log_probs.masked_fill(self.members != kind, -torch.inf)) for kind in kinds], -1
        )

    def expectations(self, marginals: Tensor, kind_log_probs: Tensor) -> Tensor:
        """Return the expected numbers of words ``(B, R)`` that match each constraint.

        ``marginals`` ``(B, n+1, n+1)`` are of arcs, ``kind_log_probs`` ``(A, G)`` of kinds of labels given the arcs.
        """
        column, item, head, dependent = torch.cat([self.plain, self.labelled], 1)
        probs = kind_log_probs.exp()[self.rows]
        of_labels = torch.where(self.kinds[self.labelled[0]], probs, 0.0).sum(-1)
        values = marginals[item, head, dependent]
        values = values * torch.cat([torch.ones_like(values[: self.plain.shape[1]]), of_labels])
        items, count = self.counts.shape
        return values.new_zeros(items * count).index_add(0, item * count + column, values).reshape(items, count)

    def lowered(self, arcs: Tensor, kind_log_probs: Tensor, multipliers: Tensor) -> tuple[BatchedTrees, Tensor]:
        """Lower scores where constraints match; return the trees and log probabilities of kinds of labels.

        ``arcs`` are scores ``(B, n+1, n+1)``, labels summed over; ``kind_log_probs`` ``(A, G)`` are given the arcs;
        ``multipliers`` ``(R,)`` are the amounts by which the constraints lower scores.
        """
        column, *matching = self.plain
        arcs = arcs.index_put(tuple(matching), -multipliers[column], accumulate=True)
        shift = multipliers.new_zeros(kind_log_probs.shape)
        column = self.labelled[0]
        shift = shift.index_add(0, self.rows, -multipliers[column].unsqueeze(-1) * self.kinds[column])
        shifted = kind_log_probs + shift
        arcs = arcs.index_put(tuple(self.scored_arcs), label_sums.log_sum(shifted), accumulate=True)
        return self.trees.with_parts(self.trees.parts.with_arcs(arcs)), label_sums.log_probs(shifted)


def label_sets(constraints: Sequence[Constraint], names: Sequence[str], count: int) -> Tensor:
    """Return which labels each constraint allows, ``(R, L)`` bool: all if it names none; raise for unknown names."""
    labels = {label for constraint in constraints for label in constraint.label}
    if labels and len(names) != count:
        raise TreeparseError(
            f"Constraints on labels need the names of all {count} labels, got {len(names)}: set label_names."
        )
    if missing := sorted(labels - {*names}):
        raise TreeparseError(
            f"Labels of constraints must be labels of the model, got {', '.join(missing)}; the model has "
            f"{', '.join(sorted(names))}{did_you_mean(missing[0], names)}"
        )
    if not labels:
        return torch.ones(len(constraints), count, dtype=torch.bool)
    return torch.tensor(
        [[not constraint.label or name in constraint.label for name in names] for constraint in constraints]
    )


class _Nodes:
    """The nodes of a batch's sentences that are in a set of words."""

    def __init__(self, batch: Batch) -> None:
        if len(batch.sentences) != len(batch):
            raise TreeparseError(
                "Constraints need a batch that holds its sentences, got none: they read words and tags."
            )
        self._batch, self._is_word = batch, batch.word_mask()

    def of(self, words: WordSet | str | None) -> Tensor:
        """Return which nodes ``(B, n+1)`` bool are in a set of words, or are the root; None means all nodes."""
        if words is None:
            return torch.ones_like(self._is_word)
        if not isinstance(words, WordSet):
            return (torch.arange(self._is_word.shape[1], device=self._is_word.device) == 0).expand_as(self._is_word)
        tagged = self._tags.among(words.upos) if words.upos else self._is_word
        return tagged & self._forms.among(words.word) if words.word else tagged

    @cached_property
    def _tags(self) -> "_Column":
        return _Column(self._batch, _tags)

    @cached_property
    def _forms(self) -> "_Column":
        return _Column(self._batch, lambda sentence: map(str.lower, sentence.forms))


class _Column:
    """The tags, or the forms, of all words of a batch as numbers from 1; 0 at node 0 and at padding."""

    def __init__(self, batch: Batch, read: Callable[[Sentence], Iterable[str]]) -> None:
        self._ids: dict[str, int] = {}
        rows = [
            [0, *(self._ids.setdefault(name, len(self._ids) + 1) for name in read(sentence))]
            for sentence in batch.sentences
        ]
        self._values = padded(rows).to(batch.lengths.device)

    def among(self, names: Sequence[str]) -> Tensor:
        """Return which nodes ``(B, n+1)`` bool have one of these names."""
        ids = [self._ids.get(name, -1) for name in names]
        return torch.isin(self._values, torch.tensor(ids, device=self._values.device))


def _tags(sentence: Sentence) -> Sequence[str]:
    rule = "Constraints on UPOS need tagged words"
    return tags_of(sentence, rule, "UPOS: tag the text, or leave out such constraints")


def _arcs(constraint: Constraint, heads: Tensor, dependents: Tensor, is_arc: Tensor) -> Tensor:
    """Return item, head and dependent ``(3, arcs)`` of the arcs that match a constraint, whatever their labels.

    ``heads`` and ``dependents``, ``(B, n+1)`` bool, are the nodes that the constraint allows; ``is_arc``,
    ``(B, n+1, n+1)`` bool, has the entries that are arcs.
    """
    position = torch.arange(is_arc.shape[-1], device=is_arc.device)
    apart = position.unsqueeze(-1) - position  # head less dependent
    allowed = torch.ones_like(apart, dtype=torch.bool)
    if constraint.direction or constraint.distance:
        allowed[0] = False
    if constraint.direction:
        allowed &= (apart > 0) == (constraint.direction == "left")
    if constraint.distance:
        allowed &= (apart.abs() >= constraint.distance.nearest) & (apart.abs() <= constraint.distance.farthest)
    return (heads.unsqueeze(-1) & dependents.unsqueeze(-2) & allowed & is_arc).nonzero().T
