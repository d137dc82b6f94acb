"""The interface of an encoder."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor, nn

from treeparse.batch import Batch


def weights_with(module: nn.Module, part: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a module's state dict, with ``weights`` instead of the entries whose names begin with ``part``."""
    own = {name: tensor for name, tensor in module.state_dict().items() if not name.startswith(part)}
    return own | {f"{part}{name}": tensor for name, tensor in weights.items()}


class Encoder(nn.Module, ABC):
    """A module that computes a contextual vector for every node of a sentence, the root included.

    ``output_size`` is the vectors' size. An encoder reads ``batch.features`` and ``batch.lengths``. The vectors of a
    sentence must not depend on the other sentences of the batch, apart from rounding.
    """

    output_size: int

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Return the nodes' vectors (B, n+1, output_size), with any finite values at padding."""

    def base_weights(self) -> dict[str, Tensor]:
        """Return the weights without adapters, named as in an encoder without adapters; not copies."""
        return self.state_dict()

    def merged_weights(self) -> dict[str, Tensor]:
        """Return the weights of an encoder without adapters that computes the same vectors."""
        return self.state_dict()

    def rates(self) -> Mapping[nn.Parameter, float]:
        """Return a factor of the learning rate for each parameter whose factor is not 1."""
        return {}

    def advance(self, progress: float) -> None:
        """Note the share of training steps that are done; training calls this before every step."""
        return
