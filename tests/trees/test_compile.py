"""A model around a distribution is one graph under ``torch.compile``, and learns the same."""

from typing import Any

import pytest
import torch
from helpers.tree_cases import generator
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributions import Distribution

from treeparse import NonProjectiveCRF, ProjectiveCRF
from treeparse.device import cuda

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


class Loss(nn.Module):
    """The loss of words' vectors ``(B, n+1, 4)``."""

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.dependents = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, vectors: Tensor, lengths: Tensor, heads: Tensor) -> Tensor:
        p = NonProjectiveCRF(self.heads(vectors) @ self.dependents(vectors).mT, lengths, validate_args=False)
        return -p.log_prob(heads).mean()


@pytest.mark.parametrize(
    ("device", "backend"), [("cpu", "eager"), pytest.param("cuda", "inductor", marks=[pytest.mark.gpu, GPU])]
)
def test_a_compiled_model_learns_the_same(device: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # torch.compile switches validation off for all distributions of the process
    monkeypatch.setattr(Distribution, "_validate_args", Distribution._validate_args)
    torch.manual_seed(1)
    model = Loss().to(device)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    for seed in (1, 2):  # the second is not compiled again
        vectors = torch.randn(3, 6, 4, generator=generator(seed)).to(device)
        lengths = torch.tensor([5, 4, 3], device=device)
        heads = NonProjectiveCRF(torch.zeros(3, 6, 6, device=device), lengths).mode
        values, gradients = [], []
        for form in (model, compiled):
            model.zero_grad()
            loss = form(vectors, lengths, heads)
            loss.backward()
            values.append(loss.detach())
            gradients.append([parameter.grad for parameter in model.parameters()])
        torch.testing.assert_close(*values)
        for pair in zip(*gradients, strict=True):
            torch.testing.assert_close(*pair, rtol=1e-5, atol=1e-6)
            assert pair[0].any()
    torch.compiler.reset()


@pytest.mark.parametrize("kind", [NonProjectiveCRF, ProjectiveCRF])
def test_no_kernels_of_a_device_are_looked_for_while_a_program_is_traced(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are where it runs: a machine without a device can trace for one."""
    for name in ("launcher_of", "launcher_or_none"):
        monkeypatch.setattr(cuda, name, None)
    program = torch.compile(lambda *given: kind(*given).entropy(), backend="eager", fullgraph=True)
    with FakeTensorMode():
        found = program(torch.empty(2, 4, 4, device="cuda"), torch.empty(2, dtype=torch.int64, device="cuda"))
    assert found.shape == (2,) and found.device.type == "cuda"
    torch.compiler.reset()
