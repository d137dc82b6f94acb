"""How the C library manages the memory of this process."""

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # parameters of glibc's mallopt
KEPT = 2**29  # bytes that may be free at the end of the heap
LARGEST = 2**25  # bytes of an array on the heap: the most that mallopt takes


def keep_freed_memory() -> bool:
    """Let glibc keep the memory of freed arrays for the next ones; return whether it does. Elsewhere do nothing.

    Otherwise glibc returns the memory of large arrays to the system, and the system clears it before it lends it again:
    this took a twentieth of a training step, and a tenth where trees score parts of three words.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none, or one that does nothing
    return mallopt is not None and mallopt(MMAP_THRESHOLD, LARGEST) == mallopt(TRIM_THRESHOLD, KEPT) == 1
