"""Other projects' decoders, samplers and sums, each behind the same face as treeparse's."""
