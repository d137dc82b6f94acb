"""What a scorer asks of an encoder."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor, nn

from treeparse.batch import Batch


def weights_with(module: nn.Module, part: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All weights of a module, with others for those of one part, whose names begin with ``part`` there."""
    own = {name: tensor for name, tensor in module.state_dict().items() if not name.startswith(part)}
    return own | {f"{part}{name}": tensor for name, tensor in weights.items()}


class Encoder(nn.Module, ABC):
    """Gives every node of a sentence, the root included, a vector that knows its context.

    ``output_size`` is the vectors' size. An encoder reads what it needs from ``batch.features`` and ``batch.lengths``,
    and what it gives to the nodes of a sentence does not depend on the other sentences of the batch, but for rounding.
    """

    output_size: int

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """The nodes' vectors (B, n+1, output_size); padding holds anything finite."""

    def base_weights(self) -> dict[str, Tensor]:
        """Its weights without what adapters add, by the names that they have in an encoder without: no copies."""
        return self.state_dict()

    def merged_weights(self) -> dict[str, Tensor]:
        """The weights of an encoder without adapters that computes the same."""
        return self.state_dict()

    def rates(self) -> Mapping[nn.Parameter, float]:
        """Of parameters that do not learn at the rate of all others, their rate as a share of it."""
        return {}

    def advance(self, progress: float) -> None:
        """Told before every step of training which share of all lies behind."""
        return
