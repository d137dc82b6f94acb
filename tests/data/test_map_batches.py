"""Work on batches in threads: order, faults, and the threads of torch left as they were."""

import threading
from collections.abc import Sequence

import pytest
import torch

from treeparse.data.mapping import map_batches
from treeparse.sentence import Sentence

SENTENCES = [Sentence(tuple(f"word{number}" for _ in range(1 + number % 7))) for number in range(50)]


@pytest.mark.parametrize("threads", [1, 2, 3, 100])
def test_results_are_in_the_order_of_the_sentences(threads: int) -> None:
    batches: list[list[int]] = []

    def forms(places: list[int], chosen: list[Sentence]) -> list[tuple[str, ...]]:
        assert chosen == [SENTENCES[place] for place in places]
        batches.append(places)
        return [sentence.forms for sentence in chosen]

    assert map_batches(forms, SENTENCES, max_words=20, threads=threads) == [s.forms for s in SENTENCES]
    alone: list[list[int]] = []
    map_batches(lambda places, _: [alone.append(places), *places][1:], SENTENCES, max_words=20)
    assert sorted(batches) == sorted(alone) and len(alone) > 3


def test_batches_are_done_at_once_and_torch_takes_no_other_threads() -> None:
    before = torch.get_num_threads()
    both = threading.Barrier(2, timeout=20)

    def work(places: list[int], chosen: list[Sentence]) -> list[int]:
        both.wait()  # raises unless two are here at the same time
        return [torch.get_num_threads()] * len(places)

    try:
        torch.set_num_threads(3)
        assert set(map_batches(work, SENTENCES[:2], max_words=1, threads=2)) == {1}
        assert torch.get_num_threads() == 3
        later: list[int] = []
        thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert later == [3]
    finally:
        torch.set_num_threads(before)


def test_a_fault_in_a_thread_is_raised() -> None:
    def work(places: list[int], chosen: list[Sentence]) -> list[int]:
        if 3 in places:
            raise ValueError("the fourth")
        return places

    with pytest.raises(ValueError, match="the fourth"):
        map_batches(work, SENTENCES, max_words=1, threads=2)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_batches_in_other_threads_learn_of_the_end(error: type[BaseException]) -> None:
    ended, learnt = threading.Event(), list[bool]()

    def work(places: list[int], chosen: list[Sentence]) -> list[int]:
        if 0 not in places:
            learnt.append(ended.wait(20))
        return places

    def stop(places: Sequence[int]) -> None:
        raise error

    with pytest.raises(error):
        map_batches(work, SENTENCES[:3], max_words=1, threads=3, progress=stop, ended=ended)
    assert learnt == [True] * len(learnt)
