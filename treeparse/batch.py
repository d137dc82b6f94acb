"""`Batch`, which holds sentences as tensors, and copies of tensors to and from a device."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch._C._functorch import is_functorch_wrapped_tensor  # torch has no public names for these
from torch.autograd import forward_ad

from treeparse.errors import TreeparseError, did_you_mean
from treeparse.sentence import Sentence

TENSORS = ("lengths", "indices", "heads", "labels", "allowed", "possible_labels")
TRACED = ("FakeTensor", "FunctionalTensor")


@dataclass(frozen=True, slots=True)
class Batch:
    """B sentences as tensors; the longest has ``n`` words, node 0 is the root.

    ``heads``, ``labels`` and ``tags`` are negative where unknown; ``heads`` and ``labels`` become -1 at node 0 and at
    padding, whatever the caller gave.
    """

    lengths: Tensor  # (B,) int64, words without the root
    indices: Tensor  # (B,) int64, of the sentences in the list that the batch was made from
    features: Mapping[str, Tensor]  # the encoder's input, by name
    heads: Tensor | None = None  # (B, n+1) int64
    labels: Tensor | None = None  # (B, n+1) int64
    allowed: Tensor | None = None  # (B, n+1, n+1) bool, head first: arcs that may be in the tree; None for all
    sentences: tuple[Sentence, ...] = ()  # for features that the encoder does not read; () if unknown
    label_names: tuple[str, ...] = ()  # by label id; () if unknown
    root_label: int = -1  # the id of the label that arcs from the root, and no others, have; -1 for none
    tags: Mapping[str, Tensor] = field(default_factory=dict)  # (B, n+1) int64, by column: the tags to predict
    possible_labels: Tensor | None = None  # (B, L) bool, by the sentences' treebanks; None for all
    moved_from: Self | None = field(default=None, init=False, repr=False)  # the CPU original; `replace` drops it

    def __post_init__(self) -> None:
        for name, values in (("heads", self.heads), ("labels", self.labels)):
            if values is not None:  # `object.__setattr__`, because the class is frozen
                words = word_mask(self.lengths, values.shape[-1])
                object.__setattr__(self, name, torch.where(words, values.long(), -1))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def num_words(self) -> int:
        return int(self.on_cpu.lengths.sum())

    @property
    def longest(self) -> int:
        """The number of words of the longest sentence."""
        return int(self.on_cpu.lengths.max())

    @property
    def on_cpu(self) -> Self:
        """The CPU original of this batch, if it was moved from the CPU; reading it causes no device sync."""
        return self if self.moved_from is None else self.moved_from

    def to(self, device: torch.device | str) -> Self:
        """Return the batch on a device. Copies from the CPU to a CUDA device are asynchronous."""
        device = torch.device(device)
        if device.type == self.lengths.device.type == "cpu":
            return self
        batch = self._with_each(lambda tensor: moved(tensor, device))
        if device.type != "cpu":
            object.__setattr__(batch, "moved_from", self.on_cpu)  # because the batch is frozen
        return batch

    def pin_memory(self) -> Self:
        """Return the batch in pinned memory, from which a ``DataLoader`` with ``pin_memory`` copies it to a GPU."""
        return self._with_each(Tensor.pin_memory)

    def _with_each(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Change every tensor."""
        tensors = {name: getattr(self, name) for name in TENSORS}
        return replace(
            self,
            **{name: change(tensor) for name, tensor in tensors.items() if tensor is not None},
            features={name: change(feature) for name, feature in self.features.items()},
            tags={column: change(ids) for column, ids in self.tags.items()},
        )

    def is_labelled(self) -> Tensor:
        """(B,) bool: whether a sentence has a known head or a word with forbidden heads."""
        labelled = torch.zeros(len(self), dtype=torch.bool, device=self.lengths.device)
        if self.heads is not None:
            labelled |= (self.heads >= 0).any(-1)
        return labelled if self.allowed is None else labelled | ~self.allowed.flatten(1).all(-1)

    def word_mask(self) -> Tensor:
        """(B, n+1) bool: True at words, False at the root and at padding."""
        return word_mask(self.lengths, self.longest + 1)


def word_mask(lengths: Tensor, nodes: int) -> Tensor:
    """``(*batch, nodes)`` bool: True at words, False at node 0 and at padding; ``lengths`` are ``(*batch,)``."""
    position = torch.arange(nodes, device=lengths.device)
    return (position > 0) & (position <= lengths.unsqueeze(-1))


def moved(tensor: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Return the tensor on a device, in a dtype. A copy from the CPU to a CUDA device does not block the host.

    A copy from pinned memory does, because the caller could overwrite that memory before it is copied; and so does one
    in a traced program, which cannot ask whether memory is pinned.
    """
    if device.type != "cuda" or tensor.device.type != "cpu" or not is_plain(tensor) or tensor.is_pinned():
        return tensor.to(device, dtype)
    return tensor.to(dtype).pin_memory().to(device, non_blocking=True)


def readable_without_sync(tensor: Tensor) -> bool:
    """Whether reading the values needs no device sync, which a CUDA graph forbids, and breaks no program in tracing."""
    return tensor.device.type == "cpu" and is_plain(tensor)


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has values now: neither torch.compile, torch.export nor torch.func has put another in its place.

    Where a mode of torch watches operators, as in tracing by ``make_fx`` and under fake tensors, none is plain, nor is
    any in forward mode.
    """
    if torch.compiler.is_compiling() or _len_torch_dispatch_stack() or forward_ad._current_level >= 0:
        return False
    return has_values(tensor)


def has_values(tensor: Tensor) -> bool:
    """Whether a tensor has values to read; torch.func and tracing put tensors without values in a tensor's place."""
    return not (is_functorch_wrapped_tensor(tensor) or type(tensor).__name__ in TRACED)


def fetched(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Copy tensors of one device to the CPU, detached; a CUDA device is synchronized once for all of them.

    It waits only for work queued before the copies, so other threads may queue more.
    """
    device = tensors[0].device
    if device.type != "cuda":
        return tuple(tensor.detach().cpu() for tensor in tensors)
    copies = tuple(tensor.detach().to("cpu", non_blocking=True) for tensor in tensors)  # into pinned memory
    torch.cuda.current_stream(device).record_event().synchronize()
    return copies


def pick_device(name: str | None) -> torch.device:
    """Return the device of a name; for None and ``auto`` a GPU if there is one, otherwise the CPU.

    Raises:
        TreeparseError: no such device exists on this machine, or it cannot compute in float64.
    """
    name = name or "auto"
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        with warnings.catch_warnings(action="ignore"):  # about names that torch has removed
            device = torch.device(name)
            torch.ones(2, device=device).add(1).tolist()
    except Exception as error:  # the type depends on the device and its backend
        problem = f"There is no device {name!r} on this machine that computes: say auto, cpu, or cuda for a GPU"
        raise TreeparseError(problem + (did_you_mean(name, ("auto", "cpu", "cuda", "mps")) or ".")) from error
    try:
        torch.ones(2, device=device, dtype=torch.float64).sum().tolist()
    except (TypeError, RuntimeError) as error:
        raise TreeparseError(
            f"The device {name!r} does not compute in float64, which sums over trees need: choose cpu."
        ) from error
    return device
