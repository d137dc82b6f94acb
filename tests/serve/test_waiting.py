"""Which requests the parser takes, and in which order; without any thread."""

import pytest

from treeparse.data.conllu import ConlluSentence
from treeparse.data.parses import Parse
from treeparse.serve.asked import Asked
from treeparse.serve.limits import RequestError
from treeparse.serve.waiting import ROUND_WORDS, Job, Share, Waiting

PARSE = Asked("m", "conllu", "conllu", "parse", 1, 0, probabilities=False, tags=False)
BEST = Asked("m", "conllu", "conllu", "kbest", 10, 0, probabilities=False, tags=False)


def job(*words: int, asked: Asked = PARSE) -> Job:
    """A request of sentences of so many words."""
    return Job(asked, [ConlluSentence.from_forms(["w"] * count) for count in words])


def trees(count: int) -> list[list[Parse]]:
    return [[Parse(("w",), (0,), ("root",), 0.0, 0.0)] for _ in range(count)]


def parse(waiting: Waiting) -> list[tuple[Job, int]]:
    """Do a round as the parser does; the jobs and how many sentences were taken of each."""
    shares = waiting.take()
    taken = [(share.job, share.stop - len(share.job.lists)) for share in shares]
    for (one, count), _ in zip(taken, shares, strict=True):
        if one.add(trees(count)):
            waiting.put_back(one)
    return taken


def test_what_asks_the_same_is_taken_together_first_come_first_served() -> None:
    waiting = Waiting(10)
    jobs = [job(1), job(1, asked=BEST), job(2, 3), job(1, asked=BEST)]
    for one in jobs:
        waiting.put(one)
    assert waiting.take() == [Share(jobs[0], 1), Share(jobs[2], 2)]
    assert waiting.take() == [Share(jobs[1], 1), Share(jobs[3], 1)]
    waiting.close()
    assert waiting.take() == []


def test_long_requests_take_turns_with_the_others() -> None:
    waiting = Waiting(10)
    half = ROUND_WORDS // 2
    long, other = job(*[half] * 5), job(*[half] * 3)
    short = job(1)
    for one in (long, other, short):
        waiting.put(one)
    assert parse(waiting) == [(long, 2)]
    assert parse(waiting) == [(other, 2)]
    assert parse(waiting) == [(short, 1), (long, 2)]
    assert short.done.done() and not long.done.done()
    assert parse(waiting) == [(other, 1), (long, 1)]
    assert len(long.done.result(0)) == 5 and len(other.done.result(0)) == 3
    assert waiting.now() == []


def test_words_of_lists_count_once_for_each_tree() -> None:
    waiting = Waiting(10)
    waiting.put(one := job(*[ROUND_WORDS // 10] * 2, asked=BEST))
    assert parse(waiting) == [(one, 1)]
    waiting.put(huge := job(2 * ROUND_WORDS))
    assert [parse(waiting), parse(waiting)] == [[(one, 1)], [(huge, 1)]]


def test_what_nobody_wants_any_more_is_not_taken_and_takes_no_room() -> None:
    waiting = Waiting(2)
    jobs = [job(1), job(1), job(1)]
    waiting.put(jobs[0])
    waiting.put(jobs[1])
    with pytest.raises(RequestError, match="2 requests wait already"):
        waiting.put(jobs[2])
    jobs[0].done.cancel()
    waiting.put(jobs[2])
    assert [share.job for share in waiting.take()] == jobs[1:]


def test_what_is_cancelled_in_work_ends_quietly() -> None:
    one, other = job(1), job(1)
    assert one.done.cancel() and other.done.cancel()
    assert not one.add(trees(1))
    other.fail(ValueError("late"))
    assert one.done.cancelled() and other.done.cancelled()


def test_nothing_is_taken_in_after_the_end() -> None:
    waiting = Waiting(2)
    waiting.put(one := job(1))
    waiting.close()
    with pytest.raises(RequestError, match="The server stops"):
        waiting.put(job(1))
    assert waiting.take() == [Share(one, 1)]
    assert waiting.take() == []
