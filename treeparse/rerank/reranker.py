"""Trained rerankers: a base parser's log probability and a model's score of the whole tree, as one scorer of lists."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import torch

from treeparse.data.files import check_folder
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.model.folders import CONFIG
from treeparse.model.storage import from_plain, load_weights, read_model, restoring, write_model
from treeparse.rerank.examples import example, model_scores, tune
from treeparse.rerank.learning import LearningConfig, fit
from treeparse.rerank.loglinear import LogLinear, LogLinearConfig
from treeparse.rerank.model import ListModel
from treeparse.rerank.tree_network import TreeNetwork, TreeNetworkConfig
from treeparse.sentence import Sentence

KIND = "reranker"  # the setting that tells a reranker's folder from a parser's
HELD_OUT = 10  # every so many lists one is held out, without other lists to choose by


@dataclass(frozen=True)
class GlobalSettings:
    """What the folder of a global reranker says of it."""

    reranker: Literal["global"]
    base_weight: float
    model: LogLinearConfig


@dataclass(frozen=True)
class NeuralSettings:
    """What the folder of a neural reranker says of it."""

    reranker: Literal["neural"]
    base_weight: float
    model: TreeNetworkConfig


SETTINGS: Mapping[str, type[GlobalSettings] | type[NeuralSettings]] = {
    "global": GlobalSettings,
    "neural": NeuralSettings,
}
NAMES = {LogLinearConfig: "global", TreeNetworkConfig: "neural"}
MODELS: Mapping[type, type[LogLinear] | type[TreeNetwork]] = {
    LogLinearConfig: LogLinear,
    TreeNetworkConfig: TreeNetwork,
}


class Reranker:
    """A scorer of lists: ``base_weight`` times the parser's log probability, and what its model says of the tree.

    :meth:`train` makes one, :meth:`from_pretrained` loads one. ``p(tree | list)`` is proportional to the exponential of
    the score.
    """

    def __init__(self, model: ListModel, base_weight: float = 1.0) -> None:
        self.model, self.base_weight = model, base_weight

    @torch.inference_mode()
    def __call__(self, nbest: NBestList) -> list[float]:
        """The score of each parse."""
        self.model.eval()
        own = self.model([self.model.prepare(nbest)]).tolist()
        return [self.base_weight * parse.log_prob + score for parse, score in zip(nbest.parses, own, strict=True)]

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
        """Learn from lists of sentences on which their parser was not trained.

        Sets the seed of torch's default generator.

        Args:
            model: the settings of a global reranker, or of a neural one.
            gold: the sentences with their gold trees.
            lists: a list of each, in order; trees that come again count once.
            learning: how it learns; None for the defaults.
            held_out: gold sentences and lists that choose the epoch and the base weight; None for every tenth of those
                above, which are not learned from then.
            say: told how each epoch went.

        Raises:
            TreeparseError: lists that are not of the gold sentences, or too few of them.
        """
        learning = learning or LearningConfig()
        torch.manual_seed(learning.seed)
        network = MODELS[type(model)].build(model, gold)  # type: ignore[arg-type]
        examples = [example(network, *pair) for pair in matched(gold, lists)]
        held = [example(network, *pair) for pair in matched(*held_out)] if held_out else examples[::HELD_OUT]
        kept = examples if held_out else [each for place, each in enumerate(examples) if place % HELD_OUT]
        if not kept or not held:
            raise TreeparseError(f"{len(examples)} lists are too few to learn from: give two or more.")
        return cls(network, fit(network, kept, held, learning, say))

    def tuned(self, gold: Sequence[Sentence], lists: Iterable[NBestList]) -> Self:
        """The same model with the base weight that suits the lists of another parser, of sentences new to it."""
        examples = [example(self.model, *pair) for pair in matched(gold, lists)]
        return type(self)(self.model, tune(examples, model_scores(self.model, examples)).base_weight)

    def save_pretrained(self, directory: str | Path) -> None:
        """Write ``config.json``, ``vocabulary.json`` and ``model.safetensors``, all of them or none."""
        config = {
            KIND: NAMES[type(self.model.config)],
            "base_weight": self.base_weight,
            "model": asdict(self.model.config),
        }
        write_model(directory, config, self.model.vocabulary(), self.model.state_dict())

    @classmethod
    def from_pretrained(cls, directory: str | Path, *, parser: str | Path | None = None) -> Self:
        """The reranker of a folder; nothing in it is run.

        Args:
            directory: the folder.
            parser: where the parser is now whose word vectors the reranker reads; None for where it was.

        Raises:
            TreeparseError: a file is missing, damaged or does not fit the others; the parser is missing, or another.
        """
        check_folder(directory)
        if not (Path(directory) / CONFIG).is_file():
            raise TreeparseError(f"{directory} is no folder of a reranker: it has no {CONFIG}.")
        config, vocabulary, weights = read_model(directory)
        kind = config.get(KIND)
        if kind is None:
            raise TreeparseError(f"{directory} is the folder of a parser, not of a reranker.")
        if not isinstance(kind, str) or kind not in SETTINGS:
            raise TreeparseError(
                f"{directory}/{CONFIG}: there is no reranker {kind!r:.60}, but {' and '.join(SETTINGS)}."
            )
        settings = from_plain(SETTINGS[kind], config, f"{directory}/{CONFIG}")
        restore = _restorer(settings.model, directory, parser)
        with restoring(KIND, directory):
            model = restore(vocabulary)
        load_weights(model, weights, str(directory))
        return cls(model, settings.base_weight)


def _restorer(
    config: LogLinearConfig | TreeNetworkConfig, directory: str | Path, parser: str | Path | None
) -> Callable[[dict[str, Any]], LogLinear | TreeNetwork]:
    """What makes the model of its vocabulary, with the parser loaded whose vectors it reads."""
    if parser is not None and not (isinstance(config, TreeNetworkConfig) and config.parser):
        raise TreeparseError(f"The reranker in {directory} reads no parser's word vectors: leave out {parser}.")
    if isinstance(config, LogLinearConfig):
        return partial(LogLinear.restore, config)
    config = config if parser is None else replace(config, parser=str(parser))
    try:
        return partial(TreeNetwork.restore, config, parser=config.parser_vectors())
    except TreeparseError as error:
        raise TreeparseError(
            f"The reranker in {directory} reads the word vectors of the parser whose weights have the digest "
            f"{config.parser_digest}. {error} Name its folder (--parser)."
        ) from error


def matched(gold: Sequence[Sentence], lists: Iterable[NBestList]) -> Iterator[tuple[Sentence, NBestList]]:
    """Gold sentences and their lists; raises where one side has more."""
    count = 0
    for count, nbest in enumerate(lists, 1):
        if count > len(gold):
            raise TreeparseError(f"There are more lists than the {len(gold):,} gold sentences.")
        yield gold[count - 1], nbest
    if count < len(gold):
        raise TreeparseError(f"There are {count:,} lists for {len(gold):,} gold sentences.")
