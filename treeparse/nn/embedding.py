"""Vectors of words without context: word, pretrained, character and tag embeddings."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from treeparse.data.columns import column_named
from treeparse.data.features.words import SPECIALS, UNKNOWN
from treeparse.nn.encoder_config import LexicalConfig

DOT = "="  # in names of modules, which must have no dot; keys of FEATS and MISC hold no equals sign
LENGTHS = (6, 8, 10, 13, 18)  # upper bounds of the groups of forms by length: most forms are short


class SharedDropout(nn.Module):
    """Drop the same dimensions of (B, T, D) at all nodes of a sentence (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return inputs
        share = 1 - self.rate
        mask = torch.empty_like(inputs[:, :1]).bernoulli_(share).div_(share)
        return inputs * mask

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class WordDropout(nn.Module):
    """Replace ids by ``unknown`` at the given rate, to train its embedding; ids below ``specials`` stay."""

    def __init__(self, rate: float, *, unknown: int, specials: int) -> None:
        super().__init__()
        self.rate, self.unknown, self.specials = rate, unknown, specials

    def forward(self, ids: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return ids
        drop = torch.rand(ids.shape, device=ids.device) < self.rate
        return ids.masked_fill(drop & (ids >= self.specials), self.unknown)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class CharacterEncoder(nn.Module):
    """Convolutions over the characters of each form, with a maximum over positions (Kim et al. 2016).

    Each distinct form of a batch is encoded once.
    """

    def __init__(self, characters: int, *, size: int, filters: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.embedding: nn.Embedding = nn.Embedding(characters, size, padding_idx=0)
        self.convolutions: nn.ModuleList = nn.ModuleList(nn.Conv1d(size, filters, width) for width in widths)
        self.output_size: int = filters * len(widths)

    def forward(self, characters: Tensor, forms: Tensor) -> Tensor:
        """Encode the forms (...), indices of the spelled ``characters`` (U, L), padded by 0, as vectors (..., D)."""
        with torch.autocast(characters.device.type, enabled=False):
            # Call the embedding instead of reading its weights, so that padding gets no gradient and stays zero.
            symbols = self.embedding(torch.arange(self.embedding.num_embeddings, device=characters.device))
            tables = [(convolution, _table_of(convolution, symbols)) for convolution in self.convolutions]
            parts = _by_length(characters)
            vectors = [torch.cat([_pooled(*table, spelled) for table in tables], -1) for spelled, _ in parts]
        encoded = torch.cat(vectors).relu()
        if len(parts) > 1:
            encoded = encoded[torch.cat([rows for _, rows in parts]).argsort()]
        return functional.embedding(forms, encoded)


def _table_of(convolution: Any, symbols: Tensor) -> Tensor:
    """Return a convolution as a table, with a row for each offset and character: small, as characters are few."""
    return torch.einsum("cs,fso->ocf", symbols, convolution.weight).flatten(0, 1)


def _pooled(convolution: Any, table: Tensor, characters: Tensor) -> Tensor:
    """Return the maximum (U, filters) of a convolution over the positions of each form (U, L).

    The convolution sums rows of its table, which is much less work than a product at every position.
    """
    (width,) = convolution.kernel_size
    padded = functional.pad(characters, (width // 2, (width - 1) // 2))
    offsets = len(table) // width * torch.arange(width, device=characters.device)
    rows = (padded.unfold(1, width, 1) + offsets).reshape(-1, width)
    sums = functional.embedding_bag(rows, table, mode="sum").unflatten(0, (-1, characters.shape[1]))
    # Padding never wins the maximum: otherwise a form's vector would depend on the longest form of its batch.
    return sums.masked_fill((characters == 0).unsqueeze(-1), -torch.inf).amax(1) + convolution.bias


def _by_length(characters: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Split the spelled forms (U, L) into groups of similar length, with less padding; return each with its rows.

    On a GPU there is one group, because reading the groups' sizes would sync.
    """
    rows = torch.arange(len(characters), device=characters.device)
    if characters.device.type != "cpu":
        return [(characters, rows)]
    lengths, longest = (characters != 0).sum(1), characters.shape[1]
    bounds = [-1, *(bound for bound in LENGTHS if bound < longest), longest]
    groups = [(bound, rows[(lengths > least) & (lengths <= bound)]) for least, bound in pairwise(bounds)]
    return [(characters[group, :bound], group) for bound, group in groups if len(group)]


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
    kinds = {name: MeanEmbedding if column_named(name).has_mean else nn.Embedding for name in config.tags}
    tables = {name: _table(sizes[name], config.tag_size, silent=2, kind=kind) for name, kind in kinds.items()}
    return nn.ModuleDict({name.replace(".", DOT): table for name, table in tables.items()})


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
        yield table(features[name.replace(DOT, ".")])


class MeanEmbedding(nn.Embedding):
    """An embedding of values in which the unknown value has the mean of the vectors of all values."""

    def forward(self, input: Tensor) -> Tensor:
        values = self.weight[len(SPECIALS) :]
        mean = values.sum(0, keepdim=True) / max(len(values), 1)
        unknown = SPECIALS.index(UNKNOWN)
        weight = torch.cat([self.weight[:unknown], mean, self.weight[unknown + 1 :]])
        return functional.embedding(input, weight, self.padding_idx)


def _table(count: int, size: int, *, silent: int = 1, kind: type[nn.Embedding] = nn.Embedding) -> nn.Embedding:
    """Return an embedding whose first ``silent`` rows are 0: padding, and the unknown tag, which training never has."""
    table = kind(count, size, padding_idx=0)
    # The parts enter one LSTM together, so each vector starts with a length of about 1 at any size.
    nn.init.normal_(table.weight, std=size**-0.5)
    with torch.no_grad():
        table.weight[:silent].zero_()
    return table
