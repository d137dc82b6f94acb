"""Gradients that inductor compiles for the CPU are those of eager code.

Inductor may read the gradient of torch's own look-ups before it is written (pytorch/pytorch #185509). It does so where
another gradient of the same shape, which is weighted by the item, is written anyway and added to it. So one term of a
loss here sums over trees, a mean by words of scores plus those of a second network, and the other term looks up.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from helpers.tree_cases import generator
from torch import Tensor, nn
from torch.distributions import Distribution

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF, SecondOrderCRF, SiblingCRF
from treeparse.trees.labels.sources import LabelTensor

pytestmark = [
    pytest.mark.slow,
    # inductor scripts a method
    pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"),
]
SIZE, LABELS, ITEMS = 8, 12, 4
# Otherwise a kernel that is wrong comes late enough by chance.
IN_ORDER: dict[str, Any] = {"reorder_for_peak_memory": False}
KINDS: dict[str, tuple[Callable[..., Any], int]] = {
    "nonprojective": (NonProjectiveCRF, 0),
    "projective": (ProjectiveCRF, 0),
    "siblings": (SiblingCRF, 1),
    "second order": (SecondOrderCRF, 2),
}


@pytest.fixture(scope="module", autouse=True)
def fresh_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        # torch.compile switches validation off for all distributions of the process
        patch.setattr(Distribution, "_validate_args", Distribution._validate_args)
        yield


@pytest.fixture(autouse=True)
def reset() -> Iterator[None]:
    torch.manual_seed(1)
    yield
    torch.compiler.reset()


class Scorer(nn.Module):
    """Scores of arcs ``(B, n+1, n+1)``, labels, and parts of other kinds, of words' vectors ``(B, n+1, SIZE)``."""

    def __init__(self, others: int = 0) -> None:
        super().__init__()
        self.heads, self.dependents, self.thirds = (nn.Linear(SIZE, SIZE) for _ in range(3))
        self.arcs, self.labels = nn.Linear(SIZE, 1), nn.Linear(SIZE, LABELS)
        self.others = nn.ModuleList(nn.Linear(SIZE, 1) for _ in range(others))

    def forward(self, vectors: Tensor) -> tuple[Tensor, ...]:
        pairs = self.heads(vectors).unsqueeze(2) + self.dependents(vectors).unsqueeze(1)
        triples = torch.tanh(pairs.unsqueeze(3) + self.thirds(vectors)[:, None, None])
        hidden = torch.tanh(pairs)
        others = (layer(triples).squeeze(-1) for layer in self.others)
        return self.labels(hidden), self.arcs(hidden).squeeze(-1), *others


class Loss(nn.Module):
    """A loss of two networks' scores."""

    def __init__(self, kind: str = "nonprojective", *, labelled: bool = True) -> None:
        super().__init__()
        self.make, others = KINDS[kind]
        self.labelled = labelled
        self.shared, self.own = Scorer(others), Scorer(others)

    def trees(self, scores: tuple[Tensor, ...], lengths: Tensor) -> Any:
        labels, *parts = scores
        trees = self.make(*parts, lengths)
        return LabeledCRF(trees, labels) if self.labelled else trees

    def mean(self, scores: tuple[Tensor, ...], own: tuple[Tensor, ...], lengths: Tensor, entropy: float = 0) -> Tensor:
        """Return the mean by words of sums over trees, whose scores are those of both networks."""
        p = self.trees(tuple(map(torch.add, scores, own)), lengths)
        sums = p.log_partition - entropy * p.entropy() if entropy else p.log_partition
        return (sums / lengths).mean()

    def tree(self, heads: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        return (heads, labels) if self.labelled else (heads,)


class Margin(Loss):
    """The score of the gold trees against all trees, whose scores have a margin."""

    def forward(self, vectors: Tensor, lengths: Tensor, *tree: Tensor) -> Tensor:
        scores = self.shared(vectors)
        gold = self.trees(scores, lengths).score(*self.tree(*tree))
        return self.mean(scores, self.own(vectors), lengths) - 0.5 * gold.mean()


class Selected(Loss):
    """The same of all items but the first."""

    def forward(self, vectors: Tensor, lengths: Tensor, *tree: Tensor) -> Tensor:
        scores = self.shared(vectors)
        gold = self.trees(scores, lengths)[1:].score(*(part[1:] for part in self.tree(*tree)))
        return self.mean(scores, self.own(vectors), lengths) - 0.5 * gold.mean()


class Attention(Loss):
    """Marginals as the weights of vectors, and the risk."""

    def forward(self, vectors: Tensor, lengths: Tensor, heads: Tensor, labels: Tensor) -> Tensor:
        p = self.make(self.shared(vectors)[1], lengths)
        risk = p.risk(heads).mean()
        weights = (p.marginals + self.own(vectors)[1]) / lengths[:, None, None]
        return risk + (weights @ vectors).square().mean()


class LabelsWithSums(LabelTensor):
    """Label scores that come with their log sums."""

    def __init__(self, values: Tensor, sums: Tensor) -> None:
        super().__init__(values)
        self.sums = sums

    def log_sums(self, arcs: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.sums.double()


class FromSource(Loss):
    """A function of labelled trees whose label scores come from a source with log sums."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function, self.sums = function, nn.Linear(SIZE, 1)

    def forward(self, vectors: Tensor, lengths: Tensor, *tree: Tensor) -> Tensor:
        labels, arcs = self.shared(vectors)
        sums = self.sums(torch.tanh(vectors.unsqueeze(2) - vectors.unsqueeze(1))).squeeze(-1)
        values = labels - labels.detach().logsumexp(-1, keepdim=True) + sums.unsqueeze(-1)
        source = LabelsWithSums(values, sums)
        value = self.function(LabeledCRF(self.make(arcs, lengths), source), *tree).mean()
        return self.mean((labels, sums), self.own(vectors), lengths, entropy=0.1) + value


def batch(nodes: int) -> tuple[Tensor, ...]:
    """Return vectors, lengths, heads and labels."""
    random = generator(nodes)
    lengths = nodes - 1 - torch.arange(ITEMS)
    heads = ProjectiveCRF(torch.randn(ITEMS, nodes, nodes, generator=random), lengths).mode
    labels = torch.randint(LABELS, (ITEMS, nodes), generator=random)
    return torch.randn(ITEMS, nodes, SIZE, generator=random), lengths, heads, labels


def check_gradients(model: nn.Module, nodes: int, *, dynamic: bool) -> None:
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, options=IN_ORDER)
    results = []
    for form in (compiled, model):
        model.zero_grad()
        loss = form(*batch(nodes))
        loss.backward()
        used = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
        results.append((loss.detach(), used))
    (found, gradients), (loss, expected) = results
    torch.testing.assert_close(found, loss, rtol=1e-5, atol=0)
    assert gradients.keys() == expected.keys()
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        torch.testing.assert_close(
            gradients[name], gradient, rtol=0, atol=1e-5 * largest, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize(("labelled", "nodes"), [(True, 8), (False, 20)], ids=["labels", "arcs"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_trees(kind: str, labelled: bool, nodes: int) -> None:
    check_gradients(Margin(kind, labelled=labelled), nodes, dynamic=nodes == 20)


@pytest.mark.parametrize(
    "function",
    [lambda p, *tree: 100 * p.risk(*tree), lambda p, *tree: p.label_log_prob(*tree)],
    ids=["risk", "label_log_prob"],
)
def test_gradients_of_a_source_of_labels(function: Callable[..., Tensor]) -> None:
    check_gradients(FromSource(function), 8, dynamic=False)


@pytest.mark.parametrize("loss", [Attention, Selected])
def test_gradients_of_other_values(loss: Callable[[], nn.Module]) -> None:
    check_gradients(loss(), 8, dynamic=True)


class Training(Loss):
    """The negative log probability of labelled trees."""

    def forward(self, vectors: Tensor, lengths: Tensor, *tree: Tensor) -> Tensor:
        return -self.trees(self.shared(vectors), lengths).log_prob(*tree).mean()


def test_training_ends_where_eager_training_ends() -> None:
    results = []
    for compiles in (True, False):
        torch.manual_seed(1)
        model = Training()
        step = torch.compile(model, fullgraph=True) if compiles else model
        optimizer = torch.optim.Adam(model.parameters(), 0.05)
        vectors, lengths, heads, labels = batch(8)
        for _ in range(30):
            optimizer.zero_grad()
            step(vectors, lengths, heads, labels).backward()
            optimizer.step()
        found, _ = model.trees(model.shared(vectors), lengths).mode
        loss = model(vectors, lengths, heads, labels)
        results.append((loss.item(), (found == heads)[heads >= 0].float().mean().item()))
    (loss, uas), (eager_loss, eager_uas) = results
    assert eager_uas > 0.9
    assert uas == eager_uas
    assert loss == pytest.approx(eager_loss, rel=1e-3)
