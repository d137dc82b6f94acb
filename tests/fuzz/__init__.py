"""Hostile input, drawn without end: scores, files and broken runs, and what must hold of each.

A `Target` draws input by Hypothesis and checks what the package makes of it. ``test_fuzz.py`` tries each for some
seconds; ``scripts/fuzz --minutes N`` goes on for long, and prints the smallest input that fails. What once failed is
kept in ``corpus``, is read by each test run, and is changed further.
"""
