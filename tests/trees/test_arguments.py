"""What methods take: lists of heads and labels however they are padded, tensors that broadcast, and whole sentences."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from helpers.tree_cases import NUMBA, Case, every_case_and_order, every_labeled_case, generator
from helpers.tree_cases import every_case_and_backend as every_case
from torch import Tensor

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF, SiblingCRF, TreeparseError
from treeparse.trees import Mixture

LENGTHS = torch.tensor([3, 1, 2])
PADDING = pytest.mark.parametrize("padding", [-100, 0, 2, 99])
CHECKED = pytest.mark.parametrize("validate", [True, False], ids=["validated", "not-validated"])


def values_of_trees(p: Any, trees: list[Tensor]) -> Iterator[tuple[str, Tensor]]:
    """What each method says of one tree an item, ``(B, n+1)``, by the method's name."""
    yield "log_prob", p.log_prob(*trees)
    yield "score", p.score(*trees)
    yield "many", p.log_prob(*(part.expand(2, *p.word_mask.shape) for part in trees))
    yield "expected_uas", p.expected_uas(trees[0])
    yield "risk", p.risk(*trees)
    yield "given", p.given(*trees).log_partition
    yield "support", p.support.check(trees[0] if len(trees) == 1 else tuple(trees)).double()
    if len(trees) == 2:
        yield "label_log_prob", p.label_log_prob(*trees)
        yield "expected_las", p.expected_las(*trees)
        yield from zip(("arcs", "labeled"), p.tree_marginals(trees[0], trees[1]), strict=True)


def a_tree(p: Any) -> list[Tensor]:
    """Heads and, with labels, labels ``(B, n+1)``, padded by -1."""
    found = p.mode
    return [found] if isinstance(found, Tensor) else list(found)


def padded_by(tree: Tensor, padding: int) -> Tensor:
    """The same with another number at node 0 and beyond the lengths."""
    node = torch.arange(tree.shape[-1])
    return torch.where((node > 0) & (node <= LENGTHS[:, None]), tree, padding)


@every_case
@PADDING
@CHECKED
def test_padding_and_node_0_are_not_read(case: Case, padding: int, validate: bool) -> None:
    parameters = [part.nan_to_num(0.0).requires_grad_() for part in case.parameters(3, seed=1, batch=(3,))]
    p = case.make(parameters, LENGTHS, validate_args=validate)
    tree = a_tree(p)
    other = [padded_by(part, padding) for part in tree]
    assert not torch.equal(other[0], tree[0])
    for (name, expected), (_, found) in zip(values_of_trees(p, tree), values_of_trees(p, other), strict=True):
        assert torch.equal(found, expected), name
        assert bool((found > -torch.inf).all()), name
    gradients = [torch.autograd.grad(p.log_prob(*each).sum(), parameters, retain_graph=True) for each in (tree, other)]
    for own, same in zip(*gradients, strict=True):
        assert torch.equal(own, same) and bool(own.any())


@every_case
@pytest.mark.parametrize("unknown", [-1, -100])
def test_heads_that_are_not_known(case: Case, unknown: int) -> None:
    """Whole trees lack none; what goes by the known ones takes any negative number for the others."""
    p = case.make(case.parameters(3, seed=2, batch=(3,)), LENGTHS, validate_args=True)
    tree = a_tree(p)
    partial, same = ([part.clone() for part in tree] for _ in range(2))
    for part, other in zip(partial, same, strict=True):
        part[0, 2], other[0, 2] = unknown, -1
    assert torch.equal(p.given(*partial).log_partition, p.given(*same).log_partition)
    assert torch.equal(p.risk(*partial), p.risk(*same)) and torch.equal(
        p.expected_uas(partial[0]), p.expected_uas(same[0])
    )
    problem = rf"^The head of word 2 in batch item 0 must be a node, got {unknown}: .*'s 3 have.* p\.given\(heads\)"
    for method in (p.log_prob, p.score):
        with pytest.raises(TreeparseError, match=problem):
            method(*partial)
    nothing = [torch.full_like(part, unknown) for part in tree]
    assert bool((p.log_prob(*nothing) == -torch.inf).all()) and bool((p.score(*nothing) == -torch.inf).all())
    loose = case.make(case.parameters(3, seed=2, batch=(3,)), LENGTHS, validate_args=False)
    assert (loose.log_prob(*partial) == -torch.inf).tolist() == [True, False, False]


@every_case
@pytest.mark.parametrize(("item", "word", "head"), [(0, 2, 4), (2, 1, 3), (0, 1, 99), (1, 1, 1)])
def test_heads_that_no_tree_has(case: Case, item: int, word: int, head: int) -> None:
    """Beyond the words of the item, of the whole batch, or the word itself."""
    parameters = case.parameters(3, seed=3, batch=(3,))
    p, loose = (case.make(parameters, LENGTHS, validate_args=validate) for validate in (True, False))
    tree = a_tree(p)
    tree[0][item, word] = head
    methods: list[Callable[..., Any]] = [p.risk, p.given, lambda h, *_: p.expected_uas(h)]
    if case.labels:
        methods += [p.label_log_prob, p.expected_las, p.tree_marginals]
    problem = f"^The head of word {word} in batch item {item} must be .* nodes 0 to {LENGTHS[item]} other.* got {head};"
    for method in methods:
        with pytest.raises(TreeparseError, match=problem):
            method(*tree)
    if head > 3:
        with pytest.raises(
            TreeparseError,
            match=rf"^The head of word {word} in batch item {item} must be .* 0 to \d+, got {head}\.",
        ):
            p.log_prob(*(part.unsqueeze(0) for part in tree))
    else:
        assert p.log_prob(*tree)[item] == -torch.inf
    assert not bool(p.support.check(tree[0] if len(tree) == 1 else tuple(tree))[item])
    assert loose.log_prob(*tree)[item] == loose.score(*tree)[item] == -torch.inf
    wrong = [part.clone() for part in tree]
    wrong[0][item] = torch.where(torch.arange(4) == word, head, -1)
    assert loose.expected_uas(wrong[0])[item] == 0 and loose.risk(*wrong)[item] == 1
    if case.labels and head != word:
        assert loose.label_log_prob(*tree)[item] == -torch.inf


@every_labeled_case
def test_a_label_that_does_not_exist_is_improbable(case: Case) -> None:
    """It was taken for the last one."""
    p = case.make(case.parameters(3, seed=4, batch=(3,)), LENGTHS)
    heads, labels = p.mode
    labels[0, 1] = case.labels
    assert p.label_log_prob(heads, labels)[0] == p.log_prob(heads, labels)[0] == -torch.inf
    assert bool(p.label_log_prob(heads, labels)[1:].isfinite().all())


@every_labeled_case
def test_heads_without_labels_are_no_labelled_tree(case: Case) -> None:
    """A batch of two was taken for the pair of heads and labels."""
    parameters = case.parameters(3, seed=5, batch=(2,))
    p = case.make(parameters)
    heads, labels = p.mode
    mixture = Mixture([p, p])
    methods: list[Callable[..., Any]] = [p.label_log_prob]
    for q in (p, mixture):
        methods += [q.log_prob, q.score, q.expected_las, q.risk, q.tree_marginals]
        assert torch.equal(q.given(q.minimum_risk()).log_prob(p.mode), q.given(*q.minimum_risk()).log_prob(p.mode))
        assert torch.equal(q.expected_uas((heads, labels)), q.expected_uas(heads))
    for method in methods:
        pair, two = method((heads, labels)), method(heads, labels)
        assert all(map(torch.equal, pair, two))
        for value in (heads, torch.stack([heads, labels]), (heads,), (heads, labels, labels), None):
            with pytest.raises(TreeparseError, match=r"or two tensors, got a .*without labels"):
                method(value)
        with pytest.raises(TreeparseError, match=r"got a tuple and labels"):
            method((heads, labels), labels)
    for value in (heads, torch.stack([heads, labels])):
        with pytest.raises(TreeparseError, match="two tensors"):
            p.support.check(value)
    torch.testing.assert_close(p.arcs.log_prob(heads), p.arcs.log_prob(p.mode[0]))  # what the message says


@every_case
def test_dimensions_of_size_1_broadcast(case: Case) -> None:
    p = case.make(case.parameters(3, seed=7, batch=(2, 3)))
    shape, tree = p.marginals.shape, [part[:1, :1] for part in a_tree(p)]
    for own in (tree, [part[0, 0] for part in tree]):  # one list for all
        full = [part.expand(2, 3, 4) for part in tree]
        for (name, expected), (_, found) in zip(values_of_trees(p, full), values_of_trees(p, own), strict=True):
            assert torch.equal(found.expand(expected.shape), expected), name
    mask = torch.rand(1, 3, 4, 4, generator=generator(1)) < 0.8
    mask[..., 0, :] = True
    assert torch.equal(p.within(mask).log_partition, p.within(mask.expand(2, 3, 4, 4)).log_partition)
    of_words = torch.tensor([True, True, False, True]).reshape(1, 1, 1, 4)  # word 2 has no head
    loose = case.make(case.parameters(3, seed=7, batch=(2, 3)), validate_args=False)
    assert bool((loose.within(of_words).log_partition == -torch.inf).all())
    for small in ((1, *shape[1:]), (2, 1, *shape[2:]), (1, 1, 1, *shape[3:])):
        r, s = (torch.randn(*small, count, generator=generator(count), dtype=torch.float64) for count in (2, 3))
        wide = [each.expand(*shape, each.shape[-1]) for each in (r, s)]
        assert torch.equal(p.expectation(r), p.expectation(wide[0]))
        assert torch.equal(p.expectation(r[..., 0]), p.expectation(wide[0][..., 0]))
        assert torch.equal(p.covariance(r, s), p.covariance(*wide))
        assert torch.equal(p.second_moment(r[..., 0], s), p.second_moment(wide[0][..., 0], wide[1]))


@every_case
def test_no_dimension_is_left_out(case: Case) -> None:
    p = case.make(case.parameters(3, seed=8, batch=(2, 3)))
    shape, heads = p.marginals.shape, a_tree(p)[0]
    labels = [heads] * bool(case.labels)
    wanted = r"here \(2, 3, 4\), got \({}\): dimensions of size 1 broadcast, but none may be left out"
    for wrong, named in ((heads[0], "3, 4"), (heads[..., 1:], "2, 3, 3"), (heads[:, :2], "2, 2, 4")):
        with pytest.raises(
            TreeparseError, match=r"Known heads must have the shape \(\*batch, n\+1\), " + wanted.format(named)
        ):
            p.given(wrong)
        with pytest.raises(
            TreeparseError, match=r"Heads must have the shape \(\*batch, n\+1\), " + wanted.format(named)
        ):
            p.expected_uas(wrong)
        with pytest.raises(
            TreeparseError, match=rf"\(\*sample, \*batch, n\+1\), here ending in \(2, 3, 4\), got \({named}"
        ):
            p.log_prob(wrong, *labels)
    with pytest.raises(TreeparseError, match=wanted.format("5, 2, 3, 4")):
        p.expected_uas(heads.expand(5, 2, 3, 4))
    for size in ((4, 4), (3, 4, 4), (2, 2, 4, 4), (1, 2, 3, 4, 4)):
        with pytest.raises(TreeparseError, match=r"A mask .* shape \(2, 3, 4, 4\), got torch.bool .*left out"):
            p.within(torch.ones(size, dtype=torch.bool))
    for size in (shape[1:], (3, *shape[1:]), (*shape, 2, 2)):
        with pytest.raises(TreeparseError, match=r"Values must have the shape .* or one dimension more.*left out"):
            p.expectation(torch.zeros(size))
    narrow = torch.zeros(1, *shape[1:]).to_sparse()
    with pytest.raises(TreeparseError, match=r"Sparse values must have the shape .* in full, got .*: expand them"):
        p.expectation(narrow)


def test_weights_of_a_mixture_have_its_shape() -> None:
    case = Case(single_root=True, kind=NUMBA, labels=2)
    parameters = [case.parameters(3, seed=seed, batch=(3,)) for seed in (1, 2)]
    components = [case.make(each, LENGTHS) for each in parameters]
    weights = torch.tensor([[0.3], [0.7]]).log()
    narrow, wide = Mixture(components, weights), Mixture(components, weights.expand(2, 3))
    tree = components[0].mode
    torch.testing.assert_close(narrow.log_prob(*tree), wide.log_prob(*tree))
    assert all(map(torch.equal, narrow.minimum_risk(), wide.minimum_risk()))
    for wrong in (torch.zeros(2), torch.zeros(3, 3), torch.zeros(2, 2)):
        with pytest.raises(TreeparseError, match=r"weights of a mixture must have the shape .* here \(2, 3\), got"):
            Mixture(components, wrong)


def negated_in_place(part: Tensor) -> Tensor:
    """Equal numbers in a contiguous tensor that torch negates whenever they are read.

    ``conj().imag`` would be strided, and copies of strided tensors are not negative.
    """
    return torch._neg_view(-part)  # pyright: ignore[reportPrivateImportUsage]


@every_case_and_order
def test_tensors_that_torch_negates_when_they_are_read_hold_the_same_scores(case: Case) -> None:
    plain = [part.requires_grad_() for part in case.parameters(4, seed=15, batch=(2,))]
    negated = [negated_in_place(part.detach()).requires_grad_() for part in plain]
    assert all(part.is_neg() for part in negated)
    lengths = torch.tensor([4, 3])
    p, q = case.make(plain, lengths), case.make(negated, lengths)
    tree = a_tree(p)
    for found, expected in zip(q.topk(3), p.topk(3), strict=True):
        assert torch.equal(found, expected)
    for (_, found), (_, expected) in zip(values_of_trees(q, tree), values_of_trees(p, tree), strict=True):
        assert torch.equal(found, expected)
    ones = torch.ones(2, dtype=torch.float64)
    for of_entropy in (False, True):
        expected = torch.autograd.grad(p.entropy() if of_entropy else p.log_prob(*tree), plain, ones, True)
        value = q.entropy() if of_entropy else q.log_prob(*tree)
        assert all(map(torch.equal, torch.autograd.grad(value, negated, negated_in_place(ones), True), expected))


@every_case
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_values_of_short_scores_are_those_of_the_same_scores_in_float32(case: Case, dtype: torch.dtype) -> None:
    """They were rounded to 8 or 11 bits, and at half precision large ones were infinite."""
    lengths = torch.tensor([4, 3])
    shift = 40.0 if dtype == torch.bfloat16 else 3e4  # sums of such scores are infinite in their own dtype
    short = [part.to(dtype).requires_grad_() for part in case.parameters(4, seed=14, batch=(2,))]
    with torch.no_grad():
        short[0] += shift
    long = [part.detach().float().requires_grad_() for part in short]
    p, q = case.make(short, lengths), case.make(long, lengths)
    tree = a_tree(q)
    r = torch.randn(q.marginals.shape, generator=generator(1))

    def values(p: Any) -> list[Tensor]:
        *_, best, best_log_probs = p.topk(2)
        *_, log_probs, keys = p.sample_without_replacement(2, generator=generator(2))
        found = [p.log_partition, p.marginals, p.entropy(), p.renyi_entropy(2.0), p.log_norm(2.0), p.cross_entropy(p)]
        found += [torch.distributions.kl_divergence(p, p), p.expectation(r), p.covariance(r, r), p.second_moment(r, r)]
        found += [p.expected_gradient(), best, best_log_probs]
        return [*found, log_probs, keys, *(value for _, value in values_of_trees(p, tree))]

    for found, expected in zip(values(p), values(q), strict=True):
        assert found.dtype in (torch.float32, torch.float64)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert bool(p.log_partition.isfinite().all())
    for part, wide in zip(gradients_of(p, tree, short), gradients_of(q, tree, long), strict=True):
        assert part.dtype == dtype
        # Scores of labels are read twice, and autograd adds the two in their own dtype.
        tolerance = 4 * torch.finfo(dtype).eps * (case.labels > 0)
        torch.testing.assert_close(part, wide.to(dtype), rtol=0, atol=tolerance)
    assert p.relaxed_sample(0.5, generator=generator(3)).dtype == dtype


def gradients_of(p: Any, tree: list[Tensor], scores: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(p.entropy().sum() + p.log_prob(*tree).sum(), scores)


@pytest.mark.parametrize("kind", [NonProjectiveCRF, ProjectiveCRF])
@pytest.mark.parametrize(
    ("arcs", "labels", "values", "samples"),
    [
        (torch.bfloat16, torch.float16, torch.float32, torch.float32),
        (torch.bfloat16, torch.bfloat16, torch.float32, torch.bfloat16),
        (torch.float32, torch.float64, torch.float64, torch.float64),
        (torch.float64, torch.bfloat16, torch.float64, torch.float64),
    ],
)
def test_arcs_and_labels_of_two_dtypes(
    kind: Any, arcs: torch.dtype, labels: torch.dtype, values: torch.dtype, samples: torch.dtype
) -> None:
    scores = [torch.randn(2, 4, 4, dtype=torch.float64), torch.randn(2, 4, 4, 3, dtype=torch.float64)]
    own = [part.to(dtype).requires_grad_() for part, dtype in zip(scores, (arcs, labels), strict=True)]
    p = LabeledCRF(kind(own[0]), own[1])
    exact = LabeledCRF(kind(own[0].double()), own[1].double())
    for found, expected in ((p.log_partition, exact.log_partition), (p.marginals, exact.marginals)):
        torch.testing.assert_close(found, expected.to(values), rtol=0, atol=0)
    assert p.expected_uas(p.mode[0]).dtype == p.risk(*p.mode).dtype == p.dtype == values
    assert [part.dtype for part in torch.autograd.grad(p.log_prob(p.mode).sum(), own)] == [arcs, labels]
    assert p.relaxed_sample(1.0).dtype == samples


def test_arguments_that_are_no_tensors_are_refused() -> None:
    scores = torch.zeros(2, 4, 4)
    p: Any = NonProjectiveCRF(scores)
    make: Any = NonProjectiveCRF
    siblings: Any = SiblingCRF
    labeled: Any = LabeledCRF
    heads = [[-1, 0, 1, 2]] * 2
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("Scores", lambda: make(scores.numpy())),
        ("Lengths", lambda: make(scores, [3, 3])),
        ("Heads", lambda: p.log_prob(heads)),
        ("Known heads", lambda: p.given(heads)),
        ("A mask of arcs", lambda: p.within(heads)),
        ("Scores of parts besides arcs", lambda: siblings(scores, heads)),
        ("Label scores", lambda: labeled(p, scores.numpy())),
        ("Values", lambda: p.expectation(heads)),
        ("Values", lambda: labeled(p, torch.zeros(2, 4, 4, 3)).covariance(heads, heads)),
    ]
    for name, call in calls:
        with pytest.raises(TreeparseError, match=rf"{name} must be a tensor, got a (list|ndarray): use torch"):
            call()
