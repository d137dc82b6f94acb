"""Scored graphs: random ones, peaked ones, and a treebank's sentences as a parser scores them."""
