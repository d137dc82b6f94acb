"""A binary heap of slots with the greatest (bound, key) on top."""

from treeparse.kernels.compile import exact_kernel


@exact_kernel
def push(heap, size, slot, bounds, keys):
    """Add a slot to a heap of ``size`` slots."""
    index = size
    while index:
        above = (index - 1) // 2
        if not _before(slot, heap[above], bounds, keys):
            break
        heap[index] = heap[above]
        index = above
    heap[index] = slot


@exact_kernel
def pop(heap, size, bounds, keys):
    """Take the top slot off a heap of ``size`` slots."""
    top, slot = heap[0], heap[size - 1]
    index, below = 0, 1
    while below < size - 1:
        if below + 1 < size - 1 and _before(heap[below + 1], heap[below], bounds, keys):
            below += 1
        if not _before(heap[below], slot, bounds, keys):
            break
        heap[index] = heap[below]
        index, below = below, 2 * below + 1
    heap[index] = slot
    return top


@exact_kernel
def _before(slot, other, bounds, keys):
    return bounds[slot] > bounds[other] or (bounds[slot] == bounds[other] and keys[slot] > keys[other])


@exact_kernel
def is_tied(heap, size, bounds):
    """Whether another slot of a heap has the bound of the top slot."""
    return (size > 1 and bounds[heap[1]] == bounds[heap[0]]) or (size > 2 and bounds[heap[2]] == bounds[heap[0]])
