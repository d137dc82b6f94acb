"""What every layer shares: sentences, batches, checks of head lists, and the errors. Imports nothing of ours."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Self, TypeVar, cast

import torch
from torch import Tensor

ROOT_LABEL = "root"
EMPTY = "_"
BEFORE = "value of before"  # of a setting, in the metadata of its field

T = TypeVar("T")
N = TypeVar("N", bound=str)


class TreeparseError(ValueError):
    """Something that the caller can mend; its message is a whole sentence. Commands print it without a traceback."""


class DataError(TreeparseError):
    """A fault in an input file; the message starts with file, line and ``sent_id`` as far as they are known."""

    def __init__(
        self, problem: str, *, source: str | None = None, line: int | None = None, sent_id: str | None = None
    ) -> None:
        self.problem, self.source, self.line, self.sent_id = problem, source, line, sent_id
        place = ":".join(str(part) for part in (source, line) if part is not None)
        sentence = f"sentence {sent_id}" if sent_id is not None else ""
        super().__init__(": ".join(part for part in (place, sentence, problem) if part))


class NoTreeError(TreeparseError):
    """A batch item has no spanning tree of finite score."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of one sentence and, where they are known, their tags and tree.

    Every tuple has one entry a word (the root is not a word). ``heads`` are as in CoNLL-U: 0 is the root, word ``j`` is
    ``j`` counted from 1; -1 stands for an unknown head. A missing tag or label is ``"_"``. ``allowed`` has the heads of
    which one is the word's, where so much is known; none, ``()``, stands for any.
    """

    forms: tuple[str, ...]
    upos: tuple[str, ...] | None = None
    xpos: tuple[str, ...] | None = None
    feats: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None
    labels: tuple[str, ...] | None = None
    allowed: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        for name in ("upos", "xpos", "feats", "heads", "labels", "allowed"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.forms):
                raise TreeparseError(f"A sentence of {len(self.forms)} words came with {len(values)} {name}.")

    def __len__(self) -> int:
        return len(self.forms)

    def with_tree(self, heads: Sequence[int], labels: Sequence[str]) -> Self:
        """The same words under another tree."""
        return replace(self, heads=tuple(heads), labels=tuple(labels), allowed=None)


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences as tensors; ``n`` is the longest one's number of words, node 0 is the root.

    ``features`` holds what the encoder reads, by name; ``heads`` and ``labels`` are -1 at node 0, at padding and where
    unknown; ``allowed`` are the arcs that may be in the tree, where more is known than heads; ``indices`` are the
    sentences' places in the list that the batch was made from. ``sentences`` are what it was made of, where that is
    known: what reads other features than the encoder's reads them there. ``label_names`` are the labels by their ids,
    likewise. ``tags`` are those that a model learns to predict, by column, -1 where unknown. ``moved_from`` is the same
    batch where it was before it was moved to a device; what ``replace`` makes of it has none.
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
        position = torch.arange(self.longest + 1, device=self.lengths.device)
        return (position > 0) & (position <= self.lengths.unsqueeze(-1))


def moved(tensor: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """The tensor on a device, and in a dtype; what is copied to a CUDA device is waited for there alone.

    Pinned memory could be written to before it is copied, so that is waited for here.
    """
    if device.type != "cuda" or tensor.device.type != "cpu" or tensor.is_pinned():
        return tensor.to(device, dtype)
    return tensor.to(dtype).pin_memory().to(device, non_blocking=True)


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


def unreached_words(heads: Sequence[int]) -> list[int]:
    """The words (from 1) whose heads lead into a cycle instead of to the root; heads as in CoNLL-U.

    A word of unknown head, -1, and what hangs from it are in no cycle.
    """
    reaches: list[bool | None] = [True] + [None] * len(heads)
    for start in range(1, len(heads) + 1):
        path: list[int] = []
        node = start
        on_path: set[int] = set()
        while node >= 0 and reaches[node] is None and node not in on_path:
            path.append(node)
            on_path.add(node)
            node = heads[node - 1]
        outcome = node < 0 or bool(reaches[node])
        for visited in path:
            reaches[visited] = outcome
    return [word for word in range(1, len(heads) + 1) if not reaches[word]]


def tree_problem(heads: Sequence[int], *, single_root: bool = True, partial: bool = False) -> str | None:
    """What keeps a head list (as in CoNLL-U) from being a dependency tree, as a sentence; None if it is one.

    With ``partial`` a head of -1 is unknown, and the others must be part of some tree.
    """
    count = len(heads)
    partial = partial and -1 in heads
    for word, head in enumerate(heads, 1):
        if not -partial <= head <= count:
            return f"word {word} has head {head}, but heads go from 0 to {count}"
    roots = [word for word, head in enumerate(heads, 1) if head == 0]
    if not roots and not partial:
        return "no word hangs from the root (HEAD 0)"
    if single_root and len(roots) > 1:
        return f"words {', '.join(map(str, roots))} all hang from the root, but a tree has one root"
    cyclic = unreached_words(heads)
    if cyclic:
        return f"the heads of words {', '.join(map(str, cyclic))} lead into a cycle, never to the root"
    return None


def nonprojective_words(heads: Sequence[int]) -> list[int]:
    """The words (from 1) whose incoming arc is non-projective: some word under it does not descend from its head.

    Heads as in CoNLL-U; more than one root is allowed.

    Raises:
        TreeparseError: the heads are no tree.
    """
    if problem := tree_problem(heads, single_root=False):
        raise TreeparseError(f"only a tree has non-projective arcs: {problem}")
    first, last = _preorder_spans(heads)
    crossing = []
    for dependent, head in enumerate(heads, 1):
        between = first[min(head, dependent) + 1 : max(head, dependent)]
        if between and not first[head] <= min(between) <= max(between) <= last[head]:
            crossing.append(dependent)
    return crossing


def _preorder_spans(heads: Sequence[int]) -> tuple[list[int], list[int]]:
    """For every node of a tree its place in preorder and that of its last descendant."""
    children: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for word, head in enumerate(heads, 1):
        children[head].append(word)
    order, stack = [], [0]
    while stack:
        order.append(node := stack.pop())
        stack.extend(children[node])
    first, last = [0] * len(order), [0] * len(order)
    for place, node in enumerate(order):
        first[node] = last[node] = place
    for node in reversed(order[1:]):
        head = heads[node - 1]
        last[head] = max(last[head], last[node])
    return first, last


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
        raise TreeparseError(
            f"There is no device {wanted!r} on this machine that computes: say auto, cpu, or cuda for a GPU."
        ) from error
    try:
        torch.ones(2, device=device, dtype=torch.float64).sum().tolist()
    except (TypeError, RuntimeError) as error:
        raise TreeparseError(
            f"The device {wanted!r} does not compute in float64, in which sums over trees are taken: say cpu."
        ) from error
    return device


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that does not exist: ``; did you mean ...?``, or nothing if none is like it."""
    [*close] = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def name_among(name: str, known: Sequence[N], problem: str) -> N:
    """The known name that is meant, hyphen or underscore; for any other raises ``problem``, a sentence's start."""
    spelled = str(name).replace("-", "_")
    for each in known:
        if spelled == each:
            return each
    raise TreeparseError(f"{problem}: choose one of {', '.join(known)}" + (did_you_mean(spelled, known) or "."))


def added_setting(default: T, *, before: T) -> T:
    """A dataclass's field of a setting that files of earlier versions lack.

    They are read as if they held ``before``, which says what was done then; ``default`` may change, this never.
    """
    return cast(T, field(default=default, metadata={BEFORE: before}))


def values_of_before(settings: Any) -> dict[str, Any]:
    """The settings of a dataclass, or of one of its instances, that files may lack, with what they are read as."""
    return {each.name: each.metadata[BEFORE] for each in fields(settings) if BEFORE in each.metadata}
