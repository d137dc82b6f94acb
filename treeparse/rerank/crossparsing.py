"""Cross-parsing, or jackknifing: lists of training sentences by parsers that were not trained on them.

A parser's lists of the sentences that it was trained on are better than its lists of new sentences: a reranker that
learned from them would trust the parser too much. So the training sentences are divided into folds (Collins and Koo
2005), and a parser that is trained on all other folds parses each fold.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from treeparse.batch import pick_device
from treeparse.data.conllu import ConlluSentence, write_conllu
from treeparse.data.mapping import Progress
from treeparse.data.nbest.files import NBestList, read_nbest, write_nbest
from treeparse.data.treebank import load_treebank
from treeparse.errors import TreeparseError, name_among
from treeparse.model import Parse, Parser
from treeparse.progress import parsing_bar
from treeparse.sentence import Sentence
from treeparse.training.run import train
from treeparse.training.settings.config import TrainConfig
from treeparse.training.several_runs import begin_runs

Method = Literal["best", "samples", "different_samples"]
METHODS: tuple[Method, ...] = ("best", "samples", "different_samples")
SETTINGS, TRAIN, RUN = "crossparsing.json", "train.conllu", "run"
CHUNK = 500  # sentences whose lists are held at once


@dataclass(frozen=True)
class Listing:
    """The settings of lists.

    Attributes:
        k: parses of a sentence, at most.
        method: the k best, k samples, or k different samples: samples without replacement.
        seed: seed of samples, which depend on it and on the sentence's index in the training data.
    """

    k: int = 32
    method: Method = "best"
    seed: int = 0

    def __post_init__(self) -> None:
        name_among(self.method, METHODS, f"There is no way {self.method!r:.60} to list parses")
        if self.k < 1 or self.seed < 0:
            raise TreeparseError("A list holds 1 parse or more, and its seed is 0 or more.")

    @property
    def file(self) -> str:
        """The name of the file of such lists."""
        return f"{self.method}-{self.k}{'' if self.method == 'best' else f'-seed{self.seed}'}.jsonl"

    def lists(
        self,
        parser: Parser,
        sentences: Sequence[Sentence],
        places: Sequence[int],
        progress: Progress | None = None,
    ) -> list[list[Parse]]:
        """The lists of sentences at those places in the training data, without a look at their trees."""
        words = [replace(sentence, heads=None, labels=None, allowed=None) for sentence in sentences]
        if self.method == "best":
            return parser.kbest(words, self.k, progress=progress)
        options = {"replacement": self.method == "samples", "seed": self.seed, "first": places}
        return parser.sample(words, self.k, progress=progress, **options)


def fold_indices(sentences: int, folds: int, fold: int) -> range:
    """Return the indices of a fold's sentences: index ``i`` belongs to fold ``i % folds``.

    Raises:
        TreeparseError: if a fold would have all sentences or none.
    """
    if not 2 <= folds <= sentences:
        raise TreeparseError(f"{sentences:,} sentences make from 2 to {sentences:,} folds, but not {folds:,}.")
    return range(fold, sentences, folds)


def crossparse(config: TrainConfig, folds: int, listing: Listing, *, quiet: bool = False) -> Path:
    """Train a parser on all folds but one, for each, and list the parses of the one; return the file of all lists.

    In the folder ``config.output`` each fold has a folder with its training file, run and lists; a file beside them
    has the lists of all folds, in the order of the training data. Existing files are used again: the same call resumes
    where it was interrupted, and the same parsers make other lists.

    Args:
        config: the settings of training.
        folds: 2 or more.
        listing: the settings of lists.
        quiet: whether training prints nothing.

    Raises:
        TreeparseError: other folds, training data or settings of training were begun there; or as in
            `treeparse.training.train`.
    """
    folder = Path(config.output)
    if config.data.temperature is not None:
        raise TreeparseError(
            "data.temperature draws from several treebanks, which folds would tear apart: leave it out."
        )
    sentences = _training_sentences(config)
    parts = [fold_indices(len(sentences), folds, fold) for fold in range(folds)]
    _begin(folder, config, folds, sentences)
    if not (folder / listing.file).is_file():
        for fold, places in enumerate(parts):
            if not (folder / f"fold{fold}" / listing.file).is_file():
                _parse_fold(folder / f"fold{fold}", config, sentences, places, listing, quiet)
        write_nbest(folder / listing.file, _dealt_back(folder, folds, len(sentences), listing))
    return folder / listing.file


def _training_sentences(config: TrainConfig) -> list[ConlluSentence]:
    """As training reads them."""
    return load_treebank(
        config.data.train,
        partial=config.data.partial,
        single_root=config.model.single_root,
        on_invalid=(lambda fault: None) if config.data.skip_invalid else None,
    )


def _begin(folder: Path, config: TrainConfig, folds: int, sentences: Sequence[ConlluSentence]) -> None:
    """Write down what is done in the folder; raise where something else was begun there, or lies there."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.text.encode())
    settings = {"folds": folds, "training": config.to_dict(), "sentences": f"sha256:{digest.hexdigest()}"}
    begin_runs(folder / SETTINGS, settings, "cross-parsing")


def _parse_fold(
    folder: Path, config: TrainConfig, sentences: Sequence[ConlluSentence], places: range, listing: Listing, quiet: bool
) -> None:
    """Train on all sentences but those of the places, or go on with that, and list the parses of these."""
    folder.mkdir(exist_ok=True)
    held = set(places)
    kept = (sentence.alone() for place, sentence in enumerate(sentences) if place not in held)
    if not (folder / TRAIN).is_file():
        write_conllu(folder / TRAIN, kept)
    data = replace(config.data, train=str(folder / TRAIN))
    model = train(replace(config, data=data, output=str(folder / RUN)), resume=True, quiet=quiet)
    parser = Parser.from_pretrained(model).to(pick_device(config.trainer.device))
    words = [sentence.words for sentence in sentences]
    with parsing_bar([words[place] for place in places], hidden=quiet, remark=f"lists of {folder.name}") as progress:
        write_nbest(folder / listing.file, listed(parser, sentences, places, listing, progress))


def listed(
    parser: Parser,
    sentences: Sequence[ConlluSentence],
    places: Sequence[int],
    listing: Listing,
    progress: Progress | None = None,
) -> Iterator[NBestList]:
    """The lists of the sentences at these places, made some at a time; one without sent_id is named by its place."""
    for start in range(0, len(places), CHUNK):
        chunk = places[start : start + CHUNK]

        def report(indices: Sequence[int], start: int = start) -> None:
            if progress is not None:
                progress([start + index for index in indices])

        lists = listing.lists(parser, [sentences[place].words for place in chunk], chunk, report)
        for place, parses in zip(chunk, lists, strict=True):
            sentence = sentences[place]
            named = sentence if sentence.sent_id else replace(sentence, sent_id=f"sentence-{place + 1}")
            yield NBestList(named, tuple(parses))


def _dealt_back(folder: Path, folds: int, sentences: int, listing: Listing) -> Iterator[NBestList]:
    """The lists of all folds in the order of the training data."""
    lists = [read_nbest(folder / f"fold{fold}" / listing.file) for fold in range(folds)]
    for place in range(sentences):
        yield next(lists[place % folds])
