"""What training minimises: losses over a distribution of labelled trees."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from treeparse.core import Batch
from treeparse.trees import LabeledCRF


class Objective(nn.Module, ABC):
    """A loss for each sentence, from the distribution of its labelled trees and what is known of its gold tree.

    Parameters of its own, if it has any, are trained with the parser's.
    """

    @abstractmethod
    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats, or another cost; heads and labels of the batch are -1 where unknown, None if all are."""
