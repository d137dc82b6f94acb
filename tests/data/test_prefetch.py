"""Items made ahead: in order, no more than were asked for, faults in their place, and no thread is left behind."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.waiting import wait_until

from treeparse.data.prefetch import prefetched


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_items_come_in_order_and_not_too_early(ahead: int) -> None:
    made = list[int]()

    def items() -> Iterator[int]:
        for item in range(20):
            made.append(item)
            yield item

    found = prefetched(items(), ahead)
    assert not made
    for used in range(20):
        assert next(found) == used
        # The last of them waits for a place.
        wait_until(lambda used=used: len(made) == min(20, used + ahead + 2), seconds=4)
        time.sleep(0.01)
        assert len(made) <= used + ahead + 2
    assert next(found, None) is None


def test_faults_stand_in_their_place() -> None:
    def items() -> Iterator[int]:
        yield from (1, 2)
        raise OSError("the disk is gone")

    found = prefetched(items())
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        next(found)
    assert next(found, None) is None


def test_no_thread_outlives_its_iterator() -> None:
    before = threading.active_count()
    found = prefetched(iter(range(10**9)))
    assert next(found) == 0
    assert threading.active_count() == before + 1
    del found
    wait_until(lambda: threading.active_count() == before, seconds=4)


def test_a_program_ends_while_a_thread_waits(tmp_path: Path) -> None:
    program = """
import threading
from prefetch import prefetched

def items():
    yield "first"
    threading.Event().wait()

found = prefetched(items())
print(next(found))
"""
    shutil.copy(prefetched.__code__.co_filename, tmp_path / "prefetch.py")  # alone, without torch
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "first\n"
