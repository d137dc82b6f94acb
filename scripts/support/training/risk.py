"""The expected risk of a parser: how many words a tree drawn from it gets wrong."""

from collections.abc import Sequence
from pathlib import Path

import torch

from treeparse.data.mapping import map_batches
from treeparse.model import Parser
from treeparse.objectives import MinimumRisk
from treeparse.sentence import Sentence


def expected_risk(model: Path, gold: Sequence[Sentence]) -> float:
    """The expected share of words whose head or label is wrong, exactly, over sentences with gold trees."""
    parser, objective = Parser.from_pretrained(model), MinimumRisk("las")

    @torch.inference_mode()
    def wrong(_: Sequence[int], sentences: Sequence[Sentence]) -> list[float]:
        batch = parser.collate(sentences)
        return objective(parser.distribution(batch), batch).tolist()

    return round(sum(map_batches(wrong, gold, max_words=3000)) / sum(map(len, gold)), 6)
