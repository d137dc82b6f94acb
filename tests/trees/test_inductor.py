"""Gradients of programs that Inductor compiles for the CPU, with a network that makes the scores in the program."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF, SecondOrderCRF, SiblingCRF

# Inductor imports modules of torch that use a deprecated part of torch, and warns of it.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")]

SIZE, LABELS, ITEMS = 8, 12, 4
KINDS: dict[Any, int] = {NonProjectiveCRF: 0, ProjectiveCRF: 0, SiblingCRF: 1, SecondOrderCRF: 2}  # kinds of parts
Gold = tuple[Tensor, Tensor]


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder for what Inductor compiles, so that it compiles today's code; one thread, in this process."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Network(nn.Module):
    """Scores of arcs, of further kinds of parts and of labels, from a vector for each node, and losses of them."""

    def __init__(self, kind: Any, loss: Callable[..., Tensor], *, labelled: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.kind, self.loss, self.labelled = kind, loss, labelled
        self.head, self.dependent, self.third = (nn.Linear(SIZE, SIZE) for _ in range(3))
        self.arcs, self.labels = nn.Linear(SIZE, 1), nn.Linear(SIZE, LABELS)
        self.others = nn.ModuleList(nn.Linear(SIZE, 1) for _ in range(KINDS[kind]))

    def distribution(self, vectors: Tensor, lengths: Tensor) -> Any:
        pairs = self.head(vectors).unsqueeze(2) + self.dependent(vectors).unsqueeze(1)
        triples = pairs.unsqueeze(3) + self.third(vectors)[:, None, None]
        others = [layer(triples.tanh()).squeeze(-1) for layer in self.others]
        p = self.kind(self.arcs(pairs.tanh()).squeeze(-1), *others, lengths)
        return LabeledCRF(p, self.labels(pairs.tanh())) if self.labelled else p

    def forward(self, vectors: Tensor, lengths: Tensor, gold: Gold) -> Tensor:
        return self.loss(self.distribution(vectors, lengths), gold, lengths)


def examples(nodes: int) -> tuple[Tensor, Tensor, Gold]:
    """Vectors of nodes, lengths, and random projective trees with labels."""
    stream = torch.Generator().manual_seed(nodes)
    vectors = torch.randn(ITEMS, nodes, SIZE, generator=stream)
    lengths = torch.tensor([nodes - 1 - item % 3 for item in range(ITEMS)])
    heads = ProjectiveCRF(torch.randn(ITEMS, nodes, nodes, generator=stream), lengths).mode
    return vectors, lengths, (heads, torch.randint(LABELS, heads.shape, generator=stream))


def all_losses(p: Any, gold: Gold, lengths: Tensor) -> Tensor:
    """Every value with a gradient that looks scores or marginals up: of whole trees, and their risk."""
    tree = gold if isinstance(p, LabeledCRF) else gold[:1]
    losses = -p.log_prob(*tree) + 0.5 * p.entropy() + 2 * p.risk(*tree)
    return (losses if len(tree) == 1 else losses - 0.7 * p.label_log_prob(*tree)).mean()


def gradients(network: Network, program: Callable[..., Tensor], batch: tuple[Any, ...]) -> list[Tensor]:
    network.zero_grad()
    program(*batch).backward()
    return [weight.grad.clone() for weight in network.parameters() if weight.grad is not None]


def assert_same_gradients(network: Network, batch: tuple[Any, ...], *, dynamic: bool) -> None:
    expected = gradients(network, network, batch)
    found = gradients(network, torch.compile(network, fullgraph=True, dynamic=dynamic), batch)
    assert len(found) == len(expected) > 4
    for own, same in zip(found, expected, strict=True):
        torch.testing.assert_close(own, same, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("labelled", [False, True], ids=["arcs", "labels"])
@pytest.mark.parametrize(("nodes", "dynamic"), [(8, False), (20, True)], ids=["8", "20-dynamic"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_gradients_are_those_of_eager_code(kind: Any, nodes: int, dynamic: bool, labelled: bool) -> None:
    assert_same_gradients(Network(kind, all_losses, labelled=labelled), examples(nodes), dynamic=dynamic)


def test_a_compiled_training_ends_where_an_eager_one_ends() -> None:
    def nll(p: Any, gold: Gold, lengths: Tensor) -> Tensor:
        return -p.log_prob(*gold).mean()

    batch, ends = examples(8), []
    for compiled in (False, True):
        network = Network(NonProjectiveCRF, nll, labelled=True)
        program = torch.compile(network, fullgraph=True) if compiled else network
        optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
        for _ in range(30):
            optimizer.zero_grad()
            program(*batch).backward()
            optimizer.step()
        with torch.no_grad():
            heads, _ = network.distribution(*batch[:2]).mode
            ends.append((network(*batch).item(), (heads == batch[2][0])[heads >= 0].double().mean().item()))
    (eager_loss, eager_uas), (loss, uas) = ends
    assert loss == pytest.approx(eager_loss, rel=1e-2) and uas == pytest.approx(eager_uas, abs=0.05) and uas > 0.9
