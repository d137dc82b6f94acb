import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from treeparse.data.batches import unlabelled
from treeparse.data.batches.unlabelled import UnlabelledText
from treeparse.data.conllu import ConlluSentence
from treeparse.data.tokenised import read_text
from treeparse.errors import DataError, TreeparseError

LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6]  # words of the sentences of `text`, 31 in all


@pytest.fixture
def text(tmp_path: Path) -> Path:
    lines = [" ".join(f"w{number}.{word}" for word in range(length)) for number, length in enumerate(LENGTHS)]
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def expected_indices(lengths: list[int], words: int, epoch: int) -> list[int]:
    """Places of the sentences that begin within the words of an epoch, counted word by word."""
    owners = itertools.cycle([(place, word) for place, length in enumerate(lengths) for word in range(length)])
    span = itertools.islice(owners, epoch * words, (epoch + 1) * words)
    return [place for place, word in span if word == 0]


@pytest.mark.parametrize("words", [1, 2, 7, 10, 31, 62, 75])
def test_an_epoch_takes_the_sentences_that_begin_within_its_words(text: Path, words: int) -> None:
    stream = UnlabelledText([text], words=words, max_words=100)
    for epoch in range(40):
        share = stream.share(epoch)
        assert [sentence.index for sentence in share] == expected_indices(LENGTHS, words, epoch)
        assert all(sentence.words.forms[0] == f"w{sentence.index}.0" for sentence in share)
        assert all(len(sentence.words) == LENGTHS[sentence.index] for sentence in share)


@pytest.mark.parametrize("words", [7, 75])
def test_an_epoch_has_the_same_sentences_whatever_came_before(text: Path, words: int) -> None:
    stream = UnlabelledText([text], words=words, max_words=100)
    for epoch in (0, 30, 31, 5, 0, 0, 999, 3):
        assert [sentence.index for sentence in stream.share(epoch)] == expected_indices(LENGTHS, words, epoch)
        assert stream.share(epoch) == UnlabelledText([text], words=words, max_words=100).share(epoch)


def test_a_pass_has_every_sentence_once(text: Path) -> None:
    stream = UnlabelledText([text], words=10, max_words=100)
    taken = [sentence.index for epoch in range(31) for sentence in stream.share(epoch)]  # 310 words: ten passes
    assert taken == list(range(len(LENGTHS))) * 10


def test_no_more_is_read_than_is_needed(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counting(path: Path, **options: object) -> Iterator[ConlluSentence]:
        for sentence in read_text(path, **options):  # pyright: ignore[reportArgumentType]
            read.append(sentence.ordinal)
            yield sentence

    monkeypatch.setattr(unlabelled, "read_text", counting)
    stream = UnlabelledText([text], words=9, max_words=100)
    assert not read
    for epoch, upto in enumerate([4, 6, 8]):  # 3 + 1 + 4 + 1; 5 + 9, of which 5 are of the third nine; ...
        stream.share(epoch)
        assert read == list(range(upto))
        stream.share(epoch)
        assert len(read) == upto
    read.clear()
    UnlabelledText([text], words=31, max_words=100).share(500)
    assert len(read) <= 2 * len(LENGTHS), "whole passes are not read to be left out"


def test_files_of_all_kinds_follow_each_other_without_their_trees(tmp_path: Path) -> None:
    (tmp_path / "a.tok").write_text("one two\n", encoding="utf-8")
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"\nfour five six\n"))
    rows = "1\tthree\t_\tNUM\tCD\tX=Y\t0\troot\t_\t_\n\n"
    (tmp_path / "b.conllu").write_text(rows, encoding="utf-8")
    patterns = [tmp_path / "a.tok", tmp_path / "b.conllu", str(tmp_path / "*.gz")]
    share = UnlabelledText(patterns, words=6, max_words=100).share(0)
    assert [sentence.words.forms for sentence in share] == [("one", "two"), ("three",), ("four", "five", "six")]
    assert all(sentence.words.heads is None and sentence.words.labels is None for sentence in share)
    assert (share[1].words.upos, share[1].words.xpos, share[1].words.feats) == (("NUM",), ("CD",), ("X=Y",))
    assert [Path(sentence.name).name for sentence in share] == ["a.tok:1", "b.conllu:1", "c.txt.gz:2"]


def test_long_sentences_are_left_out(text: Path) -> None:
    stream = UnlabelledText([text], words=16, max_words=5)
    short = [length for length in LENGTHS if length <= 5]
    assert [len(sentence.words) for sentence in stream.share(0)] == short
    assert [sentence.index for sentence in stream.share(3)] == list(range(len(short)))
    with pytest.raises(TreeparseError, match=r"text\.txt can be used: none is valid and has at most 0 words\."):
        UnlabelledText([text], words=16, max_words=0).share(0)


def test_faulty_sentences_stop_or_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\nbad \xe9\ntwo\rhalves\nthree\n")
    (tmp_path / "b.conllu").write_text("1\tx\n\n1\tfour\t_\t_\t_\t_\t_\t_\t_\t_\n\n", encoding="utf-8")
    paths = [tmp_path / "a.txt", tmp_path / "b.conllu"]
    with pytest.raises(DataError, match=r"a\.txt:2: byte 5 of the line"):
        UnlabelledText(paths, words=3, max_words=100).share(0)
    told: list[DataError] = []
    share = UnlabelledText(paths, words=3, max_words=100, on_invalid=told.append).share(0)
    assert [sentence.words.forms for sentence in share] == [("one",), ("three",), ("four",)]
    first, second = map(str, paths)
    assert [(fault.source, fault.line) for fault in told] == [(first, 2), (first, 3), (second, 1)]


def test_what_cannot_be_read_again_and_again_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^<stdin>: a pipe cannot be read more than once"):
        UnlabelledText(["-"], words=1, max_words=1)
    with pytest.raises(TreeparseError, match=r"there is no file .*none\.txt"):
        UnlabelledText([tmp_path / "none.txt"], words=1, max_words=1)
    with pytest.raises(TreeparseError, match="at least one file"):
        UnlabelledText([], words=1, max_words=1)


def test_digests_tell_files_apart_but_not_their_names(text: Path, tmp_path: Path) -> None:
    def digests(path: Path) -> list[tuple[int, str]]:
        return UnlabelledText([path], words=1, max_words=100).digests()

    before, data = digests(text), text.read_bytes()
    (tmp_path / "copy.txt").write_bytes(data)
    assert digests(tmp_path / "copy.txt") == before
    for other in (data + b"more\n", b"W" + data[1:]):
        (tmp_path / "copy.txt").write_bytes(other)
        assert digests(tmp_path / "copy.txt") != before
