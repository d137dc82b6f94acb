"""What training minimises: losses over a distribution of trees."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from treeparse.trees import NonProjectiveCRF


class Objective(nn.Module, ABC):
    """A loss for each sentence, from the distribution of its trees and its gold heads."""

    @abstractmethod
    def forward(self, distribution: NonProjectiveCRF, heads: Tensor) -> Tensor:
        """(B,) nats; ``heads`` (B, n+1) as in :class:`~treeparse.core.Batch`."""
