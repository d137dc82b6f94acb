"""Scorers: modules that score the parts of trees, the labels and the tags of a batch."""
