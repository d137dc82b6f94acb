"""Treebanks under a folder of them, and parts of these."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from treeparse.data import load_treebank
from treeparse.data.validation import DEPREL, DEPS, HEAD, ID
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, Sentence

SEED = 1  # of the heads that are hidden


@dataclass(frozen=True)
class Treebank:
    """Files under the folder of treebanks; training ends before a sentence, dev starts with one, as slices count."""

    name: str
    train: str
    dev: str
    test: str
    train_stop: int | None = None
    dev_start: int | None = None


EWT = Treebank(
    "EWT",
    "UD_English-EWT/en_ewt-ud-train.conllu",
    "UD_English-EWT/en_ewt-ud-dev.conllu",
    "UD_English-EWT/en_ewt-ud-test.conllu",
)
EWT_500 = Treebank("EWT-500", EWT.train, EWT.dev, EWT.test, train_stop=500)
TURKISH = Treebank(
    "Turkish-IMST",
    "UD_Turkish-IMST/tr_imst-ud-train.conllu",
    "UD_Turkish-IMST/tr_imst-ud-dev.conllu",
    "UD_Turkish-IMST/tr_imst-ud-test.conllu",
)
LATIN = Treebank(  # it has no dev file: the last tenth of its training sentences is held out
    "Latin-Perseus",
    "UD_Latin-Perseus/la_perseus-ud-train.conllu",
    "UD_Latin-Perseus/la_perseus-ud-train.conllu",
    "UD_Latin-Perseus/la_perseus-ud-test.conllu",
    train_stop=-134,
    dev_start=-134,
)


def part_of(path: Path, part: slice, folder: Path) -> Path:
    """A CoNLL-U file with a part of the sentences of another one: that one itself, or a file in the folder."""
    if part == slice(None):
        return path
    if not path.is_file():
        raise TreeparseError(f"There is no file {path}.")
    blocks = path.read_text(encoding="utf-8").rstrip("\n").split("\n\n")[part]
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / f"{path.stem}-{len(blocks)}.conllu"
    copy.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    return copy


def hide_half_of_the_heads(source: Path, target: Path) -> None:
    """Write a treebank with ``_`` as HEAD and DEPREL of every word with probability 1/2."""
    stream = random.Random(SEED)
    lines = []
    for line in source.read_text(encoding="utf-8").split("\n"):
        columns = line.split("\t")
        if len(columns) > 1 and columns[ID].isdecimal() and stream.random() < 0.5:
            columns[HEAD] = columns[DEPREL] = columns[DEPS] = EMPTY
        lines.append("\t".join(columns))
    target.write_text("\n".join(lines), encoding="utf-8")


EWT_FILES, LATIN_FILES, TURKISH_FILES = (each.train.removesuffix("train.conllu") for each in (EWT, LATIN, TURKISH))


class Parts(NamedTuple):
    """Parts of the files of a treebank: some training sentences, some dev sentences, all test sentences."""

    files: str  # what the names of its files start with
    train: slice = slice(None)
    dev: slice | None = slice(None)
    dev_file: str = "dev"
    half_of_the_heads: bool = False  # whether a random half of the training words are without head and label


def files_of(treebank: Parts, treebanks: Path, folder: Path) -> dict[str, object]:
    """The training and the dev file as settings; parts of files are written into the folder."""
    source = f"{treebanks / treebank.files}{{}}.conllu"
    files: dict[str, object] = {"data.dev": "null"}
    files["data.train"] = train = part_of(Path(source.format("train")), treebank.train, folder)
    if treebank.half_of_the_heads:
        folder.mkdir(parents=True, exist_ok=True)
        hide_half_of_the_heads(train, folder / "half-of-the-heads.conllu")
        files |= {"data.train": folder / "half-of-the-heads.conllu", "data.partial": "true"}
    if treebank.dev is not None:
        files["data.dev"] = part_of(Path(source.format(treebank.dev_file)), treebank.dev, folder)
    return files


def gold_sentences(treebank: Treebank, treebanks: Path, at_most: int | None = None) -> list[Sentence]:
    """The words and trees of the test file, or of its first sentences."""
    return [sentence.words for sentence in load_treebank([treebanks / treebank.test])][:at_most]
