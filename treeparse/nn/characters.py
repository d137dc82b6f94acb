"""Word representations from characters."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class CharacterEncoder(nn.Module):
    """Convolutions over the characters of each form, then their maximum over places (Kim et al. 2016).

    Every distinct form of a batch is computed once, whatever the number of its occurrences.
    """

    def __init__(self, characters: int, *, size: int, filters: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, size, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(size, filters, width) for width in widths)
        self.output_size = filters * len(widths)

    def forward(self, characters: Tensor, forms: Tensor) -> Tensor:
        """``characters`` (U, L) spells the distinct forms, padded by 0; ``forms`` (B, T) indexes them; -> (B, T, D)."""
        padding = (characters == 0).unsqueeze(-1)
        # Padding never wins the maximum: otherwise a form's vector would depend on the longest form of its batch.
        pooled = [
            _convolve(self.embedding, convolution, characters).masked_fill(padding, -torch.inf).amax(1)
            for convolution in self.convolutions
        ]
        return functional.embedding(forms, torch.cat(pooled, -1).relu())


def _convolve(embedding: nn.Embedding, convolution: nn.Module, characters: Tensor) -> Tensor:
    """The convolution of the embedded characters at each of their places (U, L, filters).

    There are few characters, so what each contributes at each offset of the window is a table of its own, and the
    convolution a sum of its rows: much less work than a product at every place.
    """
    assert isinstance(convolution, nn.Conv1d) and convolution.bias is not None
    (width,), places, count = convolution.kernel_size, characters.shape[1], embedding.num_embeddings
    with torch.autocast(characters.device.type, enabled=False):
        # Through the embedding, not its weights, so that padding stays at zero.
        symbols = embedding(torch.arange(count, device=characters.device))
        table = torch.einsum("cs,fso->ocf", symbols, convolution.weight).flatten(0, 1)
        padded = functional.pad(characters, (width // 2, (width - 1) // 2))
        rows = padded.unfold(1, width, 1) + count * torch.arange(width, device=characters.device)
        sums = functional.embedding_bag(rows.reshape(-1, width), table, mode="sum")
        return sums.unflatten(0, (-1, places)) + convolution.bias
