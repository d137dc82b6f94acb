"""Custom scorers, by the path of a class and its settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from treeparse.data.features.indexer import Indexer
from treeparse.errors import TreeparseError
from treeparse.model.class_path import ClassPathConfig
from treeparse.model.config import ScorerConfig
from treeparse.model.scorers.kind import EncoderScorerKind
from treeparse.model.scorers.scorer import EncoderScorer


class OwnScorer(EncoderScorer):
    """The base of a custom scorer: a class at the top of a module that can be imported.

    ``__init__`` takes ``encoder``, the module that ``model.encoder`` chooses; ``indexer``, which has the labels, the
    tags to predict and the features of the batches; and then its settings: typed arguments of plain values (numbers,
    text, lists of them). It calls ``super().__init__(encoder)``. ``forward`` returns `ScorerOutput`, with the tags of
    each column of ``indexer.tags``.

    A config names the class by ``model.scorer.class_path`` and gives the settings as ``init_args``; both are saved with
    the model. Loading a model imports no code: import the class first; commands import it by ``--import``.
    """


@dataclass(frozen=True)
class OwnScorerConfig(ClassPathConfig, ScorerConfig):
    """A custom scorer, a subclass of `OwnScorer`, and its settings."""

    base = OwnScorer
    part = "scorer"
    supplied: ClassVar[tuple[str, ...]] = ("encoder", "indexer")


@dataclass(frozen=True)
class CustomScorerKind(EncoderScorerKind):
    """A custom scorer."""

    settings = OwnScorerConfig

    @property
    def custom(self) -> OwnScorerConfig:
        """The class and its settings."""
        assert isinstance(self.config.scorer, OwnScorerConfig)
        return self.config.scorer

    @property
    def name(self) -> str:
        return self.custom.class_path

    @property
    def description(self) -> str:
        return f"an encoder ({self.encoder.name}) under the scores of {self.name}"

    def module(self, indexer: Indexer) -> OwnScorer:
        encoder = self.encoder.module(indexer.features)
        scorer = self.custom.find_class(self.name)(encoder, indexer, **self.custom.init_args)
        if getattr(scorer, "encoder", None) is not encoder:
            raise TreeparseError(f"{self.name} has no encoder: call super().__init__(encoder) in its __init__.")
        return scorer

    def shaping(self) -> Mapping[str, Any]:
        scorer = {f"scorer.{name}": value for name, value in self.custom.shaping().items()}
        return {**scorer, **super().shaping()}
