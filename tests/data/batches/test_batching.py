import random
from collections import Counter
from typing import Any

import pytest

from treeparse.data.batches.mixing import BucketBatchSampler, SmoothedDraw
from treeparse.errors import TreeparseError


def random_lengths(seed: int) -> list[int]:
    stream = random.Random(seed)
    return [min(int(stream.expovariate(0.08)) + 1, 250) for _ in range(stream.randint(1, 300))]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_every_index_once_and_bounds_hold(seed: int, shuffle: bool) -> None:
    lengths = random_lengths(seed)
    stream = random.Random(seed + 1000)
    max_words = stream.choice([1, 30, 200, 1000])
    max_squared = stream.choice([None, 1, 900, 20000])
    sampler = BucketBatchSampler(lengths, max_words=max_words, max_squared=max_squared, shuffle=shuffle, seed=seed)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        batches = list(sampler)
        assert len(batches) == len(sampler)
        assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
        for batch in batches:
            nodes = max(lengths[place] for place in batch) + 1
            fits = nodes * len(batch) <= max_words and (max_squared is None or nodes**2 * len(batch) <= max_squared)
            assert fits or len(batch) == 1


def test_a_bound_is_reached_exactly() -> None:
    lengths = [9] * 20
    assert [len(b) for b in BucketBatchSampler(lengths, max_words=50, step=1)] == [5, 5, 5, 5]
    assert [len(b) for b in BucketBatchSampler(lengths, max_words=49, step=1)] == [4, 4, 4, 4, 4]
    assert [len(b) for b in BucketBatchSampler(lengths, max_words=1000, max_squared=400, step=1)] == [4, 4, 4, 4, 4]
    assert [len(b) for b in BucketBatchSampler(lengths, max_words=1000, max_squared=399, step=1)] == [3] * 6 + [2]


def batches_of(epoch: int, *, seed: int = 5, history: tuple[int, ...] = ()) -> list[list[int]]:
    sampler = BucketBatchSampler(random_lengths(1), max_words=100, shuffle=True, seed=seed)
    for other in history:
        sampler.set_epoch(other)
        list(sampler)
    sampler.set_epoch(epoch)
    return list(sampler)


def test_batches_depend_on_seed_and_epoch_alone() -> None:
    random.seed(1)
    expected = batches_of(3)
    random.seed(2)
    assert batches_of(3) == expected
    assert batches_of(3, history=(0, 3, 7, 1)) == expected
    assert BucketBatchSampler(random_lengths(1), max_words=100, shuffle=True, seed=5)._batches == batches_of(0)
    assert batches_of(4) != expected
    assert batches_of(3, seed=6) != expected


def test_batches_of_different_epochs_hold_different_sentences_not_only_another_order() -> None:
    lengths = [random.Random(place).randint(1, 40) for place in range(2000)]
    sampler = BucketBatchSampler(lengths, max_words=400, shuffle=True)
    first = {frozenset(batch) for batch in sampler}
    sampler.set_epoch(1)
    assert len(first & {frozenset(batch) for batch in sampler}) < len(first) / 10


def test_batches_of_different_epochs_have_the_same_shapes() -> None:
    lengths = random_lengths(1)
    shapes = [sorted((len(batch), max(lengths[p] for p in batch) // 4) for batch in batches_of(e)) for e in (0, 1)]
    assert shapes[0] == shapes[1]


def test_without_shuffling_the_longest_come_first_and_ties_in_their_order() -> None:
    sampler = BucketBatchSampler([2, 5, 2, 7, 5], max_words=12, step=1)
    assert list(sampler) == [[3], [1, 4], [0, 2]]
    sampler.set_epoch(9)
    assert list(sampler) == [[3], [1, 4], [0, 2]]


def test_lengths_in_a_batch_are_alike() -> None:
    stream = random.Random(3)
    lengths = [stream.randint(1, 60) for _ in range(3000)]
    for step, shuffle, bound in ((1, False, 1.02), (1, True, 1.02), (4, False, 1.08), (4, True, 1.08)):
        sampler = BucketBatchSampler(lengths, max_words=1000, step=step, shuffle=shuffle)
        nodes = sum((max(lengths[place] for place in batch) + 1) * len(batch) for batch in sampler)
        assert nodes / sum(length + 1 for length in lengths) < bound
        for batch in sampler:
            multiples = {-(-(lengths[place] + 1) // step) for place in batch}
            assert max(multiples) - min(multiples) <= (1 if step == 4 else 3)


def test_no_sentence_makes_no_batch() -> None:
    sampler = BucketBatchSampler([], max_words=10, shuffle=True)
    assert list(sampler) == []
    assert len(sampler) == 0


@pytest.mark.parametrize("bounds", [{"max_words": 0}, {"max_words": 5, "max_squared": 0}, {"max_words": 5, "step": 0}])
def test_bounds_below_1_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(TreeparseError, match="max_words, max_squared and step must be at least 1, got"):
        BucketBatchSampler([1], **bounds)


SIZES = (1000, 100, 10)


@pytest.mark.parametrize(
    ("temperature", "counts"),
    [
        (1.0, [1000, 100, 10]),
        # Square roots 31.623, 10 and 3.1623, of 44.785, times 1110: 783.78, 247.85 and 78.38, and one more is due.
        (2.0, [784, 248, 78]),
        (1e9, [370, 370, 370]),
        (1e-3, [1110, 0, 0]),
    ],
)
def test_shares_by_hand(temperature: float, counts: list[int]) -> None:
    assert SmoothedDraw(SIZES, temperature, seed=1).counts() == counts


def test_counts_add_up_to_all_sentences() -> None:
    for sizes in ((7, 3, 5), (1, 1, 1, 2), (10, 1), (0, 4), (13, 8, 2, 2, 2)):
        for temperature in (0.5, 1.0, 1.7, 5.0, 100.0):
            counts = SmoothedDraw(sizes, temperature, seed=1).counts()
            assert sum(counts) == sum(sizes)
            weights = [size ** (1 / temperature) for size in sizes]
            for count, weight in zip(counts, weights, strict=True):
                assert abs(count - weight / sum(weights) * sum(sizes)) < 1


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_no_sentence_comes_again_before_all_have_come(temperature: float) -> None:
    draw = SmoothedDraw(SIZES, temperature, seed=3)
    for treebank, (size, before) in enumerate(zip(SIZES, (0, 1000, 1100), strict=True)):
        seen: Counter[int] = Counter({place: 0 for place in range(before, before + size)})
        for epoch in range(12):
            of_it = [place for place in draw(epoch) if before <= place < before + size]
            assert len(of_it) == draw.counts()[treebank]
            for place in of_it:
                seen[place] += 1
                assert len(seen) == size and max(seen.values()) - min(seen.values()) <= 1


def test_a_draw_depends_on_seed_and_epoch_alone() -> None:
    draw = SmoothedDraw(SIZES, 3.0, seed=3)
    later = draw(7)
    assert draw(0) != later == SmoothedDraw(SIZES, 3.0, seed=3)(7) != SmoothedDraw(SIZES, 3.0, seed=4)(7)
    assert draw(2) != sorted(draw(2))
