"""What a distribution over labelled trees asks of the distribution over trees that it puts labels on."""

from functools import cached_property
from typing import Any, Protocol, Self

from torch import Size, Tensor

from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.flat import FlatTrees
from treeparse.trees.parts import Parts


class LabeledBase(Protocol):
    """A distribution over trees whose arcs have scores ``(*batch, n+1, n+1)``, whatever other parts trees may have.

    Labels add to the scores of arcs: all that is said of them comes from the base with other scores of its arcs.
    """

    scores: Tensor
    lengths: Tensor
    single_root: bool

    @property
    def kind_of_trees(self) -> str: ...

    @property
    def batch_shape(self) -> Size: ...

    @property
    def event_shape(self) -> Size: ...

    @cached_property
    def flat(self) -> FlatTrees: ...

    @property
    def log_partition(self) -> Tensor: ...

    def log_prob(self, value: Tensor) -> Tensor: ...

    @property
    def parts(self) -> Parts: ...

    def with_scores(
        self, scores: Tensor | Parts, lengths: Tensor | None = None, *, validate_args: bool | None = None
    ) -> Self:
        """The same with other scores of arcs, or of all parts."""
        ...

    def given(self, heads: Tensor) -> Self: ...

    def within(self, mask: Tensor) -> Self: ...

    def detach(self) -> Self: ...

    def of_items(self, items: Tensor) -> Self: ...

    def tempered(self, temperature: float) -> Self: ...

    def expand(self, batch_shape: Any) -> Self: ...

    def enumerate_support(self) -> Tensor: ...

    def expected_uas(self, heads: Tensor) -> Tensor: ...

    def comparable(self, q: Any) -> TreeDistribution:
        """q, or an error that says why it cannot be compared with this distribution."""
        ...
