"""The word vectors of a trained parser, which a neural reranker may read."""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.model.folders import WEIGHTS, model_folder
from treeparse.model.hub import local_folder
from treeparse.model.storage import file_digest
from treeparse.sentence import Sentence


class ParserVectors:
    """What the encoder of a saved parser gives the nodes of sentences, without dropout: constants.

    It is no ``torch.nn.Module``, so that a network that holds it neither learns nor saves the parser's weights.

    Attributes:
        folder: where the parser was loaded from.
        digest: of the file of its weights, by which the parser is known again.
        size: of the vectors.
    """

    def __init__(self, parser: Parser, folder: str, digest: str) -> None:
        self._parser, self.folder, self.digest = parser.eval(), folder, digest
        self.size = parser.scorer.encoder.output_size

    @classmethod
    def load(cls, folder: str, digest: str = "") -> Self:
        """Those of the parser in a folder, or in that of its run; raises where a digest is given and is not its own."""
        parser, path = Parser.from_pretrained(folder), model_folder(local_folder(folder))
        found = file_digest(path / WEIGHTS)
        if digest not in ("", found):
            raise TreeparseError(f"The parser in {folder} is another one: the digest of its weights is {found}.")
        return cls(parser, str(path.resolve()), found)

    def check(self, sentence: Sentence) -> None:
        """Raise where the parser reads tags that the sentence lacks."""
        self._parser.check(sentence)

    @torch.no_grad()
    def __call__(self, sentences: Sequence[Sentence]) -> Tensor:
        """``(B, n+1, size)``: the vectors of the nodes, the root first."""
        return self._parser.scorer.encoder(self._parser.collate(sentences))
