"""Cross-parsing, or jackknifing: lists of training sentences by parsers that were not trained on them.

A parser's lists of the sentences that it was trained on are better than its lists of new sentences: a reranker that
learned from them would trust the parser too much. So the training sentences are divided into folds (Collins and Koo
2005), and a parser that is trained on all other folds parses each fold.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from treeparse.data.conllu import ConlluSentence, load_treebank, write_conllu
from treeparse.data.mapping import Progress
from treeparse.data.nbest import NBestList, read_nbest, write_nbest
from treeparse.errors import TreeparseError, name_among
from treeparse.model import Parser
from treeparse.progress import parsing_bar
from treeparse.training.run import train
from treeparse.training.run_directory import begin_runs
from treeparse.training.train_config import TrainConfig
from treeparse.training.trainer import on_one_device, training_device
from treeparse.training.treebanks import check_rereadable_files

Method = Literal["best", "samples", "different_samples"]
METHODS: tuple[Method, ...] = get_args(Method)
SETTINGS, TRAIN, RUN = "crossparsing.json", "train.conllu", "run"
CHUNK = 500  # sentences whose lists are in memory at once


@dataclass(frozen=True)
class Listing:
    """The settings of lists.

    Attributes:
        k: parses of a sentence, at most.
        method: the k best, k samples, or k different samples: samples without replacement. Samples depend on the
            sentence's index in the training data.
    """

    k: int = 32
    method: Method = "best"

    def __post_init__(self) -> None:
        name_among(self.method, METHODS, f"Unknown method {self.method!r:.60} of listing parses")
        if self.k < 1:
            raise TreeparseError(f"k must be 1 or more, got {self.k}.")

    @property
    def file(self) -> str:
        """The name of the file of such lists."""
        return f"{self.method}-{self.k}.jsonl"


def fold_indices(sentences: int, folds: int, fold: int) -> range:
    """Return the indices of a fold's sentences: index ``i`` belongs to fold ``i % folds``.

    Raises:
        TreeparseError: if a fold would have all sentences or none.
    """
    if not 2 <= folds <= sentences:
        raise TreeparseError(f"{sentences:,} sentences make from 2 to {sentences:,} folds, got {folds:,} folds.")
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
    if config.data.temperature is not None or config.data.treebanks:
        raise TreeparseError(
            "data.temperature and data.treebanks are of several treebanks, and folds would mix these: leave them out."
        )
    if not on_one_device(config.trainer):
        raise TreeparseError(
            "Cross-parsing trains its parsers on one device each, but trainer.devices or trainer.num_nodes asks for "
            "more: leave them out."
        )
    check_rereadable_files(config.data, "cross-parsing reads its data for every parser")
    sentences = load_treebank(  # as training does
        config.data.train or [],
        partial=config.data.partial,
        single_root=config.model.single_root,
        on_invalid=(lambda fault: None) if config.data.skip_invalid else None,
    )
    parts = [fold_indices(len(sentences), folds, fold) for fold in range(folds)]
    digest = hashlib.sha256("".join(sentence.text for sentence in sentences).encode()).hexdigest()
    settings = {"folds": folds, "training": config.to_dict(), "sentences": f"sha256:{digest}"}
    begin_runs(folder / SETTINGS, settings, "cross-parsing")
    if not (folder / listing.file).is_file():
        for fold, indices in enumerate(parts):
            if not (folder / f"fold{fold}" / listing.file).is_file():
                _parse_fold(folder / f"fold{fold}", config, sentences, indices, listing, quiet)
        lists = [read_nbest(folder / f"fold{fold}" / listing.file) for fold in range(folds)]
        write_nbest(folder / listing.file, (next(lists[index % folds]) for index in range(len(sentences))))
    return folder / listing.file


def _parse_fold(
    folder: Path, config: TrainConfig, sentences: Sequence[ConlluSentence], fold: range, listing: Listing, quiet: bool
) -> None:
    """Train a parser on all sentences but a fold's, or resume its training, and list the parses of the fold."""
    folder.mkdir(exist_ok=True)
    if not (folder / TRAIN).is_file():
        others = (sentence.alone() for index, sentence in enumerate(sentences) if index not in fold)
        write_conllu(folder / TRAIN, others)
    data = replace(config.data, train=str(folder / TRAIN))
    model = train(replace(config, data=data, output=str(folder / RUN)), resume=True, quiet=quiet)
    parser = Parser.from_pretrained(model).to(training_device(config.trainer))
    words = [sentences[index].words for index in fold]
    with parsing_bar(words, hidden=quiet, remark=f"lists of {folder.name}") as progress:
        write_nbest(folder / listing.file, listed(parser, sentences, fold, listing, progress))


def listed(
    parser: Parser,
    sentences: Sequence[ConlluSentence],
    indices: Sequence[int],
    listing: Listing,
    progress: Progress | None = None,
) -> Iterator[NBestList]:
    """Yield the lists of the sentences at these indices, without reading their trees; parse some lists at a time.

    A sentence without sent_id gets the sent_id ``sentence-N``, counted from 1.
    """
    for start in range(0, len(indices), CHUNK):
        chunk = indices[start : start + CHUNK]
        words = [sentences[index].words for index in chunk]

        def report(finished: Sequence[int], start: int = start) -> None:
            if progress is not None:
                progress([start + index for index in finished])

        if listing.method == "best":
            lists = parser.kbest(words, listing.k, progress=report)
        else:
            replacement = listing.method == "samples"
            lists = parser.sample(words, listing.k, replacement=replacement, first=chunk, progress=report)
        for index, parses in zip(chunk, lists, strict=True):
            sentence = sentences[index]
            named = sentence if sentence.sent_id else replace(sentence, sent_id=f"sentence-{index + 1}")
            yield NBestList(named, tuple(parses))
