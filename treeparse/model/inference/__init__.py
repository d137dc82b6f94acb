"""Parses, lists, samples and scores of trees by the distributions that a parser, or several as one, give."""
