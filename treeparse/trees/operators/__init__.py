"""Sums, best trees and samples as operators of torch, for programs that torch traces instead of running them.

``torch.compile``, ``torch.export`` and fake tensors see an operator as one step with known shapes; ``torch.func`` asks
a function for its rules. A distribution whose scores are plain tensors uses neither, which is fastest:
``treeparse.batch.is_plain`` tells.
"""
