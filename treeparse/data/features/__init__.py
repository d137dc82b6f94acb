"""From words to the tensors that an encoder reads, and from gold trees to those of the loss."""

from treeparse.data.features.words import Features as Features
from treeparse.data.features.words import LexicalFeatures as LexicalFeatures
