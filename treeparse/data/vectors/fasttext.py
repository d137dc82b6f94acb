"""Word vectors in fastText's model files, ``.bin``, with vectors of words and of n-grams (Bojanowski et al. 2017)."""

import struct
from collections.abc import Container, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from treeparse.data.files import display_name
from treeparse.errors import DataError

MAGIC = struct.pack("<i", 793712314)
_VERSIONS = (11, 12)
_SUPERVISED = 3
_MAX_WORD = 100_000  # bytes
_MAX_NGRAM = 100  # characters; reading a word takes time in proportion
_END_OF_SENTENCE = "</s>"  # has no n-grams
_FNV_START, _FNV_PRIME = 2166136261, 16777619


class _Model(NamedTuple):
    """The part of a model before its vectors: the words, the lengths of n-grams, and the number of hash buckets."""

    size: int
    buckets: int
    shortest: int
    longest: int
    words: list[bytes]
    start: int  # of the vectors, in the file
    rows: int


def fasttext_entries(
    path: str | Path, limit: int | None = None, only: Container[str] | None = None
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the first ``limit`` words, or those of them in ``only``, with their vectors (size,) float32.

    The vectors are memory-mapped, because those of n-grams are read in any order.

    Raises:
        DataError: the file is compressed, of another version, incomplete, or has a number that is not finite.
    """
    source = display_name(path)
    cut = DataError("this fastText model is incomplete: download it again", source=source)
    if not Path(path).is_file():
        raise DataError("a fastText model cannot be read from a pipe: name its file", source=source)
    with open(path, "rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise DataError("a fastText model cannot be read compressed: decompress it", source=source)
        try:
            model = _read_model(stream, source)
        except (struct.error, EOFError) as error:
            raise cut from error
    if model.start + 4 * model.rows * model.size > Path(path).stat().st_size:
        raise cut
    table = np.memmap(path, "<f4", "r", model.start, (model.rows, model.size))
    for index, form in enumerate(model.words[:limit]):
        word = form.decode(errors="replace")
        if only is None or word in only:
            grams = [] if word == _END_OF_SENTENCE else ngrams(form, model.shortest, model.longest, model.buckets)
            row = table[[index, *(len(model.words) + gram for gram in grams)]].mean(0, dtype=np.float32)
            if not word or not np.isfinite(row).all():
                raise DataError(f"vector {index + 1:,} must have a word and finite numbers", source=source)
            yield word, row


def ngrams(word: bytes, shortest: int, longest: int, buckets: int) -> list[int]:
    """Return the hashes, below ``buckets``, of the n-grams of a word that is enclosed in "<" and ">".

    ``shortest`` and ``longest`` are numbers of characters; "<" and ">" alone are no n-grams. The hash is fastText's:
    FNV-1a over signed bytes.
    """
    if not buckets:
        return []
    text = b"<" + word + b">"
    starts = [index for index, byte in enumerate(text) if byte & 0xC0 != 0x80]
    ends = [*starts[1:], len(text)]
    hashes = []
    for first, start in enumerate(starts):
        value, begin = _FNV_START, start
        for length, end in enumerate(ends[first : first + longest], 1):
            for byte in text[begin:end]:
                signed = byte if byte < 128 else byte | 0xFFFFFF00
                value = (value ^ signed) * _FNV_PRIME & 0xFFFFFFFF
            begin = end
            if length >= shortest and not (length == 1 and (start == 0 or end == len(text))):
                hashes.append(value % buckets)
    return hashes


def _read_model(stream: BinaryIO, source: str) -> _Model:
    version, size, *_, kind, buckets, shortest, longest, _ = _unpack(stream, "13i")
    _unpack(stream, "d")
    if version not in _VERSIONS:
        problem = f"the version of a fastText model must be 11 or 12, got {version}: export its vectors as text, a .vec"
        raise DataError(problem, source=source)
    if version == 11 and kind == _SUPERVISED:
        longest = 0  # because supervised models of this version have no n-grams
    entries, count, _, _, pruned = _unpack(stream, "iiiqq")
    if pruned >= 0:
        raise DataError("this fastText model is pruned: export its vectors as text, a .vec", source=source)
    words = []
    for _ in range(entries):
        word = _word(stream)
        _, is_label = _unpack(stream, "qb")
        if not is_label:
            words.append(word)
    (quantised,) = _unpack(stream, "?")
    if quantised:
        raise DataError("this fastText model is quantised: export its vectors as text, a .vec", source=source)
    rows, columns = _unpack(stream, "qq")
    has_ngrams = 0 <= shortest <= longest <= _MAX_NGRAM and buckets >= 0
    contradicts = len(words) != count or columns != size or size < 1 or rows < count + (buckets if longest else 0)
    if contradicts or (longest and not has_ngrams):
        raise DataError("the sizes in this fastText model contradict each other: download it again", source=source)
    return _Model(size, buckets if longest else 0, shortest, longest, words, stream.tell(), rows)


def _unpack(stream: BinaryIO, form: str) -> tuple[int, ...]:
    layout = struct.Struct(f"<{form}")
    return layout.unpack(stream.read(layout.size))


def _word(stream: BinaryIO) -> bytes:
    """Return the bytes up to a zero."""
    word = bytearray()
    while (byte := stream.read(1)) != b"\0":
        if not byte or len(word) > _MAX_WORD:
            raise EOFError
        word += byte
    return bytes(word)
