"""A custom encoder: words and their neighbours, by convolutions, instead of the BiLSTM.

PYTHONPATH=scripts/recipes python -m treeparse train --config demo --model.encoder own_encoder.WindowsConfig
PYTHONPATH=scripts/recipes python -m treeparse predict runs/demo data/demo-test.conllu --import own_encoder
"""

from dataclasses import dataclass

from torch import Tensor, nn

from treeparse.nn import Encoder, EncoderConfig


@dataclass(frozen=True)
class WindowsConfig(EncoderConfig):
    """The settings of `Windows`."""

    size: int = 64
    width: int = 3
    layers: int = 2
    min_count: int = 2

    def module(self, features) -> "Windows":
        return Windows(self.size, self.width, self.layers, words=features.sizes()["words"])


class Windows(Encoder):
    """Vectors of words (B, n+1, size), the root first; each layer sees more neighbours of a word."""

    def __init__(self, size: int, width: int, layers: int, words: int) -> None:
        super().__init__()
        self.output_size, self.words = size, nn.Embedding(words, size, padding_idx=0)
        self.layers = nn.ModuleList(nn.Conv1d(size, size, width, padding="same") for _ in range(layers))

    def forward(self, batch) -> Tensor:
        words = batch.features["words"]  # (B, n+1), 0 at padding
        nodes = self.words(words).transpose(1, 2)
        for layer in self.layers:  # with zeros at padding, so that no word sees it
            nodes = (nodes + layer(nodes).relu()) * (words > 0).unsqueeze(1)
        return nodes.transpose(1, 2)
