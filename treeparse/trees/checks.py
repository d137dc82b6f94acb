"""Checks of the arguments of distributions and their methods, and the error for an item without a tree.

One rule holds for all tensors that methods take. They have every dimension that a docstring names; dimensions of size 1
broadcast. One list of heads, or of labels, ``(n+1,)`` serves a whole batch. For heads and labels:

- Entries at node 0 and beyond an item's length are not read: -1, -100, 0 or anything else may pad them.
- At a word, a negative number means that the head or label is unknown.
- A known head is one of the nodes 0 to the item's length, but not the word itself. With validated arguments, any other
  head raises in ``given``, ``risk`` and all methods that compare with heads; without, such a head is never right.
- ``log_prob`` and ``score`` take whole trees. They return -inf for other lists, such as the lists without any head that
  pad lists of trees. With validated arguments, a list that lacks some heads raises, and so does a head that is no node.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from treeparse.batch import moved, readable_without_sync
from treeparse.errors import NoTreeError, TreeparseError
from treeparse.trees.labels.sources import LabelSource
from treeparse.trees.parts import PartKind, Parts, named

DTYPES = torch.float64, torch.float32, torch.float16, torch.bfloat16  # of scores
MAX_SCORE = 1e6  # the largest magnitude of a finite score: beyond it, entropies lose their digits
BROADCASTING = "dimensions of size 1 broadcast, but none may be left out"


def check_shape(scores: Tensor) -> None:
    """Raise unless scores of arcs have a floating dtype and the shape ``(*batch, n+1, n+1)``."""
    check_tensor(scores, "Scores")
    shape = tuple(scores.shape)
    if scores.dtype not in DTYPES:
        check_dtype(scores, "Scores")
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 1:
        raise TreeparseError(f"Scores must have shape (*batch, n+1, n+1) for n words and the root, got {shape}.")


def check_tensor(value: object, name: str) -> None:
    """Raise unless an argument is a tensor."""
    if not isinstance(value, Tensor):
        raise TreeparseError(f"{name} must be a tensor, got a {type(value).__name__}: use torch.tensor.")


def check_dtype(scores: Tensor | LabelSource, name: str) -> None:
    """Raise unless scores are of a dtype that sums can be taken of."""
    if scores.dtype not in DTYPES:
        known = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES)
        raise TreeparseError(f"{name} must be floating-point numbers ({known}), got {scores.dtype}.")


def check_device(values: Tensor | LabelSource, name: str, device: torch.device) -> None:
    """Raise unless values are on the device of the arcs' scores."""
    if values.device != device:
        raise TreeparseError(f"{name} must be on the device of the arcs' scores, {device}, got {values.device}.")


def full_lengths(scores: Tensor, lengths: Tensor | None, *, validate: bool) -> Tensor:
    """Return lengths as int64 ``(*batch,)`` on the scores' device.

    Lengths out of range raise, because kernels trust them. Lengths on a device that are not to be validated are clamped
    instead, which causes no device sync.
    """
    batch, words = tuple(scores.shape[:-2]), scores.shape[-1] - 1
    if lengths is None:
        return torch.full(batch, words, device=scores.device)
    check_tensor(lengths, "Lengths")
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TreeparseError(f"Lengths must be integers, got {lengths.dtype}.")
    if tuple(lengths.shape) != batch:
        raise TreeparseError(f"Lengths must have the scores' batch shape {batch}, got {tuple(lengths.shape)}.")
    if not (validate or readable_without_sync(lengths)):
        return moved(lengths, scores.device, torch.int64).clamp(0, words)
    values = lengths.reshape(-1).tolist()
    least, most = min(values, default=0), max(values, default=0)
    if least < 0 or most > words:
        raise TreeparseError(
            f"Lengths must lie between 0 and the {words} words of the scores, got lengths from {least} to {most}; the "
            "root is not a word."
        )
    is_ready = lengths.dtype is torch.int64 and lengths.device == scores.device
    return lengths if is_ready else moved(lengths, scores.device, torch.int64)


def arc_mask(lengths: Tensor, nodes: int) -> Tensor:
    """Return the entries ``(*batch, nodes, nodes)`` bool that are arcs between words or from the root."""
    position = torch.arange(nodes, device=lengths.device)
    inside = position <= lengths.unsqueeze(-1)
    words = inside & (position > 0)
    return inside.unsqueeze(-1) & words.unsqueeze(-2) & (position.unsqueeze(-1) != position)


def check_count(k: int) -> int:
    """Return a number of trees; raise unless it is 1 or more."""
    if k < 1:
        raise TreeparseError(f"The number of trees must be an integer, 1 or more, got {k!r}.")
    return k


def check_heads(heads: Tensor, words: Tensor, name: str = "Heads", *, samples: bool = False) -> Tensor:
    """Return heads or labels ``(*batch, n+1)`` as int64 on the device of ``words``, -1 at node 0 and at padding.

    The top of this module has the rule on shapes and padding. The heads' range is not checked.

    Args:
        heads: of any integer dtype.
        words: where words are ``(*batch, n+1)`` bool.
        name: what error messages call the tensor.
        samples: whether further dimensions may precede the batch dimensions.

    Raises:
        TreeparseError: for another dtype or shape.
    """
    check_tensor(heads, name)
    if heads.is_floating_point() or heads.is_complex() or heads.dtype == torch.bool:
        raise TreeparseError(f"{name} must be integers, got {heads.dtype}.")
    shape, sizes = tuple(words.shape), tuple(heads.shape)
    first = len(sizes) - len(shape) if samples else 0
    fit = first >= 0 and sizes[-1:] == shape[-1:] and fits(sizes[first:], shape)
    if sizes != shape[-1:] and not fit:
        names, here = ("(*sample, *batch, n+1)", "here ending in") if samples else ("(*batch, n+1)", "here")
        raise TreeparseError(f"{name} must have the shape {names}, {here} {shape}, got {sizes}: {BROADCASTING}.")
    return torch.where(words, moved(heads, words.device, torch.int64), -1)


def check_trees(
    value: Tensor | tuple[Tensor, Tensor], labels: Tensor | None, words: Tensor, *, samples: bool = False
) -> tuple[Tensor, Tensor]:
    """Return heads and labels, of two arguments or of one pair, as `check_heads` does, broadcast to one shape."""
    heads, ids = heads_and_labels(value, labels)
    if ids is None:
        raise TreeparseError(
            "A labelled tree must be a pair of heads and labels, or two tensors, got a Tensor without labels. For "
            "heads with any labels, use p.arcs.log_prob(heads)."
        )
    checked = check_heads(heads, words, samples=samples), check_heads(ids, words, "Labels", samples=samples)
    heads, ids = torch.broadcast_tensors(*checked)
    return heads, ids


def fits(sizes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Tell whether sizes are those of a shape, or 1 where they differ."""
    return len(sizes) == len(shape) and all(size in (1, full) for size, full in zip(sizes, shape, strict=True))


def check_head_range(heads: Tensor, lengths: Tensor) -> None:
    """Raise for a head of ``(*sample, *batch, n+1)``, as `check_heads` returns it, that its word cannot have."""
    position = torch.arange(heads.shape[-1], device=heads.device)
    bad = (heads > lengths.unsqueeze(-1)) | (heads == position)
    if bool(bad.any()):
        *index, word = bad.nonzero()[0].tolist()
        item = index[len(index) - lengths.dim() :]
        raise TreeparseError(
            f"The head of word {word}{_of_item(item)} must be one of the nodes 0 to {int(lengths[tuple(item)])} other "
            f"than the word, got {int(heads[(*index, word)])}; -1 leaves the head open."
        )


def check_whole_trees(heads: Tensor, words: Tensor, lengths: Tensor) -> None:
    """Raise for lists ``(*sample, *batch, n+1)`` that lack heads of some words, or with heads that are no nodes."""
    nodes = heads.shape[-1]
    lacking = words & (heads < 0) & (heads >= 0).any(-1, keepdim=True)
    bad = lacking | (heads >= nodes)
    if not bool(bad.any()):
        return
    *index, word = bad.nonzero()[0].tolist()
    item, head = index[len(index) - lengths.dim() :], int(heads[(*index, word)])
    what = f"The head of word {word}{_of_item(item)}"
    if head >= nodes:
        raise TreeparseError(f"{what} must be one of the nodes 0 to {nodes - 1}, got {head}.")
    raise TreeparseError(
        f"{what} must be a node, got {head}: log_prob and score take whole trees, and other words of the sentence's "
        f"{int(lengths[tuple(item)])} have heads. For padding, give the distribution lengths; for unknown heads, the "
        "log probability of all trees with the known ones is p.given(heads).log_partition - p.log_partition."
    )


def heads_and_labels(
    value: Tensor | tuple[Tensor, Tensor], labels: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return heads and labels from two arguments or from one pair; labels are None for heads alone."""
    if labels is None and isinstance(value, tuple | list) and len(value) == 2:
        return value[0], value[1]
    if not isinstance(value, Tensor):
        raise TreeparseError(
            f"A labelled tree must be a pair of heads and labels, or two tensors, got a {type(value).__name__} "
            f"{'without labels' if labels is None else 'and labels'}."
        )
    return value, labels


def check_scores(scores: Tensor, lengths: Tensor, *, of: str = "") -> None:
    """Raise for the first score of an arc that is NaN, +inf or, if finite, beyond ``MAX_SCORE``.

    Scores ``(*batch, n+1, n+1, ...)`` may have further dimensions; in errors, ``of`` precedes "arc".
    """
    if not _may_be_unusable(scores.detach()):
        return
    arcs = arc_mask(lengths, scores.shape[lengths.dim()])
    mask = arcs.reshape(*arcs.shape, *[1] * (scores.dim() - arcs.dim()))
    _check_usable(scores, mask, lengths.dim(), lambda part: f"{of}arc {part[0]} -> {part[1]}", "it" if of else "an arc")


def check_other_parts(parts: Parts, kinds: Sequence[PartKind], lengths: Tensor, *, values: bool) -> None:
    """Raise for scores of other parts than arcs that have wrong shapes, and if ``values`` as ``check_scores`` does."""
    if len(parts) - 1 != len(kinds):
        raise TreeparseError(f"These trees need scores of {named(kinds)}, got {len(parts)} tensor(s).")
    nodes = parts.arcs.shape[-1]
    for kind, scores in zip(kinds, parts.others, strict=True):
        check_dtype(scores, f"Scores of {kind.name}")
        check_device(scores, f"Scores of {kind.name}", parts.arcs.device)
        shape = (*lengths.shape, *kind.shape(nodes))
        if tuple(scores.shape) != shape:
            raise TreeparseError(f"Scores of {kind.name} must have shape {shape}, got {tuple(scores.shape)}.")
        if not values or not _may_be_unusable(scores.detach()):
            continue
        mask = kind.mask(lengths.reshape(-1), nodes).expand(lengths.numel(), *shape[lengths.dim() :]).reshape(shape)
        _check_usable(scores, mask, lengths.dim(), lambda part, name=kind.name: f"{name} at {part}", "a part")


def _may_be_unusable(scores: Tensor) -> bool:
    """Return whether scores may be NaN, infinite or too large: one cheap pass, which cannot tell a -inf from these."""
    if scores.numel() == 0:
        return False
    least, most = scores.aminmax()
    return not (least.item() >= -MAX_SCORE and most.item() <= MAX_SCORE)


def _check_usable(
    scores: Tensor, mask: Tensor, axes: int, describe: Callable[[tuple[int, ...]], str], forbidden: str
) -> None:
    """Raise for the first score within a mask that is neither -inf nor in range, after ``axes`` batch dimensions.

    ``describe`` names the part of an index; ``forbidden`` is what -inf forbids.
    """
    values = scores.detach().double()
    usable = (values.abs() <= MAX_SCORE) | (values == -torch.inf)
    for index in (mask & ~usable).nonzero()[:1].tolist():
        value, where = values[tuple(index)].item(), f"{describe(tuple(index[axes:]))}{_of_item(index[:axes])}"
        rule = "scores must be below +inf and not NaN"
        if abs(value) < torch.inf:
            rule = f"finite scores must lie between {-MAX_SCORE:,.0f} and {MAX_SCORE:,.0f}"
        raise TreeparseError(f"The score of {where} is {value}; {rule}. To forbid {forbidden}, use -inf.")


def clamped(scores: Tensor) -> Tensor:
    """Clamp scores that are not checked to ``MAX_SCORE``; -inf stays, and NaN becomes -inf."""
    if readable_without_sync(scores) and not _may_be_unusable(scores.detach()):
        return scores
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))  # shorter dtypes have no such number
    return torch.where(scores > -torch.inf, scores.clamp(-MAX_SCORE, MAX_SCORE), -torch.inf)


def check_label_scores(label_scores: Tensor | LabelSource, scores: Tensor, lengths: Tensor, *, values: bool) -> None:
    """Raise for label scores that do not fit the arcs' scores, and if ``values`` as ``check_scores`` does.

    The values of a ``LabelSource`` are not checked.
    """
    if not hasattr(label_scores, "from_heads"):  # as a LabelSource has it
        check_tensor(label_scores, "Label scores")
    check_dtype(label_scores, "Label scores")
    check_device(label_scores, "Label scores", scores.device)
    shape = tuple(scores.shape)
    if tuple(label_scores.shape[:-1]) != shape or label_scores.shape[-1] < 1:
        raise TreeparseError(
            f"Label scores must have the shape {shape} of the arcs' scores and a last dimension for the labels, got "
            f"{tuple(label_scores.shape)}."
        )
    if values and isinstance(label_scores, Tensor):
        check_scores(label_scores, lengths, of="a label of ")


def no_tree_error(
    scores: Tensor, lengths: Tensor, item: list[int], *, single_root: bool, kinds: Sequence[PartKind]
) -> NoTreeError:
    """Make the error for one batch item without a tree; it names the words that cannot be reached."""
    count = int(lengths[tuple(item)]) + 1
    allowed = (scores[tuple(item)][:count, :count] > -torch.inf).tolist()
    kind = "single-root tree" if single_root else "tree"
    start = f"There is no {kind}{_of_item(item)}: "
    missed = _unreached(allowed, [0])
    if missed:
        return NoTreeError(f"{start}no arcs of finite score lead from the root to {_words(missed)}.")
    # Every word is reached, but maybe from several words below the root: name the words that the best one misses.
    tops = [word for word in range(1, count) if allowed[0][word]] if single_root else [0]
    top, missed = min(((top, _unreached(allowed, [top])) for top in tops), key=lambda pair: len(pair[1]))
    if missed:
        return NoTreeError(
            f"{start}no word below the root reaches all others by arcs of finite score; word {top}, the best, does not "
            f"reach {_words(missed)}."
        )
    reach = "arcs of finite score lead from the root to all words"
    if kinds:
        return NoTreeError(f"{start}{reach}, but no {kind} has finite scores of its {named(kinds)}.")
    return NoTreeError(
        f"There is no projective {kind}{_of_item(item)}: {reach}, but every {kind} of such arcs has some that cross."
    )


def _unreached(allowed: list[list[bool]], start: list[int]) -> list[int]:
    """Return the words that no allowed arcs from the start nodes reach."""
    reached, todo = set(start), list(start)
    while todo:
        head = todo.pop()
        new = [word for word in range(1, len(allowed)) if allowed[head][word] and word not in reached]
        reached.update(new)
        todo.extend(new)
    return [word for word in range(1, len(allowed)) if word not in reached]


def _of_item(item: list[int]) -> str:
    if not item:
        return ""
    return f" in batch item {item[0] if len(item) == 1 else tuple(item)}"


def _words(words: list[int]) -> str:
    return f"word{'s' if len(words) > 1 else ''} {', '.join(map(str, words))}"
