"""Checks of a distribution's arguments, and the sentence that says why a batch item has no tree."""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor  # torch has no public name for it

from treeparse.batch import moved
from treeparse.errors import NoTreeError, TreeparseError
from treeparse.trees.looks import is_at_hand

MAX_SCORE = 1e12  # the largest magnitude of a finite score: float64 has steps of 1e-4 there
MAX_SUMMABLE = 1e300  # that of scores which are not checked


class Shaped(Protocol):
    """What has a shape, a dtype and a device, as tensors do."""

    @property
    def shape(self) -> torch.Size: ...

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def device(self) -> torch.device: ...


def check_shape(scores: Tensor) -> None:
    """Raise for what cannot be scores of arcs, whatever they hold."""
    check_outside_transforms(scores)
    shape = tuple(scores.shape)
    if not scores.is_floating_point():
        raise TreeparseError(f"Scores must be floating-point numbers, not {scores.dtype}.")
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
        raise TreeparseError(f"Scores must have shape (*batch, n+1, n+1) with n >= 1 words, not {shape}.")


def full_lengths(scores: Tensor, lengths: Tensor | None, *, validate: bool) -> Tensor:
    """Lengths as int64 ``(*batch,)`` on the scores' device.

    Kernels trust them, so they are checked; those that are not at hand, unless they are to be validated, are forced
    into range instead, for which nothing waits.
    """
    batch, words = tuple(scores.shape[:-2]), scores.shape[-1] - 1
    if lengths is None:
        return torch.full(batch, words, device=scores.device)
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TreeparseError(f"Lengths must be integers, not {lengths.dtype}.")
    if tuple(lengths.shape) != batch:
        raise TreeparseError(f"Lengths must have the scores' batch shape {batch}, not {tuple(lengths.shape)}.")
    if not (validate or is_at_hand(lengths)):
        return moved(lengths, scores.device, torch.int64).clamp(1, words)
    if lengths.numel() and not 1 <= int(lengths.min()) <= int(lengths.max()) <= words:
        raise TreeparseError(
            f"Lengths must lie between 1 and the {words} words of the scores, not between {int(lengths.min())} and "
            f"{int(lengths.max())} (the root is not a word)."
        )
    return moved(lengths, scores.device, torch.int64)


def check_outside_transforms(scores: Tensor) -> None:
    """Raise inside ``torch.vmap`` and ``torch.func``: compiled sums have no rules for them."""
    # torch.compile cannot trace this question; in what it compiles, torch itself refuses our functions in transforms.
    if not torch.compiler.is_compiling() and is_functorch_wrapped_tensor(scores):
        raise TreeparseError(
            "Distributions over trees do not work inside torch.vmap and the transforms of torch.func: put the scores "
            "into one batch (*batch, n+1, n+1), and take derivatives by torch.autograd."
        )


def arc_mask(lengths: Tensor, nodes: int) -> Tensor:
    """Where arcs between words and from the root are ``(*batch, nodes, nodes)`` bool; the rest is ignored."""
    position = torch.arange(nodes, device=lengths.device)
    inside = position <= lengths.unsqueeze(-1)
    words = inside & (position > 0)
    return inside.unsqueeze(-1) & words.unsqueeze(-2) & (position.unsqueeze(-1) != position)


def check_count(k: int) -> int:
    """The number of trees asked for, or an error."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise TreeparseError(f"The number of trees must be a whole number, 1 or more, not {k!r}.")
    return k


def check_heads(heads: Tensor, scores: Tensor, name: str = "Heads") -> Tensor:
    """Head lists, or labels of words, with all batch dimensions of the scores, int64 on their device, or an error."""
    shape = scores.shape[:-1]
    if heads.is_floating_point() or heads.is_complex() or heads.dtype == torch.bool:
        raise TreeparseError(f"{name} must be integers, not {heads.dtype}.")
    try:
        full = np.broadcast_shapes(heads.shape, shape)  # torch's imports sympy, which takes half a second
    except ValueError:
        full = ()
    if heads.dim() == 0 or heads.shape[-1] != shape[-1] or full[-len(shape) :] != shape:
        raise TreeparseError(
            f"{name} must have shape (*sample, *batch, n+1), ending in {tuple(shape)}, not {tuple(heads.shape)}."
        )
    return moved(heads, scores.device, torch.int64).expand(full)


def check_heads_in_range(heads: Tensor, lengths: Tensor) -> None:
    """Raise for a known head ``(*batch, n+1)`` of a word that is none of its sentence's other nodes."""
    position = torch.arange(heads.shape[-1], device=heads.device)
    ends = lengths.unsqueeze(-1)
    bad = (position > 0) & (position <= ends) & ((heads > ends) | (heads == position))
    if bool(bad.any()):
        *item, word = bad.nonzero()[0].tolist()
        raise TreeparseError(
            f"Word {word}{_of_item(item)} is given the head {int(heads[(*item, word)])}, but its head is one of the "
            f"nodes 0 to {int(lengths[tuple(item)])} other than itself; -1 leaves it open."
        )


def check_equal_lengths(lengths: Tensor, others: Tensor) -> None:
    """Raise unless two distributions are over sentences of the same lengths."""
    if lengths is not others and not torch.equal(others.to(lengths.device), lengths):
        raise TreeparseError("The two distributions are over sentences of different lengths.")


def check_mask(mask: Tensor, scores: Tensor) -> None:
    """Raise unless a mask of arcs is bool and of the scores' shape."""
    if mask.dtype != torch.bool or mask.shape != scores.shape:
        raise TreeparseError(
            f"A mask must say true or false of every arc, in the scores' shape {tuple(scores.shape)}, here it is "
            f"{mask.dtype} {tuple(mask.shape)}."
        )


def check_scores(scores: Tensor, lengths: Tensor, *, of: str = "") -> None:
    """Raise for the first score on a real arc that is NaN, +inf or, finite, beyond ``MAX_SCORE``.

    Scores ``(*batch, n+1, n+1, ...)`` may have further dimensions; they are scores of ``of`` the arc.
    """
    if not _may_be_unusable(scores.detach()):
        return
    arcs = arc_mask(lengths, scores.shape[lengths.dim()])
    bad = (arcs.reshape(*arcs.shape, *[1] * (scores.dim() - arcs.dim())) & ~_are_usable(scores.detach())).nonzero()
    if len(bad):
        place = bad[0].tolist()
        item, (head, dependent) = place[: lengths.dim()], place[lengths.dim() :][:2]
        value = scores[tuple(place)].item()
        what = f"The score of {of}arc {head} -> {dependent}{_of_item(item)} is {value}"
        if abs(value) < torch.inf:
            raise TreeparseError(
                f"{what}; finite scores must lie between {-MAX_SCORE:g} and {MAX_SCORE:g}, since rounding hides what "
                f"sums of larger ones differ by (-inf forbids {'it' if of else 'an arc'})."
            )
        raise TreeparseError(
            f"{what}; scores must be below +inf and not NaN (-inf forbids {'it' if of else 'an arc'})."
        )


def _may_be_unusable(scores: Tensor) -> bool:
    """Whether a closer look is needed: one pass, which finds NaN, but does not see past -inf."""
    if scores.numel() == 0:
        return False
    least, most = scores.aminmax()
    return not bool((most <= _limit(scores)) & (least >= -_limit(scores)))


def _are_usable(scores: Tensor) -> Tensor:
    """Which scores are in range, or -inf; NaN is not."""
    return ((scores <= _limit(scores)) & (scores >= -_limit(scores))) | (scores == -torch.inf)


def _limit(scores: Tensor) -> float:
    """``MAX_SCORE``, or the largest number of the scores' dtype."""
    return min(MAX_SCORE, torch.finfo(scores.dtype).max)


def summable(scores: Tensor, narrow: Tensor) -> Tensor:
    """Float64 scores that were not checked, so that sums of them neither overflow nor are NaN, which becomes -inf.

    Most of them are summable as they are; to look takes a fifth of the time, but waits for a device. A look at what
    they were made from, ``narrow``, is the cheaper one: whatever is finite in a shorter dtype can be summed.
    """
    if scores.numel() > 0 and is_at_hand(scores):
        narrow = narrow.detach()
        if narrow.dtype == torch.float64:
            least, most = narrow.aminmax()
            if least.item() >= -MAX_SUMMABLE and most.item() <= MAX_SUMMABLE:
                return scores
        elif narrow.max().item() < torch.inf:  # which NaN is not
            return scores
    return torch.where(scores > -torch.inf, scores.clamp(-MAX_SUMMABLE, MAX_SUMMABLE), -torch.inf)


def check_label_scores(label_scores: Shaped, scores: Tensor, lengths: Tensor, *, values: bool) -> None:
    """Raise for label scores that do not fit the arcs' scores, and if ``values`` for what ``check_scores`` refuses.

    The values of what is no tensor are not looked at.
    """
    if isinstance(label_scores, Tensor):
        check_outside_transforms(label_scores)
    if not label_scores.dtype.is_floating_point:
        raise TreeparseError(f"Label scores must be floating-point numbers, not {label_scores.dtype}.")
    shape = tuple(scores.shape)
    if tuple(label_scores.shape[:-1]) != shape or label_scores.shape[-1] < 1:
        raise TreeparseError(
            f"Label scores must have the shape {shape} of the arcs' scores and a last dimension for the labels, not "
            f"{tuple(label_scores.shape)}."
        )
    if label_scores.device != scores.device:
        raise TreeparseError(f"Label scores are on {label_scores.device}, the arcs' scores on {scores.device}.")
    if values and isinstance(label_scores, Tensor):
        check_scores(label_scores, lengths, of="a label of ")


def no_tree_error(scores: Tensor, lengths: Tensor, item: list[int], *, single_root: bool) -> NoTreeError:
    """The error for one batch item without a tree, projective or not; names the words that cannot be reached."""
    count = int(lengths[tuple(item)]) + 1
    allowed = (scores[tuple(item)][:count, :count] > -torch.inf).tolist()
    kind = "single-root tree" if single_root else "tree"
    start = f"There is no {kind}{_of_item(item)}: "
    missed = _unreached(allowed, [0])
    if missed:
        return NoTreeError(f"{start}no arcs of finite score lead from the root to {_words(missed)}.")
    # Every word is reached, but maybe from several words below the root: name what the best of them leaves out.
    tops = [word for word in range(1, count) if allowed[0][word]] if single_root else [0]
    top, missed = min(((top, _unreached(allowed, [top])) for top in tops), key=lambda pair: len(pair[1]))
    if not missed:
        return NoTreeError(
            f"There is no projective {kind}{_of_item(item)}: arcs of finite score lead from the root to all words, but "
            f"every {kind} of such arcs has some that cross."
        )
    return NoTreeError(
        f"{start}no word below the root reaches all others by arcs of finite score; word {top}, the best, does not "
        f"reach {_words(missed)}."
    )


def _unreached(allowed: list[list[bool]], start: list[int]) -> list[int]:
    """Words that arcs from the start nodes do not reach."""
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
