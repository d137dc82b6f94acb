"""A batch of three sentences of which not all heads and labels are known."""

import torch

from treeparse.batch import Batch

LENGTHS = torch.tensor([4, 2, 3])
HEADS = torch.tensor([[-1, 2, 0, 2, 3], [-1, 2, 0, -1, -1], [-1, 0, -1, 1, -1]])
LABELS = torch.tensor([[-1, 0, 1, 1, 0], [-1, 1, -1, -1, -1], [-1, 0, 1, 1, -1]])
BATCH = Batch(LENGTHS, torch.arange(3), {}, HEADS, LABELS)


def over_and_over(batch: Batch, count: int) -> Batch:
    """A batch of trees, so many times."""
    optional = (batch.heads, batch.labels, batch.allowed)
    copies = [part if part is None else torch.cat([part] * count) for part in optional]
    lengths = batch.lengths.repeat(count)
    heads, labels, allowed = copies
    return Batch(lengths, torch.arange(len(lengths)), {}, heads, labels, allowed)
