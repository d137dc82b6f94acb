"""From words to the subwords that a pretrained transformer reads, in windows where a sentence is too long for it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from treeparse.data.features.padding import padded
from treeparse.data.features.words import Features
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

WORD_LIMIT = 32  # subwords of a word
FORM_LIMIT = 1000  # characters of a word that are read at either end
MEMORY = 100_000  # words whose subwords are remembered


@dataclass(frozen=True)
class SpecialSubwords:
    """Ids of a tokenizer that stand for no part of a word.

    Attributes:
        before: what stands in front of every sentence.
        after: what stands behind it.
        unknown: what stands for a word of which the tokenizer leaves nothing.
        padding: what windows are filled up with.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    unknown: int
    padding: int


class Window(NamedTuple):
    """A stretch of a sentence's words that is read at once, and how much each counts there, between 0 and 1."""

    start: int
    shares: list[float]


class SubwordFeatures(Features):
    """Subwords by the tokenizer of a pretrained model, whose content is held as plain data: no file is needed again.

    The features of ``B`` sentences that take ``W`` windows, the longest of ``S`` subwords:

    - ``subwords`` (W, S): ids, special ones in front and behind included;
    - ``subword_lengths`` (W,): how many of them are no padding;
    - ``sentences`` (W,): the place of the window's sentence in the batch;
    - ``words`` (W, S): the word, counted from 1, that a subword is part of; 0 for special ones and padding;
    - ``shares`` (W, S): how much of the word's vector comes from this window, float32; 0 where there is no word.

    A sentence that fits is one window. Others are cut between words into overlapping ones, and a word counts in each by
    its distance from the window's edge.

    Args:
        tokenizer: what a ``tokenizer.json`` holds.
        special: its special subwords.
        limit: most subwords of a window, special ones included, that the model reads.
        window: the same as it is wished; 0 for the limit.
        overlap: most subwords that two windows share.
    """

    def __init__(
        self, tokenizer: Mapping[str, Any], special: SpecialSubwords, *, limit: int, window: int = 0, overlap: int = 0
    ) -> None:
        self.tokenizer, self.special = _for_words(tokenizer), special
        self.limit, self.window, self.overlap = limit, window, overlap
        if window > limit:
            raise TreeparseError(f"encoder.window is {window}, but the model reads at most {limit} subwords at once.")
        self._room = (window or limit) - len(special.before) - len(special.after)
        if self._room < 2:
            raise TreeparseError(f"A window of {window or limit} subwords has no room for words: make it larger.")
        self._word_limit = min(WORD_LIMIT, self._room // 2)
        self._start()

    def _start(self) -> None:
        self._encoder = _tokenizer(self.tokenizer)
        self._known: dict[str, tuple[int, ...]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_encoder", "_known")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def windowed(self, window: int, overlap: int) -> Self:
        """The same subwords in other windows."""
        return type(self)(self.tokenizer, self.special, limit=self.limit, window=window, overlap=overlap)

    def extended(self, sentences: Sequence[Sentence], *, min_count: int = 2) -> Self:
        """These features: a pretrained model learns no new subwords."""
        return self

    @property
    def ids(self) -> int:
        """One more than the largest id there is."""
        special = (*self.special.before, *self.special.after, self.special.unknown, self.special.padding)
        return max(*special, *self._encoder.get_vocab(with_added_tokens=True).values()) + 1

    def length(self, sentence: Sentence) -> int:
        """The number of subwords that are read; of a sentence of several windows, as if each were full.

        So no batch has more of them, padding included, than its sentences times the longest, whatever their windows.
        """
        sizes = [len(self.subwords(form)) for form in sentence.forms]
        windows = len(self.windows(sizes))
        if windows > 1:
            return windows * (self.window or self.limit)
        return sum(sizes) + len(self.special.before) + len(self.special.after)

    def subwords(self, form: str) -> tuple[int, ...]:
        """The ids of a word: at least one, of a very long word those at its two ends."""
        found = self._known.get(form)
        if found is None:
            if len(self._known) >= MEMORY:
                self._known = {}
            found = self._known[form] = self._found(form)
        return found

    def _found(self, form: str) -> tuple[int, ...]:
        text = form if len(form) <= 2 * FORM_LIMIT else form[:FORM_LIMIT] + form[-FORM_LIMIT:]
        text = text.encode("utf-8", "replace").decode()  # halves of characters
        ids = self._encoder.encode([text], is_pretokenized=True, add_special_tokens=False).ids
        if len(ids) > self._word_limit:
            first = (self._word_limit + 1) // 2
            ids = ids[:first] + ids[len(ids) - self._word_limit + first :]
        return tuple(ids) or (self.special.unknown,)

    def windows(self, sizes: Sequence[int]) -> list[Window]:
        """The windows of a sentence whose words have so many subwords; the shares of each word sum to 1."""
        if sum(sizes) <= self._room:
            return [Window(0, [1.0] * len(sizes))]
        ends = [0, *accumulate(sizes)]
        spans = list(self._spans(ends))
        weights = [[_distance(ends, word, span, len(sizes)) for word in range(*span)] for span in spans]
        totals = [0.0] * len(sizes)
        for (start, _), row in zip(spans, weights, strict=True):
            for word, weight in enumerate(row, start):
                totals[word] += weight
        return [
            Window(start, [weight / totals[word] for word, weight in enumerate(row, start)])
            for (start, _), row in zip(spans, weights, strict=True)
        ]

    def _spans(self, ends: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The first word of each window and the one behind it, as many words as there is room for."""
        overlap = min(self.overlap, self._room // 2)  # no word is longer than the other half: each window goes on
        start = end = 0
        while end < len(ends) - 1:
            while start < end and ends[end] - ends[start] > overlap:
                start += 1
            while end < len(ends) - 1 and ends[end + 1] - ends[start] <= self._room:
                end += 1
            yield start, end

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """The features of the sentences."""
        before, after = self.special.before, self.special.after
        rows: list[list[int]] = []
        words: list[list[int]] = []
        shares: list[list[float]] = []
        places: list[int] = []
        for place, sentence in enumerate(sentences):
            pieces = [self.subwords(form) for form in sentence.forms]
            for start, share in self.windows([*map(len, pieces)]):
                own = pieces[start : start + len(share)]
                rows.append([*before, *(piece for word in own for piece in word), *after])
                numbers = [start + word for word, ids in enumerate(own, 1) for _ in ids]
                words.append([0] * len(before) + numbers)
                shares.append([0.0] * len(before) + [share[number - start - 1] for number in numbers])
                places.append(place)
        width = max(map(len, rows))
        filled = [row + [0.0] * (width - len(row)) for row in shares]
        return {
            "subwords": padded(rows, self.special.padding),
            "subword_lengths": torch.tensor([*map(len, rows)]),
            "sentences": torch.tensor(places),
            "words": padded([row + [0] * (width - len(row)) for row in words]),
            "shares": torch.tensor(filled, dtype=torch.float32),
        }

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` turns back into equal features."""
        special = {name: list(ids) if isinstance(ids, tuple) else ids for name, ids in vars(self.special).items()}
        sizes = {"limit": self.limit, "window": self.window, "overlap": self.overlap}
        return {"tokenizer": self.tokenizer, "special": special, **sizes}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The features that :meth:`to_json` wrote."""
        special, sizes = data["special"], {name: data[name] for name in ("limit", "window", "overlap")}
        before, after = (tuple(special[name]) for name in ("before", "after"))
        numbers = (*before, *after, special["unknown"], special["padding"], *sizes.values())
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise TreeparseError("The ids of special subwords and the sizes of windows are no whole numbers from 0 up.")
        own = SpecialSubwords(before, after, special["unknown"], special["padding"])
        return cls(data["tokenizer"], own, **sizes)


def _distance(ends: Sequence[int], word: int, span: tuple[int, int], words: int) -> float:
    """How far a word is from the nearer edge of its window, in subwords; the sentence's own ends are no edges."""
    start, end = span
    left = ends[word] - ends[start] if start else ends[end]
    right = ends[end] - ends[word + 1] if end < words else ends[end]
    return 1.0 + min(left, right)


def _for_words(tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    """A tokenizer for words that stand alone: to those that see spaces, each word is one behind a space."""
    found = dict(tokenizer) | {"truncation": None, "padding": None}
    found["pre_tokenizer"] = _with_space(tokenizer["pre_tokenizer"])
    return found


def _with_space(step: Any) -> Any:
    if not isinstance(step, Mapping):
        return step
    if step.get("type") == "Sequence":
        return {**step, "pretokenizers": [_with_space(inner) for inner in step["pretokenizers"]]}
    if step.get("type") == "ByteLevel":
        return {**step, "add_prefix_space": True}
    if step.get("type") == "Metaspace" and step.get("prepend_scheme") == "never":
        return {**step, "prepend_scheme": "always"}
    return step


def _tokenizer(content: Mapping[str, Any]) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(json.dumps(content, ensure_ascii=False))
    except BaseException as error:  # of the library's own code, which has an own kind for what it did not foresee
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise TreeparseError(f"The tokenizer cannot be read ({error}): copy the model again.") from error
    tokenizer.encode_special_tokens = True  # a word that looks like a special subword is a word
    return tokenizer
