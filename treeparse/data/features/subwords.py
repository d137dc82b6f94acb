"""Convert words to the subwords that a pretrained transformer reads; long sentences are split into windows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from treeparse.data.features.padding import padded
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

WORD_LIMIT = 32  # subwords of a word
FORM_LIMIT = 1000  # characters of a word that are read at either end
MEMORY = 100_000  # words whose subwords are cached


@dataclass(frozen=True)
class SpecialSubwords:
    """A tokenizer's ids that are no part of a word.

    Attributes:
        before: the ids before every sentence.
        after: the ids after every sentence.
        unknown: the id of a word for which the tokenizer has no subwords.
        padding: the id that pads windows.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    unknown: int
    padding: int


class Window(NamedTuple):
    """Consecutive words of a sentence that the model reads together, with the weight of each here, from 0 to 1."""

    start: int
    shares: list[float]


class SubwordFeatures(Features):
    """Subwords by the tokenizer of a pretrained model, which is stored as plain data, so that no file is needed later.

    The features of ``B`` sentences that take ``W`` windows, the longest of ``S`` subwords:

    - ``subwords`` (W, S): ids, with the special ones before and after the sentence;
    - ``subword_lengths`` (W,): number of subwords without padding;
    - ``sentences`` (W,): index in the batch of the window's sentence;
    - ``words`` (W, S): the word, from 1, that a subword is part of; 0 for special ones and padding;
    - ``shares`` (W, S): share of the word's vector that comes from this window, float32; 0 for no word.

    A sentence that fits is one window. Others are split between words into overlapping windows, in which words are
    weighted by their distance from the window's edge.

    Args:
        tokenizer: the content of a ``tokenizer.json``.
        special: its special subwords.
        limit: the largest number of subwords, special ones included, that the model reads at once.
        window: the largest number of subwords of a window; 0 for the limit.
        overlap: the largest number of subwords that two windows share.
    """

    def __init__(
        self, tokenizer: Mapping[str, Any], special: SpecialSubwords, *, limit: int, window: int = 0, overlap: int = 0
    ) -> None:
        self.tokenizer, self.special = {**tokenizer, "truncation": None, "padding": None}, special
        self.tokenizer["pre_tokenizer"] = _with_space(tokenizer["pre_tokenizer"])
        self.tokenizer["normalizer"] = _with_mark(tokenizer.get("normalizer"))
        self.limit, self.window, self.overlap = limit, window, overlap
        if window > limit:
            raise TreeparseError(f"encoder.window must be at most {limit}, the model's limit, got {window}.")
        self._capacity = (window or limit) - len(special.before) - len(special.after)
        if self._capacity < 2:
            raise TreeparseError(f"A window of {window or limit} subwords is too small for words: make it larger.")
        self._word_limit = min(WORD_LIMIT, self._capacity // 2)
        self._start()

    def _start(self) -> None:
        self._encoder = _tokenizer(self.tokenizer)
        self._cached: dict[str, tuple[int, ...]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_encoder", "_cached")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def windowed(self, window: int, overlap: int) -> Self:
        """Return these features with other windows."""
        return type(self)(self.tokenizer, self.special, limit=self.limit, window=window, overlap=overlap)

    def extended(self, sentences: Sequence[Sentence], *, min_count: int = 2) -> Self:
        """Return these features, because a pretrained model learns no new subwords."""
        return self

    @property
    def ids(self) -> int:
        """One more than the largest id."""
        special = (*self.special.before, *self.special.after, self.special.unknown, self.special.padding)
        return max(*special, *self._encoder.get_vocab(with_added_tokens=True).values()) + 1

    def length(self, sentence: Sentence) -> int:
        """Return the number of subwords that the model reads; several windows count as if each were full.

        Otherwise a batch could have more subwords, with padding, than its sentences times the longest.
        """
        sizes = [len(self.subwords(form)) for form in sentence.forms]
        windows = len(self.windows(sizes))
        if windows > 1:
            return windows * (self.window or self.limit)
        return sum(sizes) + len(self.special.before) + len(self.special.after)

    def subwords(self, form: str) -> tuple[int, ...]:
        """Return one or more ids of a word; of a very long word, those at its two ends."""
        ids = self._cached.get(form)
        if ids is None:
            if len(self._cached) >= MEMORY:
                self._cached = {}
            ids = self._cached[form] = self._encoded(form)
        return ids

    def _encoded(self, form: str) -> tuple[int, ...]:
        text = form if len(form) <= 2 * FORM_LIMIT else form[:FORM_LIMIT] + form[-FORM_LIMIT:]
        text = text.encode("utf-8", "replace").decode()  # because of surrogates
        ids = self._encoder.encode([text], is_pretokenized=True, add_special_tokens=False).ids
        if len(ids) > self._word_limit:
            first = (self._word_limit + 1) // 2
            ids = ids[:first] + ids[len(ids) - self._word_limit + first :]
        return tuple(ids) or (self.special.unknown,)

    def windows(self, sizes: Sequence[int]) -> list[Window]:
        """Return the windows of a sentence from the sizes of its words in subwords; the shares of a word sum to 1."""
        if sum(sizes) <= self._capacity:
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
        """Yield the first word of each window and the one after its last; windows are as long as possible."""
        # A word fits into the other half, so each window has a new one.
        overlap = min(self.overlap, self._capacity // 2)
        start = end = 0
        while end < len(ends) - 1:
            while start < end and ends[end] - ends[start] > overlap:
                start += 1
            while end < len(ends) - 1 and ends[end + 1] - ends[start] <= self._capacity:
                end += 1
            yield start, end

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """Return the features of the sentences."""
        before, after = self.special.before, self.special.after
        rows: list[list[int]] = []
        words: list[list[int]] = []
        shares: list[list[float]] = []
        items: list[int] = []
        for item, sentence in enumerate(sentences):
            pieces = [self.subwords(form) for form in sentence.forms]
            for start, share in self.windows([*map(len, pieces)]):
                inside = pieces[start : start + len(share)]
                rows.append([*before, *(piece for word in inside for piece in word), *after])
                numbers = [start + word for word, ids in enumerate(inside, 1) for _ in ids]
                words.append([0] * len(before) + numbers)
                shares.append([0.0] * len(before) + [share[number - start - 1] for number in numbers])
                items.append(item)
        width = max(map(len, rows))
        filled = [row + [0.0] * (width - len(row)) for row in shares]
        return {
            "subwords": padded(rows, self.special.padding),
            "subword_lengths": torch.tensor([*map(len, rows)]),
            "sentences": torch.tensor(items),
            "words": padded([row + [0] * (width - len(row)) for row in words]),
            "shares": torch.tensor(filled, dtype=torch.float32),
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain data from which ``from_json`` makes equal features."""
        special = {name: list(ids) if isinstance(ids, tuple) else ids for name, ids in vars(self.special).items()}
        sizes = {"limit": self.limit, "window": self.window, "overlap": self.overlap}
        return {"tokenizer": self.tokenizer, "special": special, **sizes}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the features that ``to_json`` wrote."""
        special, sizes = data["special"], {name: data[name] for name in ("limit", "window", "overlap")}
        before, after = (tuple(special[name]) for name in ("before", "after"))
        numbers = (*before, *after, special["unknown"], special["padding"], *sizes.values())
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise TreeparseError("Ids of special subwords and sizes of windows must be integers, 0 or more.")
        ids = SpecialSubwords(before, after, special["unknown"], special["padding"])
        return cls(data["tokenizer"], ids, **sizes)


class SpelledSubwords(Features):
    """The features of ``SubwordFeatures``, and all of ``LexicalFeatures`` except words."""

    def __init__(self, subwords: SubwordFeatures, lexical: LexicalFeatures) -> None:
        self.subwords, self.lexical = subwords, lexical

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """Return the features of the sentences; raise if a tag that the model reads is missing."""
        return self.lexical(sentences) | self.subwords(sentences)

    def windowed(self, window: int, overlap: int) -> Self:
        """Return these features, with subwords in other windows."""
        return type(self)(self.subwords.windowed(window, overlap), self.lexical)

    def extended(self, sentences: Sequence[Sentence], *, min_count: int = 2) -> Self:
        return type(self)(self.subwords, self.lexical.extended(sentences, min_count=min_count))

    def check(self, sentence: Sentence) -> None:
        """Raise if a tag that the model reads is missing."""
        self.lexical.check(sentence)

    def sizes(self) -> Mapping[str, int]:
        return self.lexical.sizes()

    def tag_columns(self) -> Sequence[str]:
        return self.lexical.tag_columns()

    def length(self, sentence: Sentence) -> int:
        return self.subwords.length(sentence)

    def known_words(self) -> Vocabulary:
        return self.lexical.known_words()

    def vocabularies(self) -> Mapping[str, Vocabulary]:
        return {noun: table for noun, table in self.lexical.vocabularies().items() if noun != "word"}

    def to_json(self) -> dict[str, Any]:
        """Return plain data from which ``from_json`` makes equal features."""
        return {"subwords": self.subwords.to_json(), "lexical": self.lexical.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the features that ``to_json`` wrote."""
        return cls(SubwordFeatures.from_json(data["subwords"]), LexicalFeatures.from_json(data["lexical"]))


def _distance(ends: Sequence[int], word: int, span: tuple[int, int], words: int) -> float:
    """Return a word's distance to the nearer edge of its window, in subwords; the sentence's ends are no edges."""
    start, end = span
    left = ends[word] - ends[start] if start else ends[end]
    right = ends[end] - ends[word + 1] if end < words else ends[end]
    return 1.0 + min(left, right)


def _with_space(step: Any) -> Any:
    """Return a step of a tokenizer for single words; a step that reads spaces treats each word as one after a space."""
    if not isinstance(step, Mapping):
        return step
    if step.get("type") == "Sequence":
        return {**step, "pretokenizers": [_with_space(inner) for inner in step["pretokenizers"]]}
    if step.get("type") == "ByteLevel":
        return {**step, "add_prefix_space": True}
    if step.get("type") == "Metaspace" and step.get("prepend_scheme") == "never":
        return {**step, "prepend_scheme": "always"}
    return step


def _with_mark(step: Any) -> Any:
    """Return a normalizer for single words: if it replaces spaces by a mark, as Gemma's does, words begin with it."""
    steps = step.get("normalizers", [step]) if isinstance(step, Mapping) else []
    if any(inner["type"] == "Prepend" for inner in steps):
        return step
    marks = [inner["content"] for inner in steps if inner["type"] == "Replace" and inner["pattern"] == {"String": " "}]
    mark = "".join(marks[:1])
    return {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": mark}, *steps]} if mark.strip() else step


def _tokenizer(content: Mapping[str, Any]) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(json.dumps(content, ensure_ascii=False))
    except BaseException as error:  # the library's panics are no Exceptions
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise TreeparseError(f"The tokenizer cannot be read ({error}): copy the model again.") from error
    tokenizer.encode_special_tokens = True  # a word that looks like a special subword is a word
    return tokenizer
