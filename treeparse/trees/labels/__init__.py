"""Distributions over labelled trees."""

from treeparse.trees.labels.crf import LabeledCRF as LabeledCRF
from treeparse.trees.labels.sources import LabelSource as LabelSource
