"""Files of word vectors, as other programs write them."""

import struct
from collections.abc import Mapping, Sequence


def word2vec(rows: Mapping[str, Sequence[float]], *, count: int | None = None, end: bytes = b"\n") -> bytes:
    """A file as word2vec writes it; Google's own has no line ends."""
    size = len(next(iter(rows.values())))
    entries = (word.encode() + b" " + struct.pack(f"<{size}f", *row) + end for word, row in rows.items())
    return f"{len(rows) if count is None else count} {size}\n".encode() + b"".join(entries)


def fasttext(
    words: Sequence[str],
    table: Sequence[Sequence[float]],
    *,
    labels: Sequence[str] = (),
    version: int = 12,
    buckets: int = 0,
    grams: tuple[int, int] = (0, 0),
    pruned: int = -1,
    quantised: bool = False,
) -> bytes:
    """A model as fastText's Args::save, Dictionary::save and DenseMatrix::save write it, without what is behind."""
    size = len(table[0])
    # dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate; t
    args = struct.pack("<12id", size, 5, 5, 1, 5, 1, 2, 2, buckets, *grams, 100, 1e-4)
    counts = struct.pack("<iiiqq", len(words) + len(labels), len(words), len(labels), 100, pruned)
    entries = (
        name.encode() + b"\0" + struct.pack("<qb", 1, kind)
        for kind, names in enumerate((words, labels))
        for name in names
    )
    shape = struct.pack("<?qq", quantised, len(table), size)
    values = b"".join(struct.pack(f"<{size}f", *row) for row in table)
    return struct.pack("<ii", 793712314, version) + args + counts + b"".join(entries) + shape + values
