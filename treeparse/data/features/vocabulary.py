"""Vocabularies: ids of strings, and their counts in the training data."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Self

from treeparse.errors import TreeparseError


class Vocabulary:
    """Strings with ids; ``specials`` have the first ids and no counts, then items follow, most frequent first.

    ``index`` maps a missing item to the special ``unknown``, if named, and raises otherwise.
    """

    items: tuple[str, ...]
    counts: tuple[int, ...]
    specials: tuple[str, ...]
    unknown: str | None

    def __init__(
        self,
        items: Sequence[str],
        counts: Sequence[int],
        *,
        specials: Sequence[str] = (),
        unknown: str | None = None,
    ) -> None:
        if len(items) != len(counts):
            raise TreeparseError(f"A vocabulary of {len(items)} items came with {len(counts)} counts.")
        self.items, self.counts, self.specials, self.unknown = tuple(items), tuple(counts), tuple(specials), unknown
        # Specials have a table of their own: a treebank may well hold a word spelled like one of them.
        self._special_ids = {special: index for index, special in enumerate(self.specials)}
        self._ids = {item: index for index, item in enumerate(self.items, len(self.specials))}
        if len(self._ids) != len(self.items) or len(self._special_ids) != len(self.specials):
            raise TreeparseError("A vocabulary holds the same item twice.")
        self.unknown_id: int | None = None if unknown is None else self._special_ids[unknown]

    @classmethod
    def build(
        cls, items: Iterable[str], *, min_count: int = 1, specials: Sequence[str] = (), unknown: str | None = None
    ) -> Self:
        """Return the items with a count of at least ``min_count``, by descending count, ties by first appearance."""
        return cls((), (), specials=specials, unknown=unknown).extended(items, min_count=min_count)

    def extended(self, items: Iterable[str], *, min_count: int = 1) -> Self:
        """Return this vocabulary with the same ids, followed by the new items among these, as ``build`` takes them.

        The counts of its items grow by the counts here.
        """
        counts = Counter(items)
        new = [(item, count) for item, count in counts.most_common() if count >= min_count and item not in self]
        return type(self)(
            [*self.items, *(item for item, _ in new)],
            [
                *(count + counts[item] for item, count in zip(self.items, self.counts, strict=True)),
                *(n for _, n in new),
            ],
            specials=self.specials,
            unknown=self.unknown,
        )

    def __len__(self) -> int:
        return len(self.specials) + len(self.items)

    def __contains__(self, item: str) -> bool:
        return item in self._ids

    def special(self, name: str) -> int:
        """Return the id of a special."""
        return self._special_ids[name]

    def index(self, item: str) -> int:
        """Return the id of an item, or the id of the unknown; without an unknown raise ``KeyError``."""
        return self.indices((item,))[0]

    def indices(self, items: Iterable[str], *, missing: int | None = None) -> list[int]:
        """Return the ids of several items, and ``missing`` (by default the unknown's id) for missing items."""
        missing = self.unknown_id if missing is None else missing
        if missing is None:
            return [*map(self._ids.__getitem__, items)]
        return [*map(self._ids.get, items, repeat(missing))]

    def item(self, index: int) -> str:
        """Return the string of an id."""
        return self.specials[index] if index < len(self.specials) else self.items[index - len(self.specials)]

    def to_json(self) -> dict[str, Any]:
        """Return plain data from which ``from_json`` makes an equal vocabulary."""
        return {
            "specials": list(self.specials),
            "unknown": self.unknown,
            "items": [[item, count] for item, count in zip(self.items, self.counts, strict=True)],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the vocabulary that ``to_json`` wrote."""
        items, counts = zip(*data["items"], strict=True) if data["items"] else ((), ())
        return cls(items, counts, specials=data["specials"], unknown=data["unknown"])
