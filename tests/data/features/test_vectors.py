"""Files of word vectors: text as programs write it, and word2vec's binary files, written as its source does."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.vector_files import word2vec

from treeparse.data.features.vector_files import WordVectors, read_vectors
from treeparse.errors import DataError, TreeparseError

ROWS = {"the": (0.5, -1.0, 2e-3), "Straße": (1.0, 0.0, -3.25), ",": (4.0, 5.0, 6.0)}


def written(folder: Path, data: str | bytes) -> Path:
    path = folder / "some.vec"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def as_dict(vectors: WordVectors) -> dict[str, tuple[float, ...]]:
    assert vectors.table.dtype == torch.float32
    return dict(zip(vectors.words, map(tuple, vectors.table.tolist()), strict=True))


LINES = [f"{word} {' '.join(map(str, values))}" for word, values in ROWS.items()]


@pytest.mark.parametrize(
    "text",
    [
        "3 3\n" + "\n".join(LINES) + "\n",  # fastText
        "\n".join(LINES),  # GloVe, no last line end
        "3 3\n" + " \n".join(LINES) + " \n",  # word2vec: a space behind each line
        "3 3\r\n" + "\r\n".join(LINES) + "\r\n",
        "\ufeff" + "\n".join(LINES) + "\n\n",
        "7 3\n" + "\n".join(LINES) + "\n",  # the head of a longer file
    ],
)
def test_reads_the_formats_that_vectors_come_in(tmp_path: Path, text: str) -> None:
    expected = {word: pytest.approx(values) for word, values in ROWS.items()}
    vectors = read_vectors(written(tmp_path, text))
    assert as_dict(vectors) == expected and vectors.size == 3
    packed = tmp_path / "packed"  # which the content says, not the name
    packed.write_bytes(gzip.compress(text.encode()))
    assert as_dict(read_vectors(packed)) == expected
    assert as_dict(read_vectors(packed, only={"the", ",", "other"})) == {word: expected[word] for word in ("the", ",")}


def test_words_may_hold_spaces_and_what_other_tools_take_for_line_ends(tmp_path: Path) -> None:
    words = ["first", "at name@domain.com", ". . .", "a\rb", "10\u00a0000", "x\x85y", "\u2028", "v\x0bt", "1", "#"]
    text = "".join(f"{word} {number} -{number}\n" for number, word in enumerate(words))
    assert as_dict(read_vectors(written(tmp_path, text))) == {word: (n, -n) for n, word in enumerate(words)}


def test_of_several_vectors_the_first_is_taken_also_far_apart(tmp_path: Path) -> None:
    text = "".join(f"w{number % 6000} {number} 1\n" for number in range(10_000))
    vectors = read_vectors(written(tmp_path, text))
    assert as_dict(vectors) == {f"w{number}": (number, 1.0) for number in range(6000)}


def test_broken_utf8_in_a_word_is_replaced(tmp_path: Path) -> None:
    assert as_dict(read_vectors(written(tmp_path, b"a 1 2\nb\xff 3 4\n"))) == {"a": (1, 2), "b\ufffd": (3, 4)}


@pytest.mark.parametrize("header", ["", "3 3\n"])
@pytest.mark.parametrize(("limit", "count"), [(1, 1), (2, 2), (3, 3), (10, 3)])
def test_limit_counts_vectors_and_not_the_header(tmp_path: Path, header: str, limit: int, count: int) -> None:
    path = written(tmp_path, header + "\n".join(LINES) + "\n")
    assert read_vectors(path, max_vectors=limit).words == tuple(ROWS)[:count]


BAD_ROWS = ["b 3", "b 3 x", "b nan 3", "b 3 -inf", "b 3 1e39", "b 3  4", "b 3\t4", " 3 4", "b", "b 1_0 0x10"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        *((f"a 1 2\n{row}\n", 2) for row in BAD_ROWS),
        ("2 3\na 1 2\n", 2),
        ("".join(f"w{number} 1 2\n" for number in range(9000)) + "b 1 ?\n", 9001),
    ],
)
def test_bad_line_is_named(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(DataError, match=rf"some\.vec:{line}: the line must hold a word and [23] finite numbers"):
        read_vectors(written(tmp_path, text))


@pytest.mark.parametrize("text", ["word\n", "5 0\n", "\nword\n"])
def test_first_line_must_show_the_size(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"some\.vec:[12]: the first line must hold a word and its vector, or"):
        read_vectors(written(tmp_path, text))


@pytest.mark.parametrize("text", ["", "\n \n", "5 2\n"])
def test_file_without_a_vector(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"some\.vec: the file holds no vector"):
        read_vectors(written(tmp_path, text))


def test_faults_of_the_call(tmp_path: Path) -> None:
    with pytest.raises(TreeparseError, match="max_vectors must be at least 1, got 0"):
        read_vectors(written(tmp_path, "a 1\n"), max_vectors=0)
    with pytest.raises(FileNotFoundError):
        read_vectors(tmp_path / "missing.vec")


def test_embedding_has_unit_deviation_a_mean_for_the_unknown_and_zeros_for_padding_and_root() -> None:
    # The mean of all values is 0.
    vectors = WordVectors(("a", "b"), torch.tensor([[3.0, -1.0, -1.0], [-1.0, 2.0, -2.0]]))
    deviation = (sum(value**2 for value in (3, 1, 1, 1, 2, 2)) / 6) ** 0.5
    rows = torch.tensor([[0, 0, 0], [1, 0.5, -1.5], [0, 0, 0], [3, -1, -1], [-1, 2, -2]]) / deviation
    torch.testing.assert_close(vectors.embedding(), rows)
    vocabulary = vectors.vocabulary()
    assert [vocabulary.index(word) for word in ("a", "b", "c")] == [3, 4, 1]
    assert vectors.table[0, 0] == 3


def test_equal_values_are_not_divided_by_zero() -> None:
    assert WordVectors(("a",), torch.ones(1, 2)).embedding().tolist() == [[0, 0], [1, 1], [0, 0], [1, 1]]


def test_of_words_that_are_not_wanted_only_the_length_is_looked_at(tmp_path: Path) -> None:
    path = written(tmp_path, "a 1 2\nb x nan\n. . 3 4\nc 5 6\n")
    assert as_dict(read_vectors(path, only={". .", "c"})) == {". .": (3, 4), "c": (5, 6)}
    assert as_dict(read_vectors(path, only={". .", "c"}, max_vectors=3)) == {". .": (3, 4)}
    with pytest.raises(DataError, match=r"some\.vec:2: the line"):
        read_vectors(path, only={"b"})
    with pytest.raises(DataError, match="no vector of the words to read"):
        read_vectors(path, only={"d"})
    with pytest.raises(DataError, match=r"some\.vec:2: the line"):
        read_vectors(written(tmp_path, "a 1 2\nb 1\n"), only={"a"})


BINARY_ROWS = {"the": (0.5, -1.0, 2.25, 1e-3), "Straße": (1.0, 0.0, -3.25, 7.0), ",": (4.0, 5.0, 6.0, 8.0)}


def written_binary(folder: Path, data: bytes) -> Path:
    path = folder / "some.bin"
    path.write_bytes(data)
    return path


def near_dict(vectors: WordVectors) -> dict[str, object]:
    return {word: pytest.approx(row) for word, row in zip(vectors.words, vectors.table.tolist(), strict=True)}


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("packed", [False, True])
def test_word2vec(tmp_path: Path, end: bytes, packed: bool) -> None:
    data = word2vec(BINARY_ROWS, end=end)
    path = written_binary(tmp_path, gzip.compress(data) if packed else data)
    assert near_dict(read_vectors(path)) == BINARY_ROWS
    assert near_dict(read_vectors(path, max_vectors=2)) == {word: BINARY_ROWS[word] for word in ("the", "Straße")}
    assert near_dict(read_vectors(path, only={",", "other"})) == {",": BINARY_ROWS[","]}


def test_a_file_of_several_pieces(tmp_path: Path) -> None:
    """Longer than what is read at once, with vectors whose bytes look like spaces, line ends and words."""
    values = [*BINARY_ROWS["the"], *struct.unpack("<2f", b"a b\n \n c")]
    table = np.random.default_rng(0).choice(np.array(values, "<f4"), (9000, 50))
    data = b"".join(b"w%d %b\n" % (number, row.tobytes()) for number, row in enumerate(table))
    vectors = read_vectors(written_binary(tmp_path, b"9000 50\n" + data))
    assert vectors.words == tuple(f"w{number}" for number in range(9000))
    assert torch.equal(vectors.table, torch.from_numpy(table))


def test_words_of_any_bytes_and_twice(tmp_path: Path) -> None:
    first, second = (struct.pack("<2f", *row) for row in ((1, 2), (3, 4)))
    data = b"3 2\nb\xff " + first + b"\nb\xff " + second + b"\n" + "x\u00a0y ".encode() + second
    assert near_dict(read_vectors(written_binary(tmp_path, data))) == {"b\ufffd": (1, 2), "x\u00a0y": (3, 4)}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (word2vec(BINARY_ROWS)[:-2], "ends in or before vector 3 of 3"),
        (word2vec(BINARY_ROWS, count=5), "ends in or before vector 4 of 5"),
        (word2vec(BINARY_ROWS, count=2), "bytes follow the last of the 2 vectors of size 4"),
        (
            word2vec(BINARY_ROWS | {"x": (1.0, float("nan"), 2.0, 3.0)}),
            "vector 4 must have a word and 4 finite numbers",
        ),
        (word2vec(BINARY_ROWS | {"": (1.0, 1.0, 2.0, 3.0)}), "vector 4 must have a word"),
    ],
)
def test_faults_of_word2vecs_files(tmp_path: Path, data: bytes, problem: str) -> None:
    with pytest.raises(DataError, match=rf"some\.bin: .*{problem}"):
        read_vectors(written_binary(tmp_path, data))
