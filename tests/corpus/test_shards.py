"""Shards cover everything once and evenly; a span of a file has the sentences that start in it, with their places."""

import gzip
import itertools
import random
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.parsed_files import conllu, written

from treeparse.corpus.readers import READERS, TextReader
from treeparse.corpus.request import Shard
from treeparse.data.conllu import ConlluSentence
from treeparse.errors import DataError

SIZES = [
    [],
    [0],
    [7],
    [0, 0, 5, 0],
    [1, 1, 1],
    [100, 3, 0, 50, 49, 2],
    [random.Random(1).randrange(99) for _ in range(40)],
]


@pytest.mark.parametrize("sizes", SIZES, ids=len)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_every_file_and_every_byte_is_one_shards(sizes: list[int], count: int) -> None:
    shards = [Shard(number, count) for number in range(1, count + 1)]
    files = [shard.files(sizes) for shard in shards]
    assert sorted(itertools.chain.from_iterable(files)) == list(range(len(sizes)))
    assert all(places == sorted(places) for places in files)
    in_order = [(place, byte) for shard in shards for place, span in enumerate(shard.spans(sizes)) for byte in span]
    assert in_order == [(place, byte) for place, size in enumerate(sizes) for byte in range(size)]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_shards_are_even(count: int) -> None:
    sizes = SIZES[-1]
    shards = [Shard(number, count) for number in range(1, count + 1)]
    loads = [sum(sizes[place] for place in shard.files(sizes)) for shard in shards]
    assert max(loads) - min(loads) <= max(sizes)
    lengths = [sum(map(len, shard.spans(sizes))) for shard in shards]
    assert max(lengths) - min(lengths) <= 1


TEXTS = {
    "conllu": "\n\n" + conllu(["a"], ["b", "c"]) + "\n" + "# x\n1\tfaulty\n\n" + conllu(["é"], ["d"]).rstrip("\n"),
    "text": "a\n\nb c\n \nx\né\nd",
}


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_spans_share_out_the_sentences(tmp_path: Path, form: str, packed: bool) -> None:
    data = TEXTS[form].encode()
    path = Path(written(tmp_path / f"in{'.gz' * packed}", gzip.compress(data) if packed else data))
    reader = READERS[form]()
    assert reader.length(path) == len(data)

    def found(span: range | None) -> list[tuple[tuple[str, ...], int, int, str | None]]:
        sentences: list[ConlluSentence] = []
        for item in reader.items(path, span):
            with suppress(DataError):
                sentences += reader.sentences(item, None)
        return [(s.words.forms, s.line, s.ordinal, s.sent_id) for s in sentences]

    whole = found(None)
    assert [(forms, ordinal) for forms, _, ordinal, _ in whole if forms != ("x",)] == [
        *((("a",), 0), (("b", "c"), 1)),
        *((("é",), 3), (("d",), 4)),
    ]
    for count in range(1, len(data) + 3):
        spans = [Shard(number, count).spans([len(data)])[0] for number in range(1, count + 1)]
        assert list(itertools.chain.from_iterable(map(found, spans))) == whole


def test_what_cannot_be_read_twice_has_no_shards() -> None:
    for path in ("-", "/dev/null"):
        with pytest.raises(DataError, match=r"a pipe cannot be read more than once.*: write it to a file"):
            TextReader().length(Path(path))
