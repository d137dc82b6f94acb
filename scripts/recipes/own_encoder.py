"""An encoder of one's own: words and their neighbours, by convolutions, in the place of the BiLSTM.

    PYTHONPATH=scripts/recipes python -m treeparse train --config demo --output runs/own \
        --model.encoder.class_path own_encoder.Windows --model.encoder.init_args.width 5
    PYTHONPATH=scripts/recipes python -m treeparse predict runs/own data/demo-test.conllu --import own_encoder

Its settings are the arguments behind ``features``. They are saved with the model, and its class by its path; a model's
folder holds no code, so what loads the model imports the class first.
"""

from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.data.features import LexicalFeatures
from treeparse.model import OwnEncoder


class Windows(OwnEncoder):
    """Vectors of words, each layer of which sees some neighbours more."""

    def __init__(
        self, features: LexicalFeatures, size: int = 64, width: int = 3, layers: int = 2, min_count: int = 2
    ) -> None:
        super().__init__()
        self.output_size = size
        self.words = nn.Embedding(features.sizes()["words"], size, padding_idx=0)
        self.layers = nn.ModuleList(nn.Conv1d(size, size, width, padding="same") for _ in range(layers))

    def forward(self, batch: Batch) -> Tensor:
        """The vectors (B, n+1, size) of all nodes, the root first."""
        words = batch.features["words"]  # (B, n+1), 0 at padding
        nodes = self.words(words).transpose(1, 2)
        for layer in self.layers:
            # Zeros at padding, so that no word sees it.
            nodes = (nodes + layer(nodes).relu()) * (words > 0).unsqueeze(1)
        return nodes.transpose(1, 2)
