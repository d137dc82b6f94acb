"""What only a CUDA device can show: long sentences, graphs, streams, what waits, and threads of autograd."""

from typing import Any

import pytest
import torch
from torch import Tensor

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF
from treeparse.device import cuda, nonprojective
from treeparse.trees.families import Backend

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"]),
]


def random_batch(seed: int, words: int, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(6, words + 1, words + 1, generator=generator, dtype=torch.float64)
    lengths = torch.randint(1, words + 1, (6,), generator=generator)
    return scores.cuda(), lengths.cuda()


def sums(scores: Tensor, lengths: Tensor, vectors: Tensor, single_root: bool) -> list[Tensor]:
    options: Any = {"single_root": single_root, "launcher": cuda.launcher_of(torch.cuda.current_device())}
    return [
        *nonprojective.log_partition_and_marginals(scores, lengths, **options),
        nonprojective.hessian_vector_product(scores, lengths, vectors, **options),
        nonprojective.log_marginals(scores, lengths, **options),
    ]


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("words", [40, 112, 113, 160, 161, 250])  # up to and past what shared memory holds
def test_long_sentences(words: int, scale: float, single_root: bool) -> None:
    scores, lengths = random_batch(words, words, scale)
    found = sums(scores, lengths, scores.mT.contiguous() / scale, single_root)
    p = NonProjectiveCRF(scores.cpu(), lengths.cpu(), single_root=single_root)
    family, parts = p.batched.family, (scores.cpu(),)
    totals = family.sums(parts, lengths.cpu())
    products = family.hessian_vector_product(parts, lengths.cpu(), (scores.mT.contiguous().cpu() / scale,))
    logs = family.log_marginals(parts, lengths.cpu())
    error = 1e-14 * scale * words * 5
    for own, expected in zip(found, (*totals, *products, *logs), strict=True):
        torch.testing.assert_close(own.cpu(), expected, rtol=0, atol=10 * error)


def test_a_graph_repeats_all_sums(single_root: bool) -> None:
    """Nothing waits for the device, so that a graph can hold it; what a graph finds does not depend on its capture."""
    batches = random_batch(1, 20), random_batch(2, 20, 1e3)  # the second in log space
    scores, lengths = (part.clone() for part in batches[0])
    sums(scores, lengths, scores, single_root)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = sums(scores, lengths, scores, single_root)
    for other_scores, other_lengths in batches:
        scores.copy_(other_scores)
        lengths.copy_(other_lengths)
        graph.replay()
        torch.cuda.synchronize()
        expected = sums(other_scores, other_lengths, other_scores, single_root)
        for own, value in zip(found, expected, strict=True):
            assert torch.equal(own, value)


@pytest.mark.parametrize("kind", [NonProjectiveCRF, ProjectiveCRF])
def test_a_graph_repeats_a_training_step(kind: type[NonProjectiveCRF] | type[ProjectiveCRF], single_root: bool) -> None:
    """The whole of it: distributions, labelled too, their values, and the gradients of all scores."""
    batches = [random_batch(5, 12), random_batch(6, 12, 300.0)]
    inputs = [[scores, scores.unsqueeze(-1) * torch.arange(3, device="cuda"), lengths] for scores, lengths in batches]
    scores, label_scores, lengths = (each.clone() for each in inputs[0])
    heads = kind(scores, lengths, single_root=single_root).mode
    static = scores, label_scores, lengths, heads

    def step(scores: Tensor, label_scores: Tensor, lengths: Tensor, heads: Tensor) -> list[Tensor]:
        scores, label_scores = (each.detach().requires_grad_() for each in (scores, label_scores))
        p = kind(scores, lengths, single_root=single_root, validate_args=False)
        labelled = LabeledCRF(p, label_scores)
        labels = torch.where(heads >= 0, 1, -1)
        losses = -p.log_prob(heads), p.entropy(), p.risk(heads), -labelled.log_prob(heads, labels), labelled.entropy()
        loss = torch.stack(losses).sum()
        return [loss.detach(), *torch.autograd.grad(loss, (scores, label_scores)), p.mode]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # compiles
        step(*static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = step(*static)
    for batch in inputs:
        batch.append(kind(batch[0], batch[2], single_root=single_root).mode)
        for own, other in zip(static, batch, strict=True):
            own.copy_(other)
        graph.replay()
        torch.cuda.synchronize()
        for own, value in zip(found, step(batch[0], batch[1], batch[2], batch[3]), strict=True):
            torch.testing.assert_close(own, value, rtol=1e-12, atol=1e-12)


def test_draws_by_a_generator_of_the_device_do_not_wait(single_root: bool) -> None:
    scores, lengths = random_batch(7, 12)
    p = NonProjectiveCRF(scores, lengths, single_root=single_root, validate_args=False)
    labelled = LabeledCRF(p, scores.unsqueeze(-1) * torch.arange(3, device="cuda"))
    generator = torch.Generator("cuda")
    seen = []
    for _ in range(2):
        torch.cuda.set_sync_debug_mode("error" if seen else "default")
        try:
            generator.manual_seed(1)
            drawn = p.sample((40,), generator=generator), *labelled.sample((40,), generator=generator)
            relaxed = labelled.relaxed_sample(0.5, generator=generator)
            distinct = p.sample_without_replacement(5, generator=generator)
            seen.append([*drawn, relaxed, *distinct])
        finally:
            torch.cuda.set_sync_debug_mode("default")
    for pair in zip(*seen, strict=True):
        assert torch.equal(*pair)


def test_kernels_run_on_the_current_stream(single_root: bool) -> None:
    scores, lengths = random_batch(3, 40)
    expected = sums(scores, lengths, scores, single_root)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        late = scores * 1.0  # there only when the stream has slept
        found = sums(late, lengths, late, single_root)
    stream.synchronize()
    for own, value in zip(found, expected, strict=True):
        assert torch.equal(own, value)


def test_derivatives_are_taken_in_threads_of_autograd(single_root: bool) -> None:
    scores, lengths = random_batch(4, 12)
    gradients = []
    forms: tuple[tuple[Tensor, Backend], ...] = (scores, "cuda"), (scores.cpu(), "numba")
    for tensor, backend in forms:
        leaf = tensor.clone().requires_grad_()
        p = NonProjectiveCRF(leaf, lengths.to(leaf.device), single_root=single_root, backend=backend)
        (p.entropy().sum() + p.marginals.square().sum()).backward()
        assert leaf.grad is not None
        gradients.append(leaf.grad.cpu())
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)
