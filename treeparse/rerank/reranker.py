"""Trained rerankers: scorers of lists that add a base parser's log probability and a model's score of the tree."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, Self

import torch

from treeparse.data.folders import check_folder
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.model.folder.files import CONFIG
from treeparse.model.folder.storage import from_plain, load_weights, read_model, restoring, write_model
from treeparse.rerank.learning import LearningConfig, ListModel, example, fit, model_scores, tune
from treeparse.rerank.loglinear import LogLinear, LogLinearConfig
from treeparse.rerank.tree_network import TreeNetwork, TreeNetworkConfig
from treeparse.sentence import Sentence

KIND = "reranker"  # the setting that tells a reranker's folder from a parser's
HELD_OUT = 10  # every tenth list is held out, unless held-out lists are given


@dataclass(frozen=True)
class GlobalSettings:
    """The settings in the folder of a global reranker."""

    reranker: Literal["global"]
    base_weight: float
    model: LogLinearConfig


@dataclass(frozen=True)
class NeuralSettings:
    """The settings in the folder of a neural reranker."""

    reranker: Literal["neural"]
    base_weight: float
    model: TreeNetworkConfig


KINDS = {"global": (GlobalSettings, LogLinear), "neural": (NeuralSettings, TreeNetwork)}  # settings and model


class Reranker:
    """A scorer of lists: ``base_weight`` times the parser's log probability plus a model's score of the tree.

    ``train`` makes a reranker, ``from_pretrained`` loads one. ``p(tree | list)`` is proportional to the
    exponential of the score.
    """

    model: ListModel
    base_weight: float

    def __init__(self, model: ListModel, base_weight: float = 1.0) -> None:
        self.model, self.base_weight = model, base_weight

    @torch.inference_mode()
    def __call__(self, nbest: NBestList) -> list[float]:
        """Return the score of each parse."""
        self.model.eval()
        scores = self.model([self.model.prepare(nbest)]).tolist()
        return [self.base_weight * parse.log_prob + score for parse, score in zip(nbest.parses, scores, strict=True)]

    @classmethod
    def train(
        cls,
        model: LogLinearConfig | TreeNetworkConfig,
        gold: Sequence[Sentence],
        lists: Iterable[NBestList],
        learning: LearningConfig | None = None,
        *,
        held_out: "tuple[Sequence[Sentence], Iterable[NBestList]] | None" = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> Self:
        """Train a reranker on lists of sentences on which their parser was not trained.

        This sets the seed of torch's default generator.

        Args:
            model: the settings of a global reranker, or of a neural one.
            gold: the sentences with their gold trees.
            lists: a list of each sentence, in order; repeated trees count once.
            learning: the settings of learning; None for the defaults.
            held_out: gold sentences and lists that choose the epoch and the base weight; None holds out every tenth of
                ``lists``.
            say: called with a line about each epoch.

        Raises:
            TreeparseError: if lists do not match the gold sentences, or there are too few.
        """
        learning = learning or LearningConfig()
        torch.manual_seed(learning.seed)
        is_global = isinstance(model, LogLinearConfig)
        network = LogLinear.build(model, gold) if is_global else TreeNetwork.build(model, gold)
        examples = [example(network, *pair) for pair in matched(gold, lists)]
        dev = [example(network, *pair) for pair in matched(*held_out)] if held_out else examples[::HELD_OUT]
        train = examples if held_out else [each for index, each in enumerate(examples) if index % HELD_OUT]
        if not train or not dev:
            raise TreeparseError(f"A reranker needs two or more lists to learn from, got {len(examples)}.")
        return cls(network, fit(network, train, dev, learning, say))

    def tuned(self, gold: Sequence[Sentence], lists: Iterable[NBestList]) -> Self:
        """Return the same model with the base weight that is best for the lists of another parser, of new sentences."""
        examples = [example(self.model, *pair) for pair in matched(gold, lists)]
        return type(self)(self.model, tune(examples, model_scores(self.model, examples)).base_weight)

    def save_pretrained(self, directory: str | Path) -> None:
        """Write ``config.json``, ``vocabulary.json`` and ``model.safetensors``, all of them or none."""
        kind = "global" if isinstance(self.model, LogLinear) else "neural"
        config = {KIND: kind, "base_weight": self.base_weight, "model": asdict(self.model.config)}
        write_model(directory, config, self.model.vocabulary(), self.model.state_dict())

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> Self:
        """Return the reranker of a folder; no code in the folder is run.

        Raises:
            TreeparseError: if a file is missing, is damaged or does not fit the others.
        """
        check_folder(directory)
        if not (Path(directory) / CONFIG).is_file():
            raise TreeparseError(f"{directory} is not the folder of a reranker: it has no {CONFIG}.")
        config, vocabulary, weights = read_model(directory)
        kind = config.get(KIND)
        if kind is None:
            raise TreeparseError(f"{directory} is the folder of a parser, not of a reranker.")
        if not isinstance(kind, str) or kind not in KINDS:
            raise TreeparseError(f"{directory}/{CONFIG}: Unknown reranker {kind!r:.60}. Kinds: {', '.join(KINDS)}.")
        _drop_parser_vectors(config.get("model"), directory)
        kind_of_settings, network = KINDS[kind]
        settings: Any = from_plain(kind_of_settings, config, f"{directory}/{CONFIG}")
        with restoring(KIND, directory):
            model = network.restore(settings.model, vocabulary)
        load_weights(model, weights, str(directory))
        return cls(model, settings.base_weight)


def _drop_parser_vectors(model: Any, directory: str | Path) -> None:
    """Drop the settings of earlier versions for a parser's word vectors; refuse a reranker that reads them."""
    if isinstance(model, dict):
        vectors = model.pop("vectors", "own")
        if vectors != "own":
            raise TreeparseError(
                f"The reranker in {directory} reads the word vectors of a parser (vectors is {vectors!r:.60}), which "
                "this version does not support: train the reranker again."
            )
        model.pop("parser", None)
        model.pop("parser_digest", None)


def matched(gold: Sequence[Sentence], lists: Iterable[NBestList]) -> Iterator[tuple[Sentence, NBestList]]:
    """Yield gold sentences and their lists; raise if one side has more."""
    for count, (sentence, nbest) in enumerate(zip_longest(gold, lists)):
        if sentence is None or nbest is None:
            lists_got = f"{count:,} lists for" if nbest is None else "more lists than"
            raise TreeparseError(f"Each gold sentence must have one list, got {lists_got} {len(gold):,} sentences.")
        yield sentence, nbest
