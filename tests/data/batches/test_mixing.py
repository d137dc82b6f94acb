import random
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
from treeparse.names import Mixing

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
