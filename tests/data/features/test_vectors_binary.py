"""word2vec's binary files, written by hand as its source writes them."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.vector_files import word2vec

from treeparse.data.features.vector_files import WordVectors, read_vectors
from treeparse.errors import DataError

ROWS = {"the": (0.5, -1.0, 2.25, 1e-3), "Straße": (1.0, 0.0, -3.25, 7.0), ",": (4.0, 5.0, 6.0, 8.0)}


def written(folder: Path, data: bytes) -> Path:
    path = folder / "some.bin"
    path.write_bytes(data)
    return path


def as_dict(vectors: WordVectors) -> dict[str, object]:
    return {word: pytest.approx(row) for word, row in zip(vectors.words, vectors.table.tolist(), strict=True)}


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("packed", [False, True])
def test_word2vec(tmp_path: Path, end: bytes, packed: bool) -> None:
    data = word2vec(ROWS, end=end)
    path = written(tmp_path, gzip.compress(data) if packed else data)
    assert as_dict(read_vectors(path)) == ROWS
    assert as_dict(read_vectors(path, max_vectors=2)) == {word: ROWS[word] for word in ("the", "Straße")}
    assert as_dict(read_vectors(path, only={",", "other"})) == {",": ROWS[","]}


def test_a_file_of_several_pieces(tmp_path: Path) -> None:
    """Longer than what is read at once, with vectors whose bytes look like spaces, line ends and words."""
    values = [*ROWS["the"], *struct.unpack("<2f", b"a b\n \n c")]
    table = np.random.default_rng(0).choice(np.array(values, "<f4"), (9000, 50))
    data = b"".join(b"w%d %b\n" % (number, row.tobytes()) for number, row in enumerate(table))
    vectors = read_vectors(written(tmp_path, b"9000 50\n" + data))
    assert vectors.words == tuple(f"w{number}" for number in range(9000))
    assert torch.equal(vectors.table, torch.from_numpy(table))


def test_words_of_any_bytes_and_twice(tmp_path: Path) -> None:
    first, second = (struct.pack("<2f", *row) for row in ((1, 2), (3, 4)))
    data = b"3 2\nb\xff " + first + b"\nb\xff " + second + b"\n" + "x\u00a0y ".encode() + second
    assert as_dict(read_vectors(written(tmp_path, data))) == {"b\ufffd": (1, 2), "x\u00a0y": (3, 4)}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (word2vec(ROWS)[:-2], "ends in or before vector 3 of 3"),
        (word2vec(ROWS, count=5), "ends in or before vector 4 of 5"),
        (word2vec(ROWS, count=2), "bytes follow the last of the 2 vectors of size 4"),
        (word2vec(ROWS | {"x": (1.0, float("nan"), 2.0, 3.0)}), "vector 4 must have a word and 4 finite numbers"),
        (word2vec(ROWS | {"": (1.0, 1.0, 2.0, 3.0)}), "vector 4 must have a word"),
    ],
)
def test_faults_of_word2vecs_files(tmp_path: Path, data: bytes, problem: str) -> None:
    with pytest.raises(DataError, match=rf"some\.bin: .*{problem}"):
        read_vectors(written(tmp_path, data))
