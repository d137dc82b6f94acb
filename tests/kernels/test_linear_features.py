"""Scores are sums of the weights of the features that plain Python names."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from treeparse.kernels.linear_features import DISTANCES, Hashes, Templates
from treeparse.kernels.linear_scores import WeightTable, decoded, score_arcs, score_labels, score_triples
from treeparse.kernels.linear_updates import WeightedParts, feature_vectors
from treeparse.trees.families.second_order import GRANDPARENTS, SIBLINGS

pytestmark = pytest.mark.nojit

ATTRIBUTES, BITS = 3, 18
LENGTHS = np.array([6, 1, 4])
SIZE = int(LENGTHS.max()) + 1
Feature = tuple[object, ...]


def random_templates(stream: np.random.Generator, count: int, *, between: bool) -> Templates:
    """Templates that read one or two attributes at offsets from -1 to 1 of each node; some read the nodes between."""
    slots = np.full((3, count, 3, 2), -1)
    for role in range(3):
        for template in range(count):
            for slot in range(stream.integers(1, 3)):
                slots[role, template, slot] = stream.integers(ATTRIBUTES), stream.integers(-1, 2)
    salts = stream.integers(0, 2**32, (3, count), dtype=np.uint32)
    reads = (
        np.where(stream.random(count) < 0.4, stream.integers(0, ATTRIBUTES, count), -1)
        if between
        else np.full(count, -1)
    )
    return Templates(slots, salts, reads, stream.random(count) < 0.5)


def read(nodes: Hashes, n: int, slots: NDArray[np.int64], node: int) -> Feature:
    """What a template reads at a node."""
    positions = [(attribute, node + offset) for attribute, offset in slots.tolist() if attribute >= 0]
    return tuple(int(nodes[at, attribute]) if 0 <= at <= n else None for attribute, at in positions)


def distance_class(distance: int) -> int:
    return next((index for index, most in enumerate(DISTANCES) if distance <= most), len(DISTANCES))


def named_features(
    nodes: Hashes, n: int, templates: Templates, head: int, dependent: int, third: int | None = None
) -> Iterator[Feature]:
    """The features of a part: which template, what it reads, the sides and the distance."""
    apart = abs(dependent - (head if third is None else third))
    for t in range(len(templates.between)):
        feature: Feature = (
            t,
            read(nodes, n, templates.slots[0, t], head),
            read(nodes, n, templates.slots[1, t], dependent),
        )
        feature += (dependent > head, distance_class(apart) if templates.distance[t] else None)
        if third is not None:
            own = None if third == head else (third > head, read(nodes, n, templates.slots[2, t], third))
            feature += (own,)
        if templates.between[t] < 0:
            yield feature
        else:
            step = 1 if dependent > head else -1
            inner = [int(nodes[at, templates.between[t]]) for at in range(head + step, dependent, step)]
            yield from ((*feature, value) for value in dict.fromkeys(inner))


@pytest.fixture(params=range(4))
def stream(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def random_nodes(stream: np.random.Generator) -> Hashes:
    """Attributes of few values, so that features repeat."""
    return stream.integers(0, 3, (len(LENGTHS), SIZE, ATTRIBUTES)).astype(np.uint32)


def arcs() -> list[tuple[int, int, int]]:
    return [(b, h, d) for b, n in enumerate(LENGTHS) for h in range(n + 1) for d in range(1, n + 1) if h != d]


def triples(siblings: bool) -> list[tuple[int, int, int, int]]:
    kind = SIBLINGS if siblings else GRANDPARENTS
    return [tuple(part) for part in kind.mask(torch.from_numpy(LENGTHS), SIZE).nonzero().tolist()]


def test_arcs_share_a_feature_where_their_templates_read_the_same(stream: np.random.Generator) -> None:
    """No two features have the same index of 30 bits, and equal features of any sentences have the same one."""
    nodes, templates = random_nodes(stream), random_templates(stream, 5, between=True)
    assert_bijective(nodes, templates, arcs(), is_arc=True)


@pytest.mark.parametrize("siblings", [True, False])
def test_triples_share_a_feature_where_their_templates_read_the_same(
    siblings: bool, stream: np.random.Generator
) -> None:
    nodes, templates = random_nodes(stream), random_templates(stream, 5, between=False)
    assert_bijective(nodes, templates, triples(siblings), is_arc=False)


def assert_bijective(nodes: Hashes, templates: Templates, parts: list[tuple[int, ...]], *, is_arc: bool) -> None:
    index_of: dict[Feature, int] = {}
    for part, own in zip(parts, indices_of(nodes, templates, parts, 2**30, is_arc=is_arc), strict=True):
        named = named_features(nodes[part[0]], int(LENGTHS[part[0]]), templates, *part[1:])
        for feature, index in zip(named, own, strict=True):
            assert index_of.setdefault(feature, index) == index
    assert len(set(index_of.values())) == len(index_of) > 100


def indices_of(
    nodes: Hashes, templates: Templates, parts: list[tuple[int, ...]], weights: int, *, is_arc: bool
) -> list[list[int]]:
    """The indices of each part's features in a table of so many weights."""
    columns = np.array(parts).T
    cells = columns[1]
    for column in columns[2:]:
        cells = cells * SIZE + column
    count = np.arange(len(parts))
    kinds = [WeightedParts(columns[0], cells, count, np.ones(len(parts), np.float32), templates, is_arc)]
    table = np.broadcast_to(np.float32(0), weights)  # of which only the length matters
    vectors = feature_vectors(nodes, LENGTHS, kinds, len(parts), table)
    assert (vectors.values == 1).all()
    return [each.tolist() for each in np.split(vectors.indices, vectors.starts[1:-1])]


def random_bytes(stream: np.random.Generator, *shape: int) -> WeightTable:
    """Float8 weights of all kinds but NaN and the greatest ones."""
    values = stream.integers(0, 0x60, shape) + 0x80 * stream.integers(0, 2, shape)
    return WeightTable(values.astype(np.uint8), np.float32(0.125))


def weights_of(table: WeightTable) -> NDArray[np.float32]:
    return torch.from_numpy(table.values).view(torch.float8_e4m3fn).float().numpy() * table.scale


def test_bytes_are_decoded_as_by_torch() -> None:
    every = np.arange(256, dtype=np.uint8)
    expected = torch.from_numpy(every).view(torch.float8_e4m3fn).float()
    found = torch.tensor([float(decoded(byte)) for byte in every])
    assert int(expected.isnan().sum()) == 2
    assert torch.equal(found[~expected.isnan()], expected[~expected.isnan()])


@pytest.mark.parametrize("in_bytes", [False, True])
def test_scores_are_sums_of_weights(in_bytes: bool, stream: np.random.Generator) -> None:
    nodes, weights = random_nodes(stream), stream.normal(size=2**BITS).astype(np.float32)
    table = WeightTable(weights)
    if in_bytes:
        table = random_bytes(stream, 2**BITS)
        weights = weights_of(table)
    of_arcs = random_templates(stream, 6, between=True)
    scores = score_arcs(nodes, LENGTHS, of_arcs, table)
    expected = np.zeros_like(scores)
    for part, own in zip(arcs(), indices_of(nodes, of_arcs, arcs(), 2**BITS, is_arc=True), strict=True):
        expected[part] = weights[own].sum()
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    for siblings in (True, False):
        templates, parts = random_templates(stream, 4, between=False), triples(siblings)
        scores = score_triples(nodes, LENGTHS, templates, table, siblings=siblings)
        for part, own in zip(parts, indices_of(nodes, templates, parts, 2**BITS, is_arc=False), strict=True):
            assert scores[part] == pytest.approx(weights[own].sum(), abs=1e-5)


@pytest.mark.parametrize("in_bytes", [False, True])
def test_labels_are_sums_of_rows(in_bytes: bool, stream: np.random.Generator) -> None:
    nodes, templates = random_nodes(stream), random_templates(stream, 5, between=True)
    rows = stream.normal(size=(2**BITS, 7)).astype(np.float32)
    table = WeightTable(rows)
    if in_bytes:
        table = random_bytes(stream, *rows.shape)
        rows = weights_of(table)
    parts = [arcs()[index] for index in stream.permutation(len(arcs()))]
    scores = score_labels(nodes, LENGTHS, templates, table, np.array(parts))
    for own, found in zip(indices_of(nodes, templates, parts, 2**BITS, is_arc=True), scores, strict=True):
        np.testing.assert_allclose(found, rows[own].sum(0), atol=1e-5)


def test_a_sentence_scores_alone_as_in_a_batch(stream: np.random.Generator) -> None:
    nodes, templates = random_nodes(stream), random_templates(stream, 5, between=True)
    table = WeightTable(stream.normal(size=2**BITS).astype(np.float32))
    scores = score_arcs(nodes, LENGTHS, templates, table)
    for item, n in enumerate(LENGTHS):
        alone = score_arcs(
            np.ascontiguousarray(nodes[item : item + 1, : n + 1]), LENGTHS[item : item + 1], templates, table
        )
        np.testing.assert_array_equal(alone[0], scores[item, : n + 1, : n + 1])
