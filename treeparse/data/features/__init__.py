"""Convert sentences to the tensors that an encoder reads, and gold trees to the tensors of the loss."""

from treeparse.data.features.words import Features, LexicalFeatures

__all__ = [
    "Features",
    "LexicalFeatures",
]
