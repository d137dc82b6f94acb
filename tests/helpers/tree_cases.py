"""The kinds of distributions that the contract suite runs over, and their quantities by enumeration."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import pytest
import torch
from helpers.emulator import Emulator
from helpers.oracles import all_trees
from helpers.second_order import Part, grandparents_of, siblings_of
from torch import Tensor

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF
from treeparse.device.launcher import Launcher
from treeparse.lazy import cached_property
from treeparse.trees import families
from treeparse.trees.crf import TreeCRF
from treeparse.trees.families import Family
from treeparse.trees.families.on_cuda import NonprojectiveOnCuda, ProjectiveOnCuda
from treeparse.trees.parts import Parts
from treeparse.trees.second_order_crfs import SecondOrderCRF, SiblingCRF

Distribution = Any  # the values of unlabelled ones are heads, of labelled ones pairs


class EmulatedCRF(NonProjectiveCRF):
    """With the kernels for CUDA devices, which an emulator runs for scores in CPU memory."""

    launcher: ClassVar[Launcher] = Emulator()

    @cached_property
    def family(self) -> Family:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.scores.is_cuda:
            return families.nonprojective(self.scores.device, single_root=self.single_root, backend="cuda")
        return NonprojectiveOnCuda(self.single_root, self.launcher)


class EmulatedProjectiveCRF(ProjectiveCRF):
    """The same of projective trees."""

    launcher: ClassVar[Launcher] = Emulator()

    @cached_property
    def family(self) -> Family:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.scores.is_cuda:
            return families.projective(self.scores.device, single_root=self.single_root)
        return ProjectiveOnCuda(self.single_root, self.launcher)


@dataclass(frozen=True)
class Kind:
    """A family of trees and how it is computed with: the distribution over them, and whether arcs may cross."""

    name: str
    distribution: Callable[..., TreeCRF]
    crossing: bool


NUMBA = Kind("numba", partial(NonProjectiveCRF, backend="numba"), crossing=True)
TORCH = Kind("torch", partial(NonProjectiveCRF, backend="torch"), crossing=True)
PROJECTIVE = Kind("projective", ProjectiveCRF, crossing=False)
EMULATED = Kind("emulated", EmulatedCRF, crossing=True)
EMULATED_PROJECTIVE = Kind("emulated-projective", EmulatedProjectiveCRF, crossing=False)
KINDS = (NUMBA, TORCH, PROJECTIVE)  # one more here, and the suite runs over it


@dataclass(frozen=True)
class Case:
    """One kind of distribution: its trees, its parameters and how it is made of them."""

    single_root: bool
    kind: Kind
    labels: int = 0  # 0: unlabelled

    @property
    def name(self) -> str:
        return f"{'labeled-' if self.labels else ''}{self.kind.name}-{'single' if self.single_root else 'multi'}"

    def parameters(
        self, words: int, *, seed: int, batch: tuple[int, ...] = (), scale: float = 1.0, forbidden: float = 0.0
    ) -> list[Tensor]:
        """Random scores of arcs and, with labels, of labels; what must be ignored is NaN."""
        generator = torch.Generator().manual_seed(seed)
        result = []
        for shape in self.shapes(words, batch):
            scores = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
            scores[torch.rand(shape, generator=generator) < forbidden] = -torch.inf
            result.append(scores)
        for scores in result:
            arcs = scores if scores is result[0] else scores.movedim(-1, 0)
            arcs.diagonal(dim1=-2, dim2=-1).fill_(torch.nan)
            arcs[..., 0] = torch.nan
        return result

    def shapes(self, words: int, batch: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The shapes of the parameters."""
        arcs = (*batch, words + 1, words + 1)
        return [arcs, (*arcs, self.labels)] if self.labels else [arcs]

    def make(self, parameters: Sequence[Tensor], lengths: Tensor | None = None, **options: Any) -> Distribution:
        base = self.kind.distribution(parameters[0], lengths, single_root=self.single_root, **options)
        return LabeledCRF(base, parameters[1]) if self.labels else base

    def of_item(self, parameters: Sequence[Tensor], item: Any, words: int) -> list[Tensor]:
        """The parameters of one item of a batch, without its padding."""
        return [part[item][: words + 1, : words + 1] for part in parameters]

    def part_scores(self, parameters: Sequence[Tensor]) -> Tensor:
        """Scores of one item's parts ``(*part)``."""
        return parameters[0].unsqueeze(-1) + parameters[1] if self.labels else parameters[0]

    def enumerated(self, parameters: Sequence[Tensor]) -> "Enumerated":
        return Enumerated(self, parameters)

    def marginals(self, p: Distribution) -> Tensor:
        """Marginals of one item's parts, in the shape of ``part_scores``."""
        return p.marginals

    def random_values(self, p: Distribution, count: int, seed: int) -> Any:
        """Values of all parts, as ``expectation`` takes them."""
        return random_values(p, count, seed)

    def trees(self, words: int) -> list[Tensor]:
        """All values of one item of so many words: heads ``(trees, words + 1)`` and, with labels, labels."""
        heads = torch.as_tensor(all_trees(words, self.single_root, not self.kind.crossing))
        if not self.labels:
            return [torch.nn.functional.pad(heads, (1, 0), value=-1)]
        labels = torch.tensor(list(itertools.product(range(self.labels), repeat=words)), dtype=torch.int64)
        pairs = heads.repeat_interleave(len(labels), 0), labels.repeat(len(heads), 1)
        return [torch.nn.functional.pad(part, (1, 0), value=-1) for part in pairs]

    def parts(self, value: Sequence[Tensor]) -> Tensor:
        """The parts ``(trees, words)`` of trees, as indices into the flattened parts."""
        heads = value[0][:, 1:]
        size = heads.shape[1] + 1
        arcs = heads * size + torch.arange(1, size)
        return arcs * self.labels + value[1][:, 1:] if self.labels else arcs


SIBLING = Kind("sibling", SiblingCRF, crossing=False)
GRANDPARENT = Kind("second-order", SecondOrderCRF, crossing=False)


@dataclass(frozen=True)
class SecondOrderCase(Case):
    """Projective trees that score siblings, too, and grandparents: all parts of an item are one row, arcs first."""

    kind: Kind = SIBLING

    @property
    def others(self) -> list[tuple[Callable[[list[int]], Iterator[Part]], Callable[..., bool]]]:
        """For every other kind of part those of heads, and whether a triple of nodes is one."""
        siblings, grandparents = (siblings_of, is_sibling), (grandparents_of, is_grandparent)
        return [siblings, grandparents] if self.kind == GRANDPARENT else [siblings]

    def shapes(self, words: int, batch: tuple[int, ...]) -> list[tuple[int, ...]]:
        arcs, *labels = super().shapes(words, batch)
        return [arcs, *[(*arcs, words + 1)] * len(self.others), *labels]

    def parameters(
        self, words: int, *, seed: int, batch: tuple[int, ...] = (), scale: float = 1.0, forbidden: float = 0.0
    ) -> list[Tensor]:
        stream, others = torch.Generator().manual_seed(seed + 1), []
        for _, is_part in self.others:
            scores = scale * torch.randn((*batch, *(words + 1,) * 3), generator=stream, dtype=torch.float64)
            scores[torch.rand(scores.shape, generator=stream) < forbidden / 4] = -torch.inf
            ignored = [not is_part(*triple) for triple in itertools.product(range(words + 1), repeat=3)]
            others.append(scores.masked_fill(torch.tensor(ignored).reshape((words + 1,) * 3), torch.nan))
        options = {"seed": seed, "batch": batch, "scale": scale, "forbidden": forbidden / 2}
        arcs, *labels = Case.parameters(Case(self.single_root, PROJECTIVE, self.labels), words, **options)
        return [arcs, *others, *labels]

    def make(self, parameters: Sequence[Tensor], lengths: Tensor | None = None, **options: Any) -> Distribution:
        count = 1 + len(self.others)
        base = self.kind.distribution(*parameters[:count], lengths, single_root=self.single_root, **options)
        return LabeledCRF(base, parameters[count]) if self.labels else base

    def of_item(self, parameters: Sequence[Tensor], item: Any, words: int) -> list[Tensor]:
        inside = slice(words + 1)
        return [
            part[item][inside, inside, inside] if 0 < index <= len(self.others) else part[item][inside, inside]
            for index, part in enumerate(parameters)
        ]

    def part_scores(self, parameters: Sequence[Tensor]) -> Tensor:
        count = 1 + len(self.others)
        arcs = super().part_scores([parameters[0], *parameters[count:]])
        return torch.cat([arcs.flatten(), *(part.flatten() for part in parameters[1:count])])

    def enumerated(self, parameters: Sequence[Tensor]) -> "Enumerated":
        return EnumeratedSecondOrder(self, parameters)

    def marginals(self, p: Distribution) -> Tensor:
        if self.labels:
            return torch.cat([p.marginals.flatten(), *(part.flatten() for part in p.arcs.part_marginals.others)])
        return p.part_marginals.flatten(0)

    def random_values(self, p: Distribution, count: int, seed: int) -> Any:
        if self.labels:
            return super().random_values(p, count, seed)
        stream = generator(seed)
        return p.part_marginals.map(lambda part: torch.randn(*part.shape, count, generator=stream, dtype=torch.float64))

    def parts(self, value: Sequence[Tensor]) -> Tensor:
        """The parts of trees; trees with fewer than others are filled up by a part that scores 0, the last one."""
        size = value[0].shape[1]
        begin, end = size**2 * max(self.labels, 1), size**2 * max(self.labels, 1) + size**3 * len(self.others)
        columns = [super().parts(value)]
        for of_heads, _ in self.others:
            rows = [
                [begin + (h * size + d) * size + x for h, d, x in of_heads(heads)] for heads in value[0][:, 1:].tolist()
            ]
            filled = [row + [end] * (size - 1 - len(row)) for row in rows]
            columns.append(torch.tensor(filled, dtype=torch.int64))
            begin += size**3
        return torch.cat(columns, 1)


def is_sibling(head: int, dependent: int, sibling: int) -> bool:
    """Whether a score of siblings is not ignored."""
    between = min(head, dependent) < sibling < max(head, dependent)
    return dependent > 0 and head != dependent and (between or sibling == head)


def is_grandparent(head: int, dependent: int, grandparent: int) -> bool:
    """Whether a score of grandparents is not ignored."""
    first, last = min(head, dependent), max(head, dependent)
    return 0 < first < last and not first <= grandparent <= last


CASES = [Case(single, kind, labels) for labels in (0, 2) for kind in KINDS for single in (True, False)]
SECOND_ORDER = [
    SecondOrderCase(single, kind, labels)
    for kind in (SIBLING, GRANDPARENT)
    for labels in (0, 2)
    for single in (True, False)
]
every_labeled_case = pytest.mark.parametrize(
    "case", [case for case in CASES if case.labels], ids=lambda case: case.name
)
# For laws of draws: trees of the torch form are drawn by numba's samplers, so that one case of it says that they are.
SAMPLED = [case for case in CASES if case.kind != TORCH or case.single_root]
every_sampled_labeled_case = pytest.mark.parametrize(
    "case", [case for case in SAMPLED if case.labels], ids=lambda case: case.name
)
every_sampled_case = pytest.mark.parametrize("case", SAMPLED, ids=lambda case: case.name)
every_sampled_case_and_order = pytest.mark.parametrize("case", SAMPLED + SECOND_ORDER, ids=lambda case: case.name)
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_case_and_order = pytest.mark.parametrize("case", CASES + SECOND_ORDER, ids=lambda case: case.name)
# The contract suite alone runs over the kernels for CUDA devices as well: the emulator takes its time.
EMULATED_CASES = [Case(True, EMULATED), Case(False, EMULATED), Case(True, EMULATED, 2), Case(True, EMULATED_PROJECTIVE)]
every_case_and_backend = pytest.mark.parametrize("case", CASES + EMULATED_CASES, ids=lambda case: case.name)
ALL_CASES = CASES + SECOND_ORDER + EMULATED_CASES
every_case_order_and_backend = pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)


def random_values(p: Distribution, count: int, seed: int) -> Tensor:
    """Random values of arcs, labelled ones of a labelled distribution, ``(*batch, *part, count)``."""
    return torch.randn(*p.marginals.shape, count, generator=generator(seed), dtype=torch.float64)


def generator(seed: int) -> torch.Generator:
    """A generator that begins with this seed."""
    return torch.Generator().manual_seed(seed)


class Enumerated:
    """Every quantity of one item, by the sum over all of its trees."""

    def __init__(self, case: Case, parameters: Sequence[Tensor]) -> None:
        self.words = parameters[0].shape[-1] - 1
        self.part_scores = case.part_scores(parameters)
        self.values = case.trees(self.words)
        self.parts = case.parts(self.values)

    @cached_property
    def totals(self) -> Tensor:
        """The score of every tree."""
        return self.part_scores.flatten()[self.parts].sum(1)

    @property
    def scale(self) -> float:
        """By what errors are judged: the summed largest finite magnitudes of the words' parts, at least 1."""
        finite = self.part_scores.nan_to_num(0.0, 0.0, 0.0).abs()
        return max(1.0, finite.reshape(self.words + 1, self.words + 1, -1).amax((0, 2))[1:].sum().item())

    @cached_property
    def log_partition(self) -> Tensor:
        return self.totals.logsumexp(0)

    @property
    def exists(self) -> bool:
        return bool(self.log_partition > -torch.inf)

    @cached_property
    def log_probs(self) -> Tensor:
        return self.totals - self.log_partition

    @cached_property
    def probs(self) -> Tensor:
        return self.log_probs.exp()

    @property
    def marginals(self) -> Tensor:
        flat = torch.zeros(self.part_scores.numel(), dtype=torch.float64)
        for column in self.parts.T:
            flat.index_add_(0, column, self.probs)
        return flat.reshape(self.part_scores.shape)

    def code_length(self, log_probs: Tensor) -> Tensor:
        """-E_p of other log probabilities of the same trees."""
        possible = self.log_probs > -torch.inf
        return -(self.probs[possible] * log_probs[possible]).sum()

    @property
    def entropy(self) -> Tensor:
        return self.code_length(self.log_probs)

    def renyi_entropy(self, alpha: float) -> Tensor:
        possible = self.log_probs[self.log_probs > -torch.inf]
        if alpha == float("inf"):
            return -possible.max()
        return (alpha * possible).logsumexp(0) / (1 - alpha)

    @property
    def expected_gradient(self) -> Tensor:
        """By the words at which two trees, each with its probability, differ."""
        differing = torch.cdist(self.parts.double(), self.parts.double(), p=0)  # Hamming's distance
        return self.probs @ differing @ self.probs

    def sums(self, values: Any) -> Tensor:
        """Every tree's sum ``(trees, R)`` of values ``(*part, R)``."""
        return values.flatten(0, -2)[self.parts].sum(1)

    def expectation(self, values: Any) -> Tensor:
        return self.probs @ self.sums(values)

    def second_moment(self, r: Any, s: Any) -> Tensor:
        return torch.einsum("t,tr,ts->rs", self.probs, self.sums(r), self.sums(s))


class EnumeratedSecondOrder(Enumerated):
    """With parts in one row, and a last one that scores 0, of which trees have as many as they lack."""

    def __init__(self, case: SecondOrderCase, parameters: Sequence[Tensor]) -> None:
        self.others = len(case.others)
        super().__init__(case, parameters)

    @property
    def scale(self) -> float:
        nodes = self.words + 1
        arcs, *others = self.part_scores.split(
            [len(self.part_scores) - self.others * nodes**3, *[nodes**3] * self.others]
        )
        parts = [part.reshape(nodes, nodes, -1).nan_to_num(0.0, 0.0, 0.0).abs() for part in (arcs, *others)]
        return max(1.0, torch.stack([part.amax((0, 2))[1:].sum() for part in parts]).sum().item())

    @cached_property
    def totals(self) -> Tensor:
        return torch.cat([self.part_scores, torch.zeros(1).double()])[self.parts].sum(1)

    @property
    def marginals(self) -> Tensor:
        flat = torch.zeros(len(self.part_scores) + 1, dtype=torch.float64)
        for column in self.parts.T:
            flat.index_add_(0, column, self.probs)
        return flat[:-1]

    @property
    def expected_gradient(self) -> Tensor:
        """The trace of the covariance of the parts, each of which a tree has or has not."""
        has_part = torch.zeros(len(self.parts), len(self.part_scores) + 1, dtype=torch.float64)
        has_part = has_part.scatter_(1, self.parts, 1.0)[:, :-1]
        return (self.probs @ has_part - (self.probs @ has_part).square()).sum()

    def sums(self, values: Tensor | Parts) -> Tensor:
        if isinstance(values, Tensor):  # of arcs alone
            return values.flatten(0, -2)[self.parts[:, : self.words]].sum(1)
        flat = torch.cat([part.flatten(0, -2) for part in values])
        return torch.cat([flat, torch.zeros_like(flat[:1])])[self.parts].sum(1)
