"""Sums, best trees and samples as operators of torch, for programs that torch traces instead of running them.

``torch.compile``, ``torch.export`` and fake tensors see an operator as one step with known shapes; ``torch.func`` asks
a function for its rules. A distribution whose scores are plain tensors uses neither, which is fastest:
``treeparse.batch.is_plain`` tells.

What torch cannot do by itself, so that no operator can, with the issue of pytorch/pytorch or the setting:

| torch lacks | instead | issue |
|:--|:--|:--|
| forward mode over forward mode (``jacfwd`` of ``jacfwd``): it gives 0, so it is refused | ``hessian`` | #197867 |
| ``torch.func`` in a compiled program: ``compile(grad(f))`` | compile ``f``, call ``backward`` | #174067 |
| ``torch.autograd.grad`` in a compiled program | ``backward`` outside | ``trace_autograd_ops`` |
| a ``torch.Generator`` in a compiled program | ``torch.manual_seed`` before | #88576 |
| ``register_autograd`` under ``torch.func`` | the functions in ``derivatives`` | #168393, #179652 |

Lists and draws without replacement (``topk``, ``best_first``, ``enumerate_support``, ``sample_without_replacement``)
are not traced either: how many trees there are depends on the scores' values.
"""
