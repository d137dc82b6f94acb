"""Pretrained word vectors, read from the files of the tools that make them."""
