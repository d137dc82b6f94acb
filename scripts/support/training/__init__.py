"""Treebanks and their parts, parsers trained where they are missing, and records of runs."""
