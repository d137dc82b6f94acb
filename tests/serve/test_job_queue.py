"""Which requests the parser takes, and in which order; without any thread."""

import pytest

from treeparse.corpus.trees import TreeRequest
from treeparse.data.conllu import ConlluSentence
from treeparse.data.parses import Parse
from treeparse.serve.job_queue import ROUND_WORDS, Job, JobQueue, Share
from treeparse.serve.limits import RequestError
from treeparse.serve.process_request import ProcessRequest

PARSE = ProcessRequest("m", "conllu", "conllu", TreeRequest(), tags=False)
BEST = ProcessRequest("m", "conllu", "conllu", TreeRequest("kbest", 10), tags=False)


def job(*words: int, request: ProcessRequest = PARSE) -> Job:
    """A request of sentences of so many words."""
    return Job(request, [ConlluSentence.from_forms(["w"] * count) for count in words])


def trees(count: int) -> list[list[Parse]]:
    return [[Parse(("w",), (0,), ("root",), 0.0, 0.0)] for _ in range(count)]


def parse(queue: JobQueue) -> list[tuple[Job, int]]:
    """Do a round as the parser does; the jobs and how many sentences were taken of each."""
    shares = queue.take()
    taken = [(share.job, share.stop - len(share.job.lists)) for share in shares]
    for (one, count), _ in zip(taken, shares, strict=True):
        if one.add(trees(count)):
            queue.put_back(one)
    return taken


def test_what_asks_the_same_is_taken_together_first_come_first_served() -> None:
    queue = JobQueue(10)
    jobs = [job(1), job(1, request=BEST), job(2, 3), job(1, request=BEST)]
    for one in jobs:
        queue.put(one)
    assert queue.take() == [Share(jobs[0], 1), Share(jobs[2], 2)]
    assert queue.take() == [Share(jobs[1], 1), Share(jobs[3], 1)]
    queue.close()
    assert queue.take() == []


def test_long_requests_take_turns_with_the_others() -> None:
    queue = JobQueue(10)
    half = ROUND_WORDS // 2
    long, other = job(*[half] * 5), job(*[half] * 3)
    short = job(1)
    for one in (long, other, short):
        queue.put(one)
    assert parse(queue) == [(long, 2)]
    assert parse(queue) == [(other, 2)]
    assert parse(queue) == [(short, 1), (long, 2)]
    assert short.done.done() and not long.done.done()
    assert parse(queue) == [(other, 1), (long, 1)]
    assert len(long.done.result(0)) == 5 and len(other.done.result(0)) == 3
    assert queue.jobs() == []


def test_words_of_lists_count_once_for_each_tree() -> None:
    queue = JobQueue(10)
    queue.put(one := job(*[ROUND_WORDS // 10] * 2, request=BEST))
    assert parse(queue) == [(one, 1)]
    queue.put(huge := job(2 * ROUND_WORDS))
    assert [parse(queue), parse(queue)] == [[(one, 1)], [(huge, 1)]]


def test_what_nobody_wants_any_more_is_not_taken_and_takes_no_room() -> None:
    queue = JobQueue(2)
    jobs = [job(1), job(1), job(1)]
    queue.put(jobs[0])
    queue.put(jobs[1])
    with pytest.raises(RequestError, match="2 requests wait already"):
        queue.put(jobs[2])
    jobs[0].done.cancel()
    queue.put(jobs[2])
    assert [share.job for share in queue.take()] == jobs[1:]


def test_what_is_cancelled_in_work_ends_quietly() -> None:
    one, other = job(1), job(1)
    assert one.done.cancel() and other.done.cancel()
    assert not one.add(trees(1))
    other.fail(ValueError("late"))
    assert one.done.cancelled() and other.done.cancelled()


def test_nothing_is_taken_in_after_the_end() -> None:
    queue = JobQueue(2)
    queue.put(one := job(1))
    queue.close()
    with pytest.raises(RequestError, match="The server is shutting down: retry later"):
        queue.put(job(1))
    assert queue.take() == [Share(one, 1)]
    assert queue.take() == []
