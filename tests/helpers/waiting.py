"""Waiting for what other threads and processes do."""

import time
from collections.abc import Callable

PATIENCE = 20.0  # seconds that a test waits at most


def wait_until(true: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for a condition, and fail where it does not come true in time."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not become true"
        time.sleep(0.002)
