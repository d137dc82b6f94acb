import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from treeparse.data.batches.mixing import (
    BucketBatchSampler,
    EpochSampler,
    SmoothedDraw,
    TrainingMix,
    merged_evenly,
    spread_evenly,
)
from treeparse.data.batches.steps import Item
from treeparse.data.batches.unlabelled import UnlabelledText
from treeparse.errors import TreeparseError
from treeparse.names import Mixing


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


BOUNDS: dict[str, Any] = {"max_words": 200, "max_squared": 3000}


def some_lengths(count: int, seed: int, mean: float = 12) -> list[int]:
    stream = random.Random(seed)
    return [min(int(stream.expovariate(1 / mean)) + 1, 90) for _ in range(count)]


LABELLED = some_lengths(300, seed=1)


def written(path: Path, lengths: Sequence[int]) -> Path:
    path.write_text("".join(" ".join(["w"] * length) + "\n" for length in lengths), encoding="utf-8")
    return path


def mixed(path: Path, mixing: Mixing, ratio: float = 1.0, seed: int = 5) -> EpochSampler:
    text = UnlabelledText([path], words=round(ratio * sum(LABELLED)), max_words=100)
    return EpochSampler(LABELLED, **BOUNDS, seed=seed, mix=TrainingMix(None, text, mixing, ratio))


def parts(batch: Sequence[Item]) -> tuple[list[int], list[int]]:
    """The lengths of the labelled and of the unlabelled sentences of a batch."""
    return (
        [LABELLED[item] for item in batch if isinstance(item, int)],
        [len(item.words) for item in batch if not isinstance(item, int)],
    )


def plain(sampler: EpochSampler) -> list[list[object]]:
    return [[item if isinstance(item, int) else ("text", item.index) for item in batch] for batch in sampler]


def test_without_a_mixture_batches_are_those_of_old() -> None:
    sampler = EpochSampler(LABELLED, **BOUNDS, seed=5)
    old = BucketBatchSampler(LABELLED, **BOUNDS, shuffle=True, seed=5)
    for epoch in (0, 3):
        sampler.set_epoch(epoch)
        old.set_epoch(epoch)
        assert list(sampler) == list(old) and len(sampler) == len(old)


@pytest.mark.parametrize("mixing", ["together", "turns"])
@pytest.mark.parametrize("ratio", [0.25, 1.0, 3.0])
def test_an_epoch_has_all_labelled_sentences_and_the_next_of_the_text(
    tmp_path: Path, mixing: Mixing, ratio: float
) -> None:
    lengths = some_lengths(700, seed=2)
    path = written(tmp_path / "a.txt", lengths)
    sampler = mixed(path, mixing, ratio)
    text = UnlabelledText([path], words=round(ratio * sum(LABELLED)), max_words=100)
    seen: list[int] = []
    for epoch in range(6):
        sampler.set_epoch(epoch)
        items = [item for batch in sampler for item in batch]
        assert sorted(item for item in items if isinstance(item, int)) == list(range(len(LABELLED)))
        taken = sorted(item.index for item in items if not isinstance(item, int))
        assert taken == sorted(sentence.index for sentence in text.share(epoch))
        assert abs(sum(lengths[place] for place in taken) - ratio * sum(LABELLED)) <= max(lengths)
        seen += [sentence.index for sentence in text.share(epoch)]
        assert len(list(sampler)) == len(sampler)
    assert seen == [place % len(lengths) for place in range(len(seen))]


@pytest.mark.parametrize("ratio", [0.5, 1.0, 4.0])
def test_batches_of_both_have_the_ratio_and_keep_to_the_bounds(tmp_path: Path, ratio: float) -> None:
    sampler = mixed(written(tmp_path / "a.txt", some_lengths(900, seed=2)), "together", ratio)
    nodes = words = 0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for batch in sampler:
            first, second = parts(batch)
            longest = max(first + second)
            size = (longest + 1) * len(batch)
            assert len(batch) == 1 or (size <= (1 + ratio) * 200 and size * (longest + 1) <= (1 + ratio) * 3000)
            # Off by half a sentence of each kind at either end; long ones, which are few, may meet much longer ones.
            assert longest > 40 or abs(sum(second) - ratio * sum(first)) <= (ratio + 1) * (longest + 4)
            nodes, words = nodes + size, words + sum(first + second) + len(batch)
    alone = [parts(batch)[0] for batch in EpochSampler(LABELLED, **BOUNDS)]
    padded = sum((max(batch) + 1) * len(batch) for batch in alone) / (sum(LABELLED) + len(LABELLED))
    assert nodes / words < 1.05 * padded, "lengths of a batch are as alike as without the text"
    assert 0.7 < len(sampler) / len(BucketBatchSampler(LABELLED, **BOUNDS)) < 1.3, "as many steps as without the text"


def test_bounds_hold_where_lengths_differ_much(tmp_path: Path) -> None:
    sampler = mixed(written(tmp_path / "a.txt", [90] * 30), "together")
    for batch in sampler:
        size = (max(max(part, default=0) for part in parts(batch)) + 1) * len(batch)
        assert len(batch) == 1 or size <= 400
    assert sum(len(batch) for batch in sampler) == len(LABELLED) + len(sampler.unlabelled)


def test_turns_are_those_of_each_alone_spread_evenly(tmp_path: Path) -> None:
    sampler = mixed(written(tmp_path / "a.txt", some_lengths(900, seed=2)), "turns", 0.4)
    sampler.set_epoch(2)
    kinds = ["".join("lu"[not isinstance(item, int)] for item in batch) for batch in sampler]
    assert all(len(set(kind)) == 1 for kind in kinds)
    alone = BucketBatchSampler(LABELLED, **BOUNDS, shuffle=True, seed=5)
    alone.set_epoch(2)
    assert [batch for batch in sampler if isinstance(batch[0], int)] == list(alone)
    for batch in sampler:
        longest = max(max(part, default=0) for part in parts(batch)) + 1
        assert len(batch) == 1 or (longest * len(batch) <= 200 and longest**2 * len(batch) <= 3000)
    text = [kind[0] == "u" for kind in kinds]
    for end in range(len(text) + 1):
        assert abs(sum(text[:end]) - end * sum(text) / len(text)) <= 1


@pytest.mark.parametrize("mixing", ["together", "turns"])
def test_mixed_batches_depend_on_seed_and_epoch_alone(tmp_path: Path, mixing: Mixing) -> None:
    path = written(tmp_path / "a.txt", some_lengths(200, seed=2))  # less than an epoch's share
    sampler = mixed(path, mixing)
    sampler.set_epoch(4)
    expected = plain(sampler)
    for history in ([4], [0, 9, 4], [3, 4]):
        other = mixed(path, mixing)
        for epoch in history:
            other.set_epoch(epoch)
        assert plain(other) == expected
    other = mixed(path, mixing, seed=6)
    other.set_epoch(4)
    assert plain(other) != expected


def test_a_draw_is_what_an_epoch_has() -> None:
    sizes = [200, 80, 20]
    draw = SmoothedDraw(sizes, 3.0, seed=5)
    sampler = EpochSampler(LABELLED, **BOUNDS, seed=5, mix=TrainingMix(draw))
    for epoch in (0, 1, 5):
        sampler.set_epoch(epoch)
        items = [item for batch in sampler for item in batch if isinstance(item, int)]
        assert sorted(items) == sorted(draw(epoch))
        for batch in sampler:
            nodes = max(parts(batch)[0]) + 1
            assert len(batch) == 1 or (nodes * len(batch) <= 200 and nodes**2 * len(batch) <= 3000)


def test_lists_are_merged_by_hand() -> None:
    # Middles of the first: 1/6, 1/2, 5/6; of the second, of weights 1 and 3: 1/8 and 5/8.
    assert merged_evenly([0, 1, 2], [3, 4], [2, 2, 2, 1, 3]) == [3, 0, 1, 4, 2]
    assert merged_evenly([], [1, 0], [1, 1]) == [1, 0]
    assert spread_evenly([[0], [1], [2], [3]], [[8], [9]]) == [[0], [8], [1], [2], [9], [3]]
