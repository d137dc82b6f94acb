"""Batches of sentences as tensors, and their way to a device and back."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.names import no_device
from treeparse.sentence import Sentence


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences as tensors; ``n`` is the longest one's number of words, node 0 is the root.

    ``features`` holds what the encoder reads, by name; ``heads`` and ``labels`` are negative where unknown, and become
    -1 at node 0 and at padding, whatever stood there; ``allowed`` are the arcs that may be in the tree, where more is
    known than heads; ``indices`` are the sentences' places in the list that the batch was made from. ``sentences`` are
    what it was made of, where that is known: what reads other features than the encoder's reads them there.
    ``label_names`` are the labels by their ids, likewise. ``tags`` are those that a model learns to predict, by column,
    -1 where unknown. ``moved_from`` is the same batch where it was before it was moved to a device; what ``replace``
    makes of it has none.
    """

    lengths: Tensor  # (B,) int64, words without the root
    indices: Tensor  # (B,) int64
    features: Mapping[str, Tensor]
    heads: Tensor | None = None  # (B, n+1) int64
    labels: Tensor | None = None  # (B, n+1) int64
    allowed: Tensor | None = None  # (B, n+1, n+1) bool, head first
    sentences: tuple[Sentence, ...] = ()
    label_names: tuple[str, ...] = ()
    tags: Mapping[str, Tensor] = field(default_factory=dict)  # (B, n+1) int64
    moved_from: Self | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, values in (("heads", self.heads), ("labels", self.labels)):
            if values is not None:  # set past the guard of frozen classes
                words = word_mask(self.lengths, values.shape[-1])
                object.__setattr__(self, name, torch.where(words, values.long(), -1))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def num_words(self) -> int:
        return int(self.near.lengths.sum())

    @property
    def longest(self) -> int:
        """The words of the longest sentence."""
        return int(self.near.lengths.max())

    @property
    def near(self) -> Self:
        """The same in CPU memory, if it was moved from there: to read numbers in it waits for no device."""
        return self if self.moved_from is None else self.moved_from

    def to(self, device: torch.device | str) -> Self:
        """The batch on another device; nothing waits for copies from the CPU to CUDA devices."""
        place = torch.device(device)
        if place.type == self.lengths.device.type == "cpu":
            return self
        batch = type(self)(
            moved(self.lengths, place),
            moved(self.indices, place),
            {name: moved(feature, place) for name, feature in self.features.items()},
            None if self.heads is None else moved(self.heads, place),
            None if self.labels is None else moved(self.labels, place),
            None if self.allowed is None else moved(self.allowed, place),
            self.sentences,
            self.label_names,
            {column: moved(ids, place) for column, ids in self.tags.items()},
        )
        if place.type != "cpu":
            object.__setattr__(batch, "moved_from", self.near)  # as the batch is frozen
        return batch

    def is_labelled(self) -> Tensor:
        """(B,) bool: the sentences of which some head is known, or that a word has not all heads to choose from."""
        found = torch.zeros(len(self), dtype=torch.bool, device=self.lengths.device)
        if self.heads is not None:
            found |= (self.heads >= 0).any(-1)
        return found if self.allowed is None else found | ~self.allowed.flatten(1).all(-1)

    def word_mask(self) -> Tensor:
        """(B, n+1) bool: True at words, False at the root and at padding."""
        return word_mask(self.lengths, self.longest + 1)


def word_mask(lengths: Tensor, nodes: int) -> Tensor:
    """Where words are ``(*batch, nodes)`` bool, given numbers of words ``(*batch,)``: neither node 0 nor padding."""
    position = torch.arange(nodes, device=lengths.device)
    return (position > 0) & (position <= lengths.unsqueeze(-1))


def moved(tensor: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """The tensor on a device, and in a dtype; what is copied to a CUDA device is waited for there alone.

    Pinned memory could be written to before it is copied, so that is waited for here.
    """
    if device.type != "cuda" or tensor.device.type != "cpu" or tensor.is_pinned():
        return tensor.to(device, dtype)
    return tensor.to(dtype).pin_memory().to(device, non_blocking=True)


def readable_without_sync(tensor: Tensor) -> bool:
    """Whether reading the values needs no device sync, nor breaks a graph that torch compiles.

    A call that causes no sync can be captured in a CUDA graph.
    """
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def fetched(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in CPU memory, without a graph; those of a CUDA device are waited for once, all together.

    Only what the device was asked for before them is waited for: others may go on asking.
    """
    device = tensors[0].device
    if device.type != "cuda":
        return tuple(tensor.detach().cpu() for tensor in tensors)
    copies = tuple(tensor.detach().to("cpu", non_blocking=True) for tensor in tensors)  # into pinned memory
    torch.cuda.current_stream(device).record_event().synchronize()
    return copies


def pick_device(name: str | None) -> torch.device:
    """The device of a name; for ``auto`` or none a GPU if there is one, otherwise the CPU.

    Raises:
        TreeparseError: the name is no device's, or this machine has no such device, or it cannot compute in float64.
    """
    wanted = name or "auto"
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        with warnings.catch_warnings(action="ignore"):  # of names that torch knows no more
            device = torch.device(wanted)
            torch.ones(2, device=device).add(1).tolist()
    except Exception as error:  # torch has as many kinds of error as of devices that it does not have
        raise no_device(wanted) from error
    try:
        torch.ones(2, device=device, dtype=torch.float64).sum().tolist()
    except (TypeError, RuntimeError) as error:
        raise TreeparseError(
            f"The device {wanted!r} does not compute in float64, in which sums over trees are taken: say cpu."
        ) from error
    return device
