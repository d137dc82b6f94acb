"""The sums and searches of the kernels as functions of tensors; the only place that chooses where they run.

Every function takes float64 scores ``(B, n+1, n+1)`` and int64 lengths ``(B,)`` and runs on the CPU; tensors of other
devices are copied there and back.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from treeparse.kernels import arborescence, elimination
from treeparse.kernels._compile import FloatArray, IntArray


def log_partition(scores: Tensor, lengths: Tensor, *, single_root: bool) -> Tensor:
    """Log of the summed weight of all non-projective trees ``(B,)``, differentiable once."""
    return _LogPartition.apply(scores, lengths, single_root)  # pyright: ignore[reportReturnType]


def marginals(scores: Tensor, lengths: Tensor, *, single_root: bool) -> Tensor:
    """The probability of every arc ``(B, n+1, n+1)``, as a constant."""
    _, result = elimination.log_partition_and_marginals(
        _floats(scores), _integers(lengths), single_root=single_root, threads=torch.get_num_threads()
    )
    return torch.from_numpy(result).to(scores.device)


def best_trees(scores: Tensor, lengths: Tensor, *, single_root: bool) -> Tensor:
    """Heads of the best non-projective trees ``(B, n+1)``, -1 where there is none."""
    heads = arborescence.best_trees(
        _floats(scores), _integers(lengths), single_root=single_root, threads=torch.get_num_threads()
    )
    return torch.from_numpy(heads).to(scores.device)


def are_trees(heads: Tensor, lengths: Tensor, *, single_root: bool) -> Tensor:
    """Which head lists ``(B, n+1)`` are non-projective trees, ``(B,)`` bool."""
    result = arborescence.are_trees(_integers(heads), _integers(lengths), single_root=single_root)
    return torch.from_numpy(result).to(heads.device)


def _floats(tensor: Tensor) -> FloatArray:
    return tensor.detach().to("cpu", torch.float64).contiguous().numpy()


def _integers(tensor: Tensor) -> IntArray:
    return tensor.detach().to("cpu", torch.int64).contiguous().numpy()


class _LogPartition(torch.autograd.Function):
    """Its derivative is the marginals, which come out of the same elimination as the value."""

    @staticmethod
    def forward(ctx: FunctionCtx, scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
        arrays, threads = (_floats(scores), _integers(lengths)), torch.get_num_threads()
        if not ctx.needs_input_grad[0]:  # pyright: ignore[reportAttributeAccessIssue]
            log_z = elimination.log_partition(*arrays, single_root=single_root, threads=threads)
            return torch.from_numpy(log_z).to(scores.device)
        log_z, gradient = elimination.log_partition_and_marginals(*arrays, single_root=single_root, threads=threads)
        ctx.save_for_backward(torch.from_numpy(gradient).to(scores.device))
        return torch.from_numpy(log_z).to(scores.device)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_output: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (gradient,) = ctx.saved_tensors  # pyright: ignore[reportAttributeAccessIssue]
        return gradient * grad_output[:, None, None], None, None
