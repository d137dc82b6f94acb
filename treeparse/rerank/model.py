"""The interface that a reranker needs from its model, the part that learns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from treeparse.data.parses import NBestList


class ListModel(Protocol):
    """A ``torch.nn.Module`` that scores the trees of lists.

    ``config`` holds its settings, a dataclass of plain values that are saved with it.
    """

    config: Any

    def prepare(self, nbest: NBestList) -> Any:
        """Return a list in the form that a call reads; it does not depend on the weights."""

    def __call__(self, lists: Sequence[Any]) -> Tensor:
        """Return the scores ``(trees,)`` of all trees of prepared lists, list after list, each up to a constant."""
        ...

    def vocabulary(self) -> dict[str, Any]:
        """Return plain data that, with the settings, restore the model."""
        ...

    def train(self, mode: bool = True) -> Any: ...

    def eval(self) -> Any: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...
