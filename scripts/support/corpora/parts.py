"""What each part of parsing a corpus takes alone: reading, tokenisation, the parser, writing, the disk."""

import gzip
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from treeparse import Parser
from treeparse.corpus import parse_documents
from treeparse.corpus.writers import ConlluWriter
from treeparse.data import ConlluSentence, read_conllu
from treeparse.data.raw_text import tokenizer_named

NETWORK = 10e9 / 8  # bytes a second of a usual network card of a server: 10 Gbit/s


def parts(run: Path, sentences: Sequence[ConlluSentence], folder: Path) -> Iterator[str]:
    """Words a second of each part, one thread, and how many cores the disk and a network keep busy."""
    words = sum(len(each.words) for each in sentences)
    text = "".join(each.text for each in sentences)
    plain, packed, output = folder / "parts.conllu", folder / "parts.conllu.gz", folder / "parts.out"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    parser, tokenize = Parser.from_pretrained(run), tokenizer_named("spacy:en")
    lines = [" ".join(each.words.forms) for each in sentences]
    parsed = [*parse_documents(parser, lines)]

    def pack() -> None:
        output.write_text("".join(map(ConlluWriter().pack, parsed)), encoding="utf-8")

    speeds = {
        "reading CoNLL-U": _speed(words, lambda: _exhaust(read_conllu(plain))),
        "reading CoNLL-U, gzip": _speed(words, lambda: _exhaust(read_conllu(packed))),
        "tokenisation (`spacy:en`)": _speed(words, lambda: _exhaust(map(list, map(tokenize, lines)))),
        "the parser `tiny`, sentences in memory": _speed(words, lambda: _exhaust(parser.parse(map(str.split, lines)))),
        "writing CoNLL-U": _speed(words, pack),
    }
    yield "\n## Where the next limit lies\n"
    yield "| part | words/s of a core |"
    yield "|:--|--:|"
    yield from (f"| {name} | {speed:,.0f} |" for name, speed in speeds.items())
    size = plain.stat().st_size + output.stat().st_size
    reading, writing = _disk(folder / "disk")
    together = ("reading CoNLL-U", "the parser `tiny`, sentences in memory", "writing CoNLL-U")
    core = size / words / sum(1 / speeds[name] for name in together)
    disk = 2 / (1 / reading + 1 / writing)
    yield f"\nA word takes {size / words:.0f} bytes of files, its input and its output, so that a core is busy with"
    yield f"{core / 1e6:.1f} MB/s of these. This machine's disk (cold reads {reading / 1e6:,.0f} MB/s,"
    yield f"synchronised writes {writing / 1e6:,.0f} MB/s) serves about {disk / core:,.0f} cores, and a network of"
    yield f"10 Gbit/s {NETWORK / core:,.0f}."


def _exhaust(items: Iterable[object]) -> None:
    for _ in items:
        pass


def _speed(words: int, work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return words / (time.perf_counter() - started)


def _disk(path: Path, size: int = 1 << 30) -> tuple[float, float]:
    """Bytes a second of reading a file that no cache holds, and of writing it down to the disk."""
    block, started = os.urandom(1 << 24), time.perf_counter()
    with path.open("wb") as stream:
        for _ in range(size // len(block)):
            stream.write(block)
        stream.flush()
        os.fsync(stream.fileno())
        writing = size / (time.perf_counter() - started)
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    started = time.perf_counter()
    with path.open("rb", buffering=0) as stream:
        while stream.read(1 << 24):
            pass
    path.unlink()
    return size / (time.perf_counter() - started), writing
