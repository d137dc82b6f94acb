"""Parsers of several treebanks, trained where they are missing, and the scores that they give to sentences.

Used by ``reproduce_kbest.py`` and ``compare_decoders.py``. Models and cut treebanks lie in one folder:
``fast-TreeLikelihood-EWT/model``, ``data/la_perseus-ud-train-1200.conllu``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from treeparse.cli.config import shipped_configs
from treeparse.core import Sentence, TreeparseError
from treeparse.data import load_treebank
from treeparse.data.batching import BucketBatchSampler
from treeparse.model import Parser
from treeparse.training import load_config, train

MAX_WORDS = 1000  # of a batch


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


@dataclass(frozen=True)
class Scored:
    """A batch of sentences of like length as a parser scores their arcs."""

    scores: NDArray[np.float64]  # (B, n+1, n+1)
    lengths: NDArray[np.int64]  # (B,)


def trained_parser(treebank: Treebank, treebanks: Path, models: Path, config: str, objective: str) -> Parser:
    """The parser in the folder of models; it is trained, or its broken-off run is continued, if it is not there."""
    run = models / f"{Path(config).stem}-{objective}-{treebank.name}"
    if not (run / "model").is_dir():
        path = Path(config) if Path(config).is_file() else shipped_configs().get(config, Path(config))
        options = {
            "output": run,
            "objective": f"treeparse.objectives.{objective}",
            "data.train": part_of(treebanks / treebank.train, slice(treebank.train_stop), models / "data"),
            "data.dev": part_of(treebanks / treebank.dev, slice(treebank.dev_start, None), models / "data"),
        }
        train(load_config(path, [f"--{key}={value}" for key, value in options.items()]), resume=True)
    return Parser.from_pretrained(run / "model")


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


def test_sentences(treebank: Treebank, treebanks: Path, at_most: int | None = None) -> list[Sentence]:
    """The words and trees of the test file, or of its first sentences."""
    return [sentence.words for sentence in load_treebank([treebanks / treebank.test])][:at_most]


@torch.inference_mode()
def scored_batches(parser: Parser, sentences: Sequence[Sentence]) -> Iterator[Scored]:
    """All sentences with the parser's scores of arcs, without the labels', each in one batch of like lengths."""
    for places in BucketBatchSampler(list(map(len, sentences)), max_words=MAX_WORDS):
        batch = parser.collate([sentences[place] for place in places])
        scores = parser.distribution(batch).base.scores
        yield Scored(scores.double().numpy(), batch.lengths.numpy())
