"""The interfaces of an encoder, and of any module whose weights training treats in its own way."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor, nn

from treeparse.batch import Batch


def weights_with(module: nn.Module, part: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a module's state dict, with ``weights`` instead of the entries whose names begin with ``part``."""
    own = {name: tensor for name, tensor in module.state_dict().items() if not name.startswith(part)}
    return own | {f"{part}{name}": tensor for name, tensor in weights.items()}


class Learner(nn.Module):
    """A module that can have adapters, learning rates of its own, and weights that start to learn late."""

    def base_weights(self) -> dict[str, Tensor]:
        """Return the weights without adapters, named as in a module without adapters; not copies."""
        return self.state_dict()

    def merged_weights(self) -> dict[str, Tensor]:
        """Return the weights of a module without adapters that computes the same: those that are saved."""
        return self.state_dict()

    def rates(self) -> Mapping[nn.Parameter, float]:
        """Return a factor of the learning rate for each parameter whose factor is not 1."""
        return {}

    def advance(self, progress: float) -> None:
        """Note the share of training steps that are done; training calls this before every step."""
        return


class Encoder(Learner, ABC):
    """A module that computes a contextual vector for every node of a sentence, the root included.

    ``output_size`` is the vectors' size. An encoder reads ``batch.features`` and ``batch.lengths``. The vectors of a
    sentence must not depend on the other sentences of the batch, apart from rounding.
    """

    output_size: int

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Return the nodes' vectors (B, n+1, output_size), with any finite values at padding."""
