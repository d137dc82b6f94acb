"""Vectors of words from their characters."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

LENGTHS = (6, 8, 10, 13, 18)  # upper bounds of the groups of forms by length: most forms are short


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
            windows = [_window(symbols, convolution) for convolution in self.convolutions]
            parts = _by_length(characters)
            vectors = [torch.cat([_pooled(window, spelled) for window in windows], -1) for spelled, _ in parts]
        encoded = torch.cat(vectors).relu()
        if len(parts) > 1:
            encoded = encoded[torch.cat([rows for _, rows in parts]).argsort()]
        return functional.embedding(forms, encoded)


class _Window(NamedTuple):
    """A convolution as a table with a row for each offset and character, which is small as characters are few."""

    width: int
    characters: int  # number of characters
    table: Tensor  # (width * count, filters)
    bias: Tensor


def _window(symbols: Tensor, convolution: nn.Module) -> _Window:
    assert isinstance(convolution, nn.Conv1d) and convolution.bias is not None
    (width,) = convolution.kernel_size
    table = torch.einsum("cs,fso->ocf", symbols, convolution.weight).flatten(0, 1)
    return _Window(width, len(symbols), table, convolution.bias)


def _pooled(window: _Window, characters: Tensor) -> Tensor:
    """Return the maximum (U, filters) of a convolution over the positions of each form (U, L).

    The convolution sums rows of the table, which is much less work than a product at every position.
    """
    width = window.width
    padded = functional.pad(characters, (width // 2, (width - 1) // 2))
    rows = padded.unfold(1, width, 1) + window.characters * torch.arange(width, device=characters.device)
    sums = functional.embedding_bag(rows.reshape(-1, width), window.table, mode="sum").unflatten(
        0, (-1, characters.shape[1])
    )
    # Padding never wins the maximum: otherwise a form's vector would depend on the longest form of its batch.
    return sums.masked_fill((characters == 0).unsqueeze(-1), -torch.inf).amax(1) + window.bias


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
