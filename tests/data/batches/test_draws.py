from collections import Counter

import pytest

from treeparse.data.batches.mixing import SmoothedDraw

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
