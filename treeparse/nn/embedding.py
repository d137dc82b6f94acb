"""Vectors of words without context: word, pretrained, character and tag embeddings."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from .characters import CharacterEncoder
from .config import LexicalConfig
from .dropout import WordDropout


class LexicalEmbedding(nn.Module):
    """Concatenate a word's embedding (plus its projected pretrained vector) with those of its characters and tags.

    ``sizes`` gives the number of ids of each feature, ``unknown`` the id of an unknown word and ``specials`` the number
    of ids that are no word's.
    """

    def __init__(
        self,
        config: LexicalConfig,
        sizes: Mapping[str, int],
        *,
        word_size: int,
        vector_size: int,
        word_dropout: float,
        unknown: int,
        specials: int,
    ) -> None:
        super().__init__()
        self.word_dropout: WordDropout = WordDropout(word_dropout, unknown=unknown, specials=specials)
        self.words: nn.Embedding = _table(sizes["words"], word_size)
        self.vectors: nn.Embedding | None = None
        if vector_size:
            # Frozen zeros, which draw nothing from the generator: the caller sets these weights.
            self.vectors = nn.Embedding.from_pretrained(torch.zeros(sizes["vectors"], vector_size))
            self.project: nn.Linear = nn.Linear(vector_size, word_size, bias=False)
            # The vectors' values have deviation 1. This initialisation gives projected vectors a length of about 1.
            nn.init.normal_(self.project.weight, std=(vector_size * word_size) ** -0.5)
        self.tags: nn.ModuleDict = tag_tables(config, sizes)
        self.characters: CharacterEncoder | None = character_encoder(config, sizes)
        self.output_size: int = word_size + spelling_and_tags_size(config)

    def forward(self, features: Mapping[str, Tensor]) -> Tensor:
        """Return the vectors (B, n+1, output_size) of all nodes."""
        words = self.words(self.word_dropout(features["words"]))
        if self.vectors is not None:
            words = words + self.project(self.vectors(features["vectors"]))
        return torch.cat([words, *spelling_and_tags(self.characters, self.tags, features)], -1)

    def distinct(self, features: Mapping[str, Tensor], indices: Tensor) -> tuple[Tensor, Tensor]:
        """Compute `forward`, outside training, once for each distinct node of ``indices`` (N,) in the flattened batch.

        Returns the vectors (U, output_size) of the distinct nodes, and the row (N,) among them of each node. Nodes with
        the same form share a vector, if the model reads no tags.
        """
        forms = features["forms"].flatten()[indices]
        chosen, rows = indices, torch.arange(len(indices), device=indices.device)
        if not self.tags:
            # Choose any node of each form, because all other features depend on the form alone.
            forms, rows = forms.unique(return_inverse=True)
            chosen = forms.new_empty(len(forms)).scatter_(0, rows, indices)
        of_nodes = {name: ids.flatten()[chosen] for name, ids in features.items() if name != "characters"}
        return self(of_nodes | {"characters": features["characters"]}), rows


def tag_tables(config: LexicalConfig, sizes: Mapping[str, int]) -> nn.ModuleDict:
    """Return an embedding for each column of tags that the model reads."""
    return nn.ModuleDict({name: _table(sizes[name], config.tag_size, silent=2) for name in config.tags})


def character_encoder(config: LexicalConfig, sizes: Mapping[str, int]) -> CharacterEncoder | None:
    """Return the encoder of words' characters, or None if the model reads no characters."""
    if not config.char_filters:
        return None
    return CharacterEncoder(
        sizes["characters"], size=config.char_size, filters=config.char_filters, widths=config.char_widths
    )


def spelling_and_tags_size(config: LexicalConfig) -> int:
    """Return the sum of the sizes of the vectors of `spelling_and_tags`."""
    return config.char_filters * len(config.char_widths) + config.tag_size * len(config.tags)


def spelling_and_tags(
    characters: CharacterEncoder | None, tags: nn.ModuleDict, features: Mapping[str, Tensor]
) -> Iterator[Tensor]:
    """Yield the nodes' vectors (B, n+1, size) from their characters and from each column of tags."""
    if characters is not None:
        yield characters(features["characters"], features["forms"])
    for name, table in tags.items():
        yield table(features[name])


def _table(count: int, size: int, *, silent: int = 1) -> nn.Embedding:
    """Return an embedding whose first ``silent`` rows are 0: padding, and the unknown tag, which training never has."""
    table = nn.Embedding(count, size, padding_idx=0)
    # The parts enter one LSTM together, so each vector starts with a length of about 1 at any size.
    nn.init.normal_(table.weight, std=size**-0.5)
    with torch.no_grad():
        table.weight[:silent].zero_()
    return table
