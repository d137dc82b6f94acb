"""Work on many sentences at once: checked, in batches of like length, results in the order of the sentences."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from treeparse.core import Sentence, TreeparseError

from .batching import BucketBatchSampler

T = TypeVar("T")


def map_batches(
    function: Callable[[list[int], list[Sentence]], Sequence[T]],
    sentences: Sequence[Sentence | Sequence[str]],
    *,
    max_words: int,
    max_squared: int | None = None,
) -> list[T]:
    """What a function finds for each sentence.

    Args:
        function: the results for a batch, given the places of its sentences, counted from 0, and the sentences.
        sentences: sentences, or lists of words.
        max_words: as for `BucketBatchSampler`.
        max_squared: likewise.

    Raises:
        TreeparseError: for a sentence that is a string, or has no words.
    """
    given = [_sentence(sentence, place) for place, sentence in enumerate(sentences)]
    found: dict[int, T] = {}
    for places in BucketBatchSampler([len(s) for s in given], max_words=max_words, max_squared=max_squared):
        found |= zip(places, function(places, [given[place] for place in places]), strict=True)
    return [found[place] for place in range(len(given))]


def _sentence(words: Sentence | Sequence[str], place: int) -> Sentence:
    """A sentence to parse, the ``place``-th of its list."""
    if isinstance(words, str):
        raise TreeparseError(f"Sentence {place} (counted from 0) is a string: give it as a list of words.")
    sentence = words if isinstance(words, Sentence) else Sentence(tuple(words))
    if not len(sentence):
        raise TreeparseError(f"Sentence {place} (counted from 0) has no words: leave it out.")
    return sentence
