"""The K best labelled trees, from the K best trees and the labels of their arcs alone."""

import numpy as np
import torch
from torch import Tensor

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.lists.labeled import LabeledTrees
from treeparse.trees.families import KBest
from treeparse.trees.labels.scores import FlatLabels

FIRST_TREES = 4  # looked at to begin with; they double where they do not suffice


class LabeledKBest:
    """A list of labelled trees, best first: a ``KBest`` with ``labels`` beside the heads.

    Args:
        trees: the list of trees, each under the scores of its arcs and their best labels.
        scores: float64 scores of arcs ``(B, n+1, n+1)``.
        lengths: int64 ``(B,)``.
        labels: the labels' scores, which are read at the arcs of those trees alone that are looked at.
    """

    def __init__(self, trees: KBest, scores: Tensor, lengths: Tensor, labels: FlatLabels) -> None:
        self._trees, self._arc_scores, self._label_scores = trees, scores.detach(), labels
        items, nodes = scores.shape[:2]
        self._labeled = LabeledTrees(lengths.cpu().numpy(), nodes)
        # Sorted labels of the arcs met so far, each with the sum of both scores; where they are, by arc and by tree.
        self._values, self._labels = np.empty((0, labels.count)), np.empty((0, labels.count), np.int64)
        self._places = np.full((items, nodes, nodes), -1)
        self._rows = np.empty((items, 0, nodes), np.int64)
        self.heads, self.labels = (np.empty((items, 0, nodes), np.int64) for _ in range(2))

    @property
    def scores(self) -> FloatArray:
        """Summed scores ``(B, made)``, -inf past the number of labelled trees."""
        return self._labeled.scores

    def extend(self, count: int, threads: int = 1) -> None:
        """Make ``count`` labelled trees an item, with those made before."""
        while self._labeled.extend(count, self._trees.heads, self._rows, self._values, threads=threads):
            made = self._rows.shape[1]
            self._trees.extend(min(count, max(FIRST_TREES, 2 * made)), threads=threads)
            self._meet_arcs(self._trees.heads[:, made:])
        self._read_off()

    def _meet_arcs(self, heads: IntArray) -> None:
        """Sort the labels of the arcs that new trees ``(B, T, n+1)`` are the first to have."""
        words = heads >= 0
        item, _, dependent = words.nonzero()
        head = heads[words]
        wanted = np.zeros(self._places.shape, np.bool_)
        wanted[item, head, dependent] = True
        arcs = (wanted & (self._places < 0)).nonzero()
        self._places[arcs] = len(self._values) + np.arange(len(arcs[0]))
        places = [torch.from_numpy(index).to(self._arc_scores.device) for index in arcs]
        values, labels = self._label_scores.sorted_of(*places)
        values = values + self._arc_scores[tuple(places)].unsqueeze(-1)
        self._values = np.concatenate([self._values, values.cpu().numpy()])
        self._labels = np.concatenate([self._labels, labels.cpu().numpy()])
        rows = np.full(heads.shape, -1)
        rows[words] = self._places[item, head, dependent]
        self._rows = np.concatenate([self._rows, rows], 1)

    def _read_off(self) -> None:
        """Heads and labels of all labelled trees made."""
        trees = self._labeled.trees[..., None]
        self.heads = np.where(trees >= 0, np.take_along_axis(self._trees.heads, trees.clip(0), 1), -1)
        rows = np.take_along_axis(self._rows, trees.clip(0), 1)
        words = self.heads >= 0
        self.labels = np.full(self.heads.shape, -1)
        self.labels[words] = self._labels[rows[words], self._labeled.ranks[words]]
