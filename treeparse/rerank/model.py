"""What a reranker asks of its model, the part that learns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from treeparse.data.parses import NBestList


class ListModel(Protocol):
    """Scores the trees of lists; a ``torch.nn.Module``, of which this says what is asked.

    ``config`` is its settings, a dataclass of plain values that are saved with it.
    """

    config: Any

    def prepare(self, nbest: NBestList) -> Any:
        """What a call reads of a list, made once, whatever the weights."""

    def __call__(self, lists: Sequence[Any]) -> Tensor:
        """The scores of all trees of prepared lists, one list behind the other: any constant may be added to a list."""
        ...

    def vocabulary(self) -> dict[str, Any]:
        """Plain data from which, with the settings, the model is made anew."""
        ...

    def train(self, mode: bool = True) -> Any: ...

    def eval(self) -> Any: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...
