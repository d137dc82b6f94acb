"""Files of word vectors, as other programs write them."""

import struct
from collections.abc import Mapping, Sequence


def word2vec(rows: Mapping[str, Sequence[float]], *, count: int | None = None, end: bytes = b"\n") -> bytes:
    """A file as word2vec writes it; Google's own has no line ends."""
    size = len(next(iter(rows.values())))
    entries = (word.encode() + b" " + struct.pack(f"<{size}f", *row) + end for word, row in rows.items())
    return f"{len(rows) if count is None else count} {size}\n".encode() + b"".join(entries)
