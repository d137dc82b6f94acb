"""Compiled algorithms on batches of score matrices: numpy arrays in, numpy arrays out, no torch."""
