"""Word representations from characters."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class CharacterEncoder(nn.Module):
    """Convolutions over the characters of each form, then their maximum over places (Kim et al. 2016).

    Every distinct form of a batch is computed once, whatever the number of its occurrences.
    """

    def __init__(self, characters: int, *, size: int, filters: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, size, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(size, filters, width, padding=width // 2) for width in widths)
        self.output_size = filters * len(widths)

    def forward(self, characters: Tensor, forms: Tensor) -> Tensor:
        """``characters`` (U, L) spells the distinct forms, padded by 0; ``forms`` (B, T) indexes them; -> (B, T, D)."""
        embedded = self.embedding(characters).transpose(1, 2)
        padding = (characters == 0).unsqueeze(1)
        places = characters.shape[1]
        # Padding never wins the maximum: otherwise a form's vector would depend on the longest form of its batch.
        pooled = [
            convolution(embedded)[..., :places].masked_fill(padding, -torch.inf).amax(-1)
            for convolution in self.convolutions
        ]
        return nn.functional.embedding(forms, torch.cat(pooled, -1).relu())
