"""Results computed ahead: in order, no more than were asked for, faults in their place, and no thread is left."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from helpers.waiting import wait_until

from treeparse.data.prefetch import map_ahead


@pytest.mark.parametrize("ahead", [0, 1, 2, 5])
def test_results_come_in_order_and_not_too_early(ahead: int) -> None:
    read, computed = list[int](), list[int]()

    def inputs() -> Iterator[int]:
        for item in range(20):
            read.append(item)
            yield item

    def negative(item: int) -> int:
        computed.append(item)
        return -item

    results = map_ahead(negative, inputs(), ahead)
    assert not read
    for used in range(20):
        assert next(results) == -used
        wait_until(lambda used=used: len(computed) == min(20, used + ahead + 1), seconds=4)
        assert len(read) == len(computed)
    assert next(results, None) is None


def test_faults_come_after_the_results_before_them() -> None:
    def inputs() -> Iterator[int]:
        yield from (1, 2)
        raise OSError("the disk is gone")

    results = map_ahead(float, inputs(), ahead=3)
    assert [next(results), next(results)] == [1.0, 2.0]
    with pytest.raises(OSError, match="the disk is gone"):
        next(results)
    assert next(results, None) is None

    results = map_ahead(lambda item: 1 / item, [1, 0, 2], ahead=3)
    assert next(results) == 1.0
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert next(results, None) is None


def test_the_caller_reads() -> None:
    """An input that blocks is interrupted by signals, which only the main thread gets; some belong to one thread."""

    def inputs() -> Iterator[threading.Thread]:
        for _ in range(3):
            yield threading.current_thread()

    assert {*map_ahead(lambda thread: thread, inputs())} == {threading.current_thread()}


def test_closing_ends_the_thread_and_computes_nothing_more() -> None:
    before, computed = threading.active_count(), list[int]()

    def slow(item: int) -> int:
        time.sleep(0.1 * (item > 0))
        computed.append(item)
        return item

    with closing(map_ahead(slow, range(10**9), ahead=5)) as results:
        assert next(results) == 0
        wait_until(lambda: threading.active_count() == before + 1)
    assert threading.active_count() == before
    assert len(computed) <= 3


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_long_call_can_end_early(interrupted: bool) -> None:
    """Whether the caller closes the iterator or a signal interrupts the reading of inputs."""
    closed, began = threading.Event(), threading.Event()

    def inputs() -> Iterator[int]:
        yield from (0, 1)
        assert began.wait(20)
        if interrupted:
            raise KeyboardInterrupt
        yield 2

    def long(item: int) -> None:
        if item:
            began.set()
            assert closed.wait(20)

    before = threading.active_count()
    with closing(map_ahead(long, inputs(), closed=closed)) as results:
        next(results)
        if interrupted:
            with pytest.raises(KeyboardInterrupt):
                next(results)
    assert closed.is_set() and threading.active_count() == before


def test_a_program_ends_after_its_thread() -> None:
    program = """
import time
from treeparse.data.prefetch import map_ahead

def slow(item):
    time.sleep(item)
    print("computed", item, flush=True)
    return item

results = map_ahead(slow, [0, 0.5])
next(results)
raise SystemExit(143)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (143, "computed 0\ncomputed 0.5\n", "")
