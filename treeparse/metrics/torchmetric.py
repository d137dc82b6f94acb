"""The scores as torchmetrics: sums over batches and over processes, ready to log."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torchmetrics import Metric

from treeparse.metrics.attachment import (
    GROUPS_SHAPE,
    LENGTH_BUCKETS,
    PROJECTIVITY,
    group_scores,
    grouped_counts,
    label_counts,
)
from treeparse.metrics.counts import PrecisionRecall, check_comparable, mean_of_known, sentence_counts
from treeparse.metrics.tags import TAG_COUNTS_SHAPE, tag_counts, tag_scores_of
from treeparse.sentence import Sentence


class SummedCounts(Metric):
    """Counts of a shape, summed over batches and processes.

    Args:
        shape: the shape of the counts.
        **kwargs: as of ``torchmetrics.Metric``.
    """

    full_state_update: bool | None = False
    higher_is_better: bool | None = True
    is_differentiable: bool | None = False
    counts: Tensor

    def __init__(self, shape: tuple[int, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("counts", default=torch.zeros(shape, dtype=torch.int64), dist_reduce_fx="sum")

    def as_tensors(self, values: Mapping[str, float]) -> dict[str, Tensor]:
        """Return scalars on the metric's device."""
        return {name: torch.tensor(value, device=self.device) for name, value in values.items()}


class AttachmentScores(SummedCounts):
    """UAS, LAS and the other scores of ``attachment_scores`` over all batches.

    ``compute`` returns scalars in [0, 1] by name: ``uas``, ``las``, ... and ``uas_nopunct``, ``las_nopunct``, ...; with
    ``groups=True`` also ``uas`` and ``las`` of each group of sentences: ``las/1-10``, ``las/non-projective``, ...
    Scores of labels are NaN if gold has no label.
    """

    def __init__(self, *, groups: bool = False, **kwargs: Any) -> None:
        super().__init__(GROUPS_SHAPE, **kwargs)
        self.groups = groups

    def update(self, gold: Sequence[Sentence], system: Sequence[Sentence]) -> None:
        """Add a batch; raise ``TreeparseError`` as ``attachment_scores``."""
        counts = grouped_counts(gold, sentence_counts(gold, system))
        self.counts += torch.from_numpy(counts).to(self.counts.device)

    def compute(self) -> dict[str, Tensor]:
        """Return the scores of all batches, on the metric's device."""
        counts = self.counts.cpu().numpy()
        values = group_scores(counts.sum((0, 1))).values()
        if self.groups:
            for names, axis in ((LENGTH_BUCKETS, 1), (PROJECTIVITY, 0)):
                for name, group in zip(names, counts.sum(axis), strict=True):
                    scores = group_scores(group)
                    values |= {f"uas/{name}": scores.uas, f"las/{name}": scores.las}
        return self.as_tensors(values)


class TreebankScores(SummedCounts):
    """UAS and LAS of each of several treebanks, over all batches, and their means.

    ``compute`` returns the means ``uas`` and ``las`` over treebanks, or the scores of the ``choice`` instead, and the
    scores of each treebank: ``uas/NAME`` and ``las/NAME``. Without names, all sentences are one treebank. The mean LAS
    leaves out treebanks without labels.

    Args:
        treebanks: their names.
        choice: the treebank whose scores are ``uas`` and ``las``; None for the means.
        **kwargs: as of ``torchmetrics.Metric``.
    """

    def __init__(self, treebanks: Sequence[str] = (), choice: str | None = None, **kwargs: Any) -> None:
        super().__init__((len(treebanks) or 1, *GROUPS_SHAPE), **kwargs)
        self.treebanks, self.choice = tuple(treebanks), choice

    @classmethod
    def of(cls, sentences: Iterable[Sentence], choice: str | None = None) -> Self:
        """Return the scores of the treebanks of these sentences."""
        return cls([*dict.fromkeys(s.treebank for s in sentences if s.treebank is not None)], choice)

    def update(self, gold: Sequence[Sentence], system: Sequence[Sentence]) -> None:
        """Add a batch; raise ``TreeparseError`` as ``attachment_scores``."""
        counts = sentence_counts(gold, system)
        for row, name in enumerate(self.treebanks or (None,)):
            own = [index for index, sentence in enumerate(gold) if name in (None, sentence.treebank)]
            groups = grouped_counts([gold[index] for index in own], counts[own])
            self.counts[row] += torch.from_numpy(groups).to(self.counts.device)

    def compute(self) -> dict[str, Tensor]:
        """Return the scores of all batches, on the metric's device."""
        scores = [group_scores(row.sum((0, 1))).values() for row in self.counts.cpu().numpy()]
        chosen = scores if self.choice is None else [scores[self.treebanks.index(self.choice)]]
        named = dict(zip(self.treebanks, scores, strict=False))
        by_name = {f"{kind}/{name}": own[kind] for name, own in named.items() for kind in ("uas", "las")}
        means = self.as_tensors({kind: mean_of_known([own[kind] for own in chosen]) for kind in ("uas", "las")})
        return means | self.as_tensors(by_name)


class TagScores(SummedCounts):
    """Shares of words with right tags over all batches, by name as in ``tag_scores``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(TAG_COUNTS_SHAPE, **kwargs)

    def update(self, gold: Sequence[Sentence], system: Sequence[Sentence]) -> None:
        """Add a batch; raise ``TreeparseError`` as ``tag_scores``."""
        self.counts += torch.from_numpy(tag_counts(gold, system)).to(self.counts.device)

    def compute(self) -> dict[str, Tensor]:
        """Return the scores of all batches, on the metric's device."""
        return self.as_tensors(tag_scores_of(self.counts.cpu().numpy()))


class LabelScores(SummedCounts):
    """Precision, recall and F1 by universal label over all batches, for some labels."""

    def __init__(self, labels: Sequence[str], **kwargs: Any) -> None:
        super().__init__((len(labels), 3), **kwargs)  # words in gold, in the system's parse, and right in both
        self.labels: tuple[str, ...] = tuple(labels)

    def update(self, gold: Sequence[Sentence], system: Sequence[Sentence]) -> None:
        """Add a batch; raise ``TreeparseError`` as ``attachment_scores``."""
        check_comparable(gold, system)
        counts = label_counts(gold, system)
        rows = [counts.get(label, (0, 0, 0)) for label in self.labels]
        self.counts += torch.tensor(rows, dtype=torch.int64, device=self.counts.device)

    def compute(self) -> dict[str, Tensor]:
        """Return ``precision/nsubj``, ``recall/nsubj``, ``f1/nsubj`` and so on, scalars in [0, 1]."""
        values = {}
        for label, (gold, system, correct) in zip(self.labels, self.counts.tolist(), strict=True):
            score = PrecisionRecall.from_counts(gold, system, correct)
            values |= {f"{name}/{label}": getattr(score, name) for name in ("precision", "recall", "f1")}
        return self.as_tensors(values)
