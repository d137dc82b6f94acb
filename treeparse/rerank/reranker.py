"""Trained rerankers: scorers of lists that add a base parser's log probability and a model's score of the tree."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal, Self

import torch

from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.outputs import check_folder
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.model.folder import CONFIG, load_weights, read_model, restoring, write_model
from treeparse.model.settings import read_settings
from treeparse.rerank.learning import LearningConfig, LogLinear, LogLinearConfig, example, fit, model_scores, tune
from treeparse.sentence import Sentence

KIND = "reranker"  # the setting that tells a reranker's folder from a parser's
HELD_OUT = 10  # every tenth list is held out, unless held-out lists are given


@dataclass(frozen=True)
class RerankerSettings:
    """The settings in the folder of a reranker."""

    reranker: Literal["global"]
    base_weight: float
    model: LogLinearConfig


class Reranker:
    """A scorer of lists: ``base_weight`` times the parser's log probability plus a model's score of the tree.

    ``train`` makes a reranker, ``from_pretrained`` loads one. ``p(tree | list)`` is proportional to the
    exponential of the score.
    """

    model: LogLinear
    base_weight: float

    def __init__(self, model: LogLinear, base_weight: float = 1.0) -> None:
        self.model, self.base_weight = model, base_weight

    @torch.inference_mode()
    def __call__(self, nbest: NBestList) -> list[float]:
        """Return the score of each parse."""
        scores = self.model([self.model.prepare(nbest)]).tolist()
        return [self.base_weight * parse.log_prob + score for parse, score in zip(nbest.parses, scores, strict=True)]

    @classmethod
    def train(
        cls,
        config: LogLinearConfig,
        gold: Sequence[Sentence],
        lists: Iterable[NBestList],
        learning: LearningConfig | None = None,
        *,
        held_out: "tuple[Sequence[Sentence], Iterable[NBestList]] | None" = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> Self:
        """Train a reranker on lists of sentences on which their parser was not trained.

        Args:
            config: the settings of the model.
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
        model = LogLinear.build(config, gold)
        examples = [example(model, *pair) for pair in matched(gold, lists)]
        dev = [example(model, *pair) for pair in matched(*held_out)] if held_out else examples[::HELD_OUT]
        train = examples if held_out else [item for index, item in enumerate(examples) if index % HELD_OUT]
        if not train or not dev:
            raise TreeparseError(f"A reranker needs two or more lists to learn from, got {len(examples)}.")
        return cls(model, fit(model, train, dev, learning, say))

    def tuned(self, gold: Sequence[Sentence], lists: Iterable[NBestList]) -> Self:
        """Return the same model with the base weight that is best for the lists of another parser, of new sentences."""
        examples = [example(self.model, *pair) for pair in matched(gold, lists)]
        return type(self)(self.model, tune(examples, model_scores(self.model, examples)).base_weight)

    def save_pretrained(self, directory: str | Path) -> None:
        """Write ``config.json``, ``vocabulary.json`` and ``model.safetensors``, all of them or none."""
        config = {KIND: "global", "base_weight": self.base_weight, "model": asdict(self.model.config)}
        write_model(directory, config, {"words": self.model.words.to_json()}, self.model.state_dict())

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
        if KIND not in config:
            raise TreeparseError(f"{directory} is the folder of a parser, not of a reranker.")
        settings = read_settings(RerankerSettings, config, f"{directory}/{CONFIG}")
        with restoring(KIND, directory):
            model = LogLinear(settings.model, Vocabulary.from_json(vocabulary["words"]))
        load_weights(model, weights, str(directory))
        return cls(model, settings.base_weight)


def matched(gold: Sequence[Sentence], lists: Iterable[NBestList]) -> Iterator[tuple[Sentence, NBestList]]:
    """Yield gold sentences and their lists; raise if one side has more."""
    for count, (sentence, nbest) in enumerate(zip_longest(gold, lists)):
        if sentence is None or nbest is None:
            lists_got = f"{count:,} lists for" if nbest is None else "more lists than"
            raise TreeparseError(f"Each gold sentence must have one list, got {lists_got} {len(gold):,} sentences.")
        yield sentence, nbest
