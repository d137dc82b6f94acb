"""N-best lists in files: CoNLL-U with one block a tree, or JSONL with one object a sentence."""
