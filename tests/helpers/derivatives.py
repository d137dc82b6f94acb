"""Gradients of batched functions against numeric ones: all that ``gradcheck`` would do one by one, in three calls."""

from collections.abc import Callable, Sequence

import torch
from helpers.gold_batches import over_and_over
from torch import Tensor

from treeparse.batch import Batch
from treeparse.objectives import Objective
from treeparse.trees import LabeledCRF

Make = Callable[[Sequence[Tensor], Tensor], LabeledCRF]  # of parameters and lengths
STEP = 1e-6  # that and the tolerances are gradcheck's


def assert_derivatives(function: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor]) -> None:
    """The whole Jacobian of a function is that of central differences.

    The function takes copies ``(C, ...)`` of every input and gives values ``(C, ...)``, those of a copy by it alone.
    Each entry is shifted in copies of its own, and each value differentiated in one of its own.
    """
    inputs = [part.detach() for part in inputs]
    with torch.no_grad():
        count = _columns(function(*(part.unsqueeze(0) for part in inputs))).shape[1]
    copies = [part.expand(count, *part.shape).clone().requires_grad_() for part in inputs]
    gradients = torch.autograd.grad(_columns(function(*copies)).diagonal().sum(), copies)
    for place, (part, gradient) in enumerate(zip(inputs, gradients, strict=True)):
        steps = STEP * torch.eye(part.numel(), dtype=part.dtype).reshape(-1, *part.shape)
        shifted = torch.cat([part + steps, part - steps])
        others = [other.expand(len(shifted), *other.shape).clone() for other in inputs]
        with torch.no_grad():
            above, below = _columns(function(*others[:place], shifted, *others[place + 1 :])).chunk(2)
        expected = (above - below) / (2 * STEP)
        torch.testing.assert_close(gradient.flatten(1), expected.mT, rtol=1e-3, atol=1e-5)


def assert_objective_derivatives(objective: Objective, make: Make, inputs: Sequence[Tensor], batch: Batch) -> None:
    """The same of an objective's values for a batch, in the parameters of the distribution that is made of them."""

    def values(*copies: Tensor) -> tuple[Tensor]:
        together = over_and_over(batch, len(copies[0]))
        p = make([part.flatten(0, 1) for part in copies], together.lengths)
        return (objective(p, together).unflatten(0, (len(copies[0]), -1)),)

    assert_derivatives(values, inputs)


def _columns(values: Sequence[Tensor]) -> Tensor:
    return torch.cat([value.flatten(1) for value in values], 1)
