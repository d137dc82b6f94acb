"""Sentences that are too long for the memory of this machine."""

from collections.abc import Iterable

from treeparse.model.inference.given import UnfitSentenceError
from treeparse.model.scorers.kind import machine_memory

ARC_BYTES = 60  # at least, for the scores of an arc and what parsing makes of them
PART_BYTES = 8  # at least, for the score of a part of three words and its copy


def check_lengths(lengths: Iterable[int], kinds: int, first: int) -> None:
    """Raise if this machine cannot hold the scores of a sentence.

    Args:
        lengths: the words of each sentence.
        kinds: how many kinds of part of three words have scores.
        first: the index of the first sentence, for the error.

    Raises:
        UnfitSentenceError: what the sentence needs, and what this machine has.
    """
    memory = machine_memory()
    for index, words in enumerate(lengths, first):
        nodes = words + 1
        needed = nodes**2 * (ARC_BYTES + nodes * kinds * PART_BYTES)
        if memory is not None and needed > memory:
            raise UnfitSentenceError(
                f"it has {words:,} words, so that its scores need more than {needed / 1e9:,.0f} GB of memory, but this "
                f"machine has {memory / 1e9:,.0f} GB; treeparse predict --max-words leaves out longer sentences",
                index,
            )
