"""Where the trees of a batch can meet constraints, and in how many words they are expected to."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.data.features.padding import padded
from treeparse.errors import TreeparseError, did_you_mean
from treeparse.sentence import EMPTY, Sentence
from treeparse.trees import LabeledCRF
from treeparse.trees.flat import FlatTrees
from treeparse.trees.labels import sums

from .constraint import Constraint, Words


class Features:
    """What R constraints look at in the trees of B sentences: arcs that match, and labels on these.

    Labels are looked up at arcs that match the rest of a constraint, and summed over the kinds of labels that no
    constraint tells apart, G of them: nothing here is of the size of all labels on all arcs.

    Args:
        constraints: R of them.
        distribution: of the trees; values are float64 and differentiable in its scores.
        batch: with its sentences and, if a constraint is on labels, their names.

    Raises:
        TreeparseError: for a batch without sentences, a sentence without UPOS that a constraint looks at, and labels
            that the model does not have.
    """

    def __init__(self, constraints: Sequence[Constraint], distribution: LabeledCRF, batch: Batch) -> None:
        self.trees, self.labels = distribution.arcs.flat, distribution.labels
        nodes = _Nodes(constraints, batch)
        dependents = [nodes.of(constraint.dependent) & batch.word_mask() for constraint in constraints]
        self.counts = torch.stack([each.sum(-1) for each in dependents], -1).double()  # (B, R), of dependents
        pairs = zip(constraints, dependents, strict=True)
        found = [_arcs(each, nodes.of(each.head), own, self.trees.is_arc) for each, own in pairs]
        column = torch.arange(len(found), device=self.counts.device).repeat_interleave(
            torch.tensor([arcs.shape[1] for arcs in found], device=self.counts.device)
        )
        entries = torch.cat([column.unsqueeze(0), torch.cat(found, 1)])  # constraint, item, head, dependent
        sets = label_sets(constraints, batch.label_names, self.labels.count).to(self.counts.device)
        labelled = torch.tensor([bool(each.label) for each in constraints], device=self.counts.device)[entries[0]]
        self.plain, self.labelled = entries[:, ~labelled], entries[:, labelled]
        # Arcs that several constraints on labels match are looked up once: A of them.
        self.places, self.rows = self.labelled[1:].unique(dim=1, return_inverse=True)
        self.kinds, self.members = sets.unique(dim=1, return_inverse=True)  # (R, G) bool; (L,) the kind of every label

    @cached_property
    @torch.enable_grad()  # a cached value must have its graph even if first used without one
    def kind_log_probs(self) -> Tensor:
        """Log probabilities ``(A, G)`` of the kinds of labels, given their arcs."""
        item, head, dependent = self.places
        if not len(item):
            return self.trees.arcs.new_zeros(0, self.kinds.shape[1])
        if len(item) <= self.trees.arcs[..., 0].numel():
            return self._sums_by_kind(self.labels.at(item, head, dependent))
        # Of more arcs than there are words, labels are scored at less cost all together, slice by slice.
        return self.labels.reduce(self._sums_by_kind)[item, head, dependent]

    def _sums_by_kind(self, scores: Tensor) -> Tensor:
        """Label scores ``(..., L)`` to log probabilities of kinds ``(..., G)``."""
        log_probs = sums.log_probs(scores)
        kinds = range(self.kinds.shape[1])
        return torch.stack(
            [sums.log_sum(log_probs.masked_fill(self.members != kind, -torch.inf)) for kind in kinds], -1
        )

    def expectations(self, marginals: Tensor, kind_log_probs: Tensor) -> Tensor:
        """The expected numbers of words ``(B, R)`` that meet each constraint.

        Args:
            marginals: probabilities of arcs ``(B, n+1, n+1)``.
            kind_log_probs: ``(A, G)``, given the arcs.
        """
        column, item, head, dependent = torch.cat([self.plain, self.labelled], 1)
        probs = kind_log_probs.exp()[self.rows]
        of_labels = torch.where(self.kinds[self.labelled[0]], probs, 0.0).sum(-1)
        values = marginals[item, head, dependent]
        values = values * torch.cat([torch.ones_like(values[: self.plain.shape[1]]), of_labels])
        items, count = self.counts.shape
        return values.new_zeros(items * count).index_add(0, item * count + column, values).reshape(items, count)

    def lowered(self, arcs: Tensor, kind_log_probs: Tensor, multipliers: Tensor) -> tuple[FlatTrees, Tensor]:
        """Trees and log probabilities of kinds of labels once scores are lowered where constraints match.

        Args:
            arcs: scores ``(B, n+1, n+1)``, labels summed over.
            kind_log_probs: ``(A, G)``, given the arcs.
            multipliers: by how much each constraint lowers them, ``(R,)``.
        """
        column, *place = self.plain
        arcs = arcs.index_put(tuple(place), -multipliers[column], accumulate=True)
        shift = multipliers.new_zeros(kind_log_probs.shape)
        column = self.labelled[0]
        shift = shift.index_add(0, self.rows, -multipliers[column].unsqueeze(-1) * self.kinds[column])
        shifted = kind_log_probs + shift
        arcs = arcs.index_put(tuple(self.places), sums.log_sum(shifted), accumulate=True)
        return self.trees.with_arcs(arcs), sums.log_probs(shifted)


def label_sets(constraints: Sequence[Constraint], names: Sequence[str], count: int) -> Tensor:
    """Which labels each constraint allows, ``(R, L)`` bool; all where it says nothing of them.

    Raises:
        TreeparseError: for labels that are not among the names.
    """
    wanted = {label for constraint in constraints for label in constraint.label}
    if wanted and len(names) != count:
        raise TreeparseError("Constraints on labels need a batch that says what its labels are called (label_names).")
    if missing := sorted(wanted - {*names}):
        raise TreeparseError(
            f"Constraints are on labels that the model does not have: {', '.join(missing)}; it has "
            f"{', '.join(sorted(names))}{did_you_mean(missing[0], names)}"
        )
    rows = [[not each.label or name in each.label for name in names] for each in constraints if wanted]
    return torch.tensor(rows) if wanted else torch.ones(len(constraints), count, dtype=torch.bool)


class _Nodes:
    """Which nodes of a batch's sentences are of some kind."""

    def __init__(self, constraints: Sequence[Constraint], batch: Batch) -> None:
        if len(batch.sentences) != len(batch):
            raise TreeparseError("Constraints are on words and tags: they need a batch that holds its sentences.")
        self.device = batch.lengths.device
        self._is_word = batch.word_mask()
        ends = [words for each in constraints for words in (each.dependent, each.head) if isinstance(words, Words)]
        if any(each.needs_upos for each in constraints):
            self._tags = _Column(batch, _tags, (tag for words in ends for tag in words.upos))
        self._forms = _Column(batch, _forms, (form for words in ends for form in words.word))

    def of(self, words: Words | str | None) -> Tensor:
        """The nodes ``(B, n+1)`` bool that are among the words, are the root, or are words or root if None."""
        if words is None:
            return torch.ones_like(self._is_word)
        if not isinstance(words, Words):
            return (torch.arange(self._is_word.shape[1], device=self.device) == 0).expand_as(self._is_word)
        tagged = self._tags.among(words.upos) if words.upos else self._is_word
        return tagged & self._forms.among(words.word) if words.word else tagged


class _Column:
    """The tags, or the forms, of all words of a batch as numbers, 0 for those that no constraint names."""

    def __init__(self, batch: Batch, read: Callable[[Sentence], Sequence[str]], names: Iterable[str]) -> None:
        self._ids = {name: place for place, name in enumerate(dict.fromkeys(names), 1)}
        rows = [[0, *(self._ids.get(value, 0) for value in read(sentence))] for sentence in batch.sentences]
        self._values = padded(rows).to(batch.lengths.device)

    def among(self, names: Sequence[str]) -> Tensor:
        """Which nodes ``(B, n+1)`` bool have one of these."""
        wanted = torch.tensor([self._ids[name] for name in names], device=self._values.device)
        return torch.isin(self._values, wanted)


def _forms(sentence: Sentence) -> Sequence[str]:
    return [form.lower() for form in sentence.forms]


def _tags(sentence: Sentence) -> Sequence[str]:
    if sentence.upos is None or EMPTY in sentence.upos:
        start = " ".join(sentence.forms[:5])
        raise TreeparseError(
            f"A constraint is on UPOS, but the sentence that starts with '{start}' has words without it: tag the text "
            "first, or leave out such constraints."
        )
    return sentence.upos


def _arcs(constraint: Constraint, heads: Tensor, dependents: Tensor, is_arc: Tensor) -> Tensor:
    """Item, head and dependent ``(3, arcs)`` of the arcs that a constraint matches, whatever their labels.

    Args:
        constraint: what is said of direction and distance.
        heads: the nodes ``(B, n+1)`` bool that may be heads.
        dependents: likewise.
        is_arc: where arcs are, ``(B, n+1, n+1)`` bool.
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
