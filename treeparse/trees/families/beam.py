"""Trees without replacement by stochastic beam search (Kool et al. 2019), in tensor operations for any device.

Trees grow word by word. A partial tree has the log probability of all trees with its heads, and a *key*, the largest
key of these trees: Gumbel noise at that location. The keys of its children are drawn so that their maximum is its key.
So the K partial trees of the largest keys lead to the K trees of the largest keys, which are trees drawn without
replacement, in order. The beam is ``DistinctTrees``, an item's partial trees by descending keys: a row has the heads
and labels so far, and its log probability is that of all trees with them.

The probabilities of the next word's heads, given the earlier heads, follow ``treeparse.kernels.samples.prefix``: words
of known head are joined to their heads, and all others are eliminated, in log space, without subtraction. Weights are
head-major, ``w[head, word]``; the next word is always word 1.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from treeparse.batch import moved
from treeparse.trees.families.dense import finite, shifted_log_weights
from treeparse.trees.families.family import DistinctTrees
from treeparse.trees.randomness import uniforms_by_tensors

LABEL_STEPS = 1 << 24  # smaller steps draw heads
SALT = 0x6265616D  # gives these draws another stream than other draws by the same seed
MAX_WEIGHTS = 2**26  # of the items that are computed together


# From log weights ``(B, K, m+1, m+1)`` of joined nodes, and whether node 0 may have any number of words ``(B, K)``: the
# log factor of each head of word 1 besides the arc's weight, up to a constant, ``(B, K, m+1)``.
Reach = Callable[[Tensor, Tensor], Tensor]


@torch.no_grad()
def sample_by_beam(
    scores: Tensor,
    lengths: Tensor,
    seeds: Tensor,
    count: int,
    *,
    single_root: bool,
    label_logs: Tensor | None = None,
    reach: Reach | None = None,
) -> DistinctTrees:
    """Draw ``count`` different trees an item, by descending keys; all tensors stay on the scores' device.

    Args:
        scores: float64 ``(B, n+1, n+1)``.
        lengths: int64 ``(B,)``.
        seeds: int64 ``(B,)``, on any device. A larger count begins with the trees of a smaller one.
        count: the number of trees.
        single_root: whether exactly one word hangs from the root.
        label_logs: float64 ``(B, n+1, n+1, L)`` log probabilities of arcs' labels. Trees are then rows of n+1 heads and
            n+1 labels, and differ where labels do.
        reach: a kernel for the factors of the next word's heads, faster than many small operations of torch.

    Returns:
        Trees ``(B, count, n+1)`` or ``(B, count, 2n+2)``, log probabilities ``(B, count)`` and keys ``(B, count)``;
        past the number of trees -1, -inf and -inf.
    """
    streams = moved(seeds, scores.device) ^ SALT
    items = max(1, MAX_WEIGHTS // (count * scores.shape[-1] ** 2))
    beams = []
    for start in range(0, max(len(scores), 1), items):
        chunk = slice(start, start + items)
        beam = _add_heads(scores[chunk], lengths[chunk], streams[chunk], count, single_root, reach or _reach)
        if label_logs is not None:
            beam = _add_labels(beam, label_logs[chunk], lengths[chunk], streams[chunk], count)
        beams.append(_cleaned(beam, lengths[chunk], scores.shape[-1], count))
    return DistinctTrees(*(torch.cat(part) for part in zip(*beams, strict=True)))


def _add_heads(
    scores: Tensor, lengths: Tensor, seeds: Tensor, count: int, single_root: bool, reach: Reach
) -> DistinctTrees:
    """Return the beam of trees; it grows from the empty tree."""
    batch, nodes = scores.shape[:2]
    _, arcs, _ = shifted_log_weights(scores, lengths)
    w = arcs.unsqueeze(1)
    component = torch.arange(nodes, device=scores.device).expand(batch, 1, nodes)
    root_is_used = torch.zeros(batch, 1, dtype=torch.bool, device=scores.device)
    heads = torch.full((batch, 1, nodes), -1, device=scores.device)
    beam = DistinctTrees(heads, torch.zeros_like(scores[:, :1, 0]), _gumbel(seeds, 0, 1, 1).squeeze(-1))
    for word in range(1, nodes):
        closed = root_is_used & single_root
        logits = arcs[:, None, :, word] + reach(w, closed | (not single_root)).gather(-1, component)
        logits[..., 0].masked_fill_(closed, -torch.inf)
        logits -= finite(logits.logsumexp(-1, keepdim=True))
        beam, parent, head = _grow(beam, word, logits, _gumbel(seeds, word, logits.shape[1], nodes), count)
        root_is_used = root_is_used.gather(1, parent) | (head == 0)
        w, component = _join(_select(w, parent), _select(component, parent), head, single_root)
    return beam


def _add_labels(beam: DistinctTrees, label_logs: Tensor, lengths: Tensor, seeds: Tensor, count: int) -> DistinctTrees:
    """Return the beam of labelled trees from a beam of trees; given the tree, labels are independent."""
    nodes, labels = label_logs.shape[2:]
    beam = beam._replace(rows=torch.nn.functional.pad(beam.rows, (0, nodes), value=-1))
    item = torch.arange(len(lengths), device=lengths.device).unsqueeze(-1)
    padding = torch.where(torch.arange(labels, device=lengths.device) == 0, 0.0, -torch.inf).to(label_logs)
    for word in range(1, nodes):
        is_word = (word <= lengths)[:, None, None]
        logits = torch.where(is_word, label_logs[item, beam.rows[..., word], word], padding)
        noise = _gumbel(seeds, LABEL_STEPS + word, logits.shape[1], labels)
        beam, _, _ = _grow(beam, nodes + word, logits, noise, count)
    return beam


def _grow(
    beam: DistinctTrees, column: int, logits: Tensor, noise: Tensor, count: int
) -> tuple[DistinctTrees, Tensor, Tensor]:
    """Return the best children by their keys, their parents, and their values in a column of the row.

    ``logits`` ``(B, K, C)`` are the log probabilities of values given their parents.
    """
    values = logits.shape[-1]
    logits = beam.log_probs.unsqueeze(-1) + logits
    keys, chosen = _with_maximum(beam.keys, logits + noise).flatten(1).topk(min(count, logits.shape[1] * values))
    parent, value = chosen // values, chosen % values
    rows = _select(beam.rows, parent)
    rows[..., column] = value
    return DistinctTrees(rows, logits.flatten(1).gather(1, chosen), keys), parent, value


def _cleaned(beam: DistinctTrees, lengths: Tensor, nodes: int, count: int) -> DistinctTrees:
    """Pad the beam to ``count`` rows, and clear rows that are no tree and entries that are no word."""
    node = torch.arange(beam.rows.shape[-1], device=lengths.device) % nodes
    is_word = (node > 0) & (node <= lengths.unsqueeze(-1))
    is_tree = beam.keys > -torch.inf
    rows = torch.where(is_tree.unsqueeze(-1) & is_word.unsqueeze(1), beam.rows, -1)
    log_probs = torch.where(is_tree, beam.log_probs, -torch.inf)
    missing, pad = count - beam.keys.shape[1], torch.nn.functional.pad
    return DistinctTrees(
        pad(rows, (0, 0, 0, missing), value=-1),
        *(pad(part, (0, missing), value=-torch.inf) for part in (log_probs, beam.keys)),
    )


def _reach(w: Tensor, rooted: Tensor) -> Tensor:
    """Return ``g`` of ``treeparse.kernels.sums.conditionals`` for word 1 and all nodes ``(B, K, m+1)``, in logs.

    ``rooted`` ``(B, K)`` is true where any number of words may hang from node 0.
    """
    w = w.clone()
    last = w.shape[-1] - 1
    root_words = [rooted] * (last + 1)  # whether only node 0 reaches a word, and only one word may hang from it
    for e in range(last, 1, -1):
        column = w[..., :e, e]
        from_words = column[..., 1:].logsumexp(-1)
        root_words[e] = ~rooted & (from_words == -torch.inf)
        rooted = rooted | root_words[e]
        w[..., 0, :e].masked_fill_(root_words[e].unsqueeze(-1), -torch.inf)
        pivot = torch.where(rooted, torch.logaddexp(column[..., 0], from_words), from_words)
        column -= finite(pivot).unsqueeze(-1)
        block = w[..., :e, :e]
        torch.logaddexp(block, column.unsqueeze(-1) + w[..., e, :e].unsqueeze(-2), out=block)
    reach = torch.full_like(w[..., 0], -torch.inf)
    reach[..., 0] = 0.0
    for e in range(2, last + 1):
        reach[..., e] = (w[..., :e, e] + reach[..., :e]).logsumexp(-1)
        reach[..., 0].masked_fill_(root_words[e], -torch.inf)
    return reach


def _join(w: Tensor, component: Tensor, head: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """Join word 1 to the component of its ``head`` ``(B, K)``; the indices of later words fall by one."""
    target = component.gather(-1, head.unsqueeze(-1))
    if single_root:  # node 0 may head no more words
        w[..., 0, :].masked_fill_((head == 0).unsqueeze(-1), -torch.inf)
    rows = torch.arange(w.shape[-1], device=w.device) == target
    w = torch.where(rows.unsqueeze(-1), torch.logaddexp(w, w[..., 1:2, :]), w)
    w = torch.cat([w[..., :1, :], w[..., 2:, :]], -2)
    w = torch.cat([w[..., :1], w[..., 2:]], -1)
    w.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
    component = torch.where(component == 1, target, component)
    return w, component - (component > 1).to(component.dtype)


def _with_maximum(keys: Tensor, noisy: Tensor) -> Tensor:
    """Return keys ``(B, K, C)`` of children, given that their maximum is their parent's key ``(B, K)``.

    ``noisy`` are their log probabilities plus Gumbel noise (Kool et al. 2019, appendix B.3, without overflow).
    """
    gaps = noisy - finite(noisy.amax(-1, keepdim=True))  # at most 0
    log_remainder = torch.where(gaps > -0.7, (-gaps.expm1()).log(), (-gaps.exp()).log1p())  # of 1 - exp(gap)
    v = keys.unsqueeze(-1) - noisy + log_remainder
    result = keys.unsqueeze(-1) - v.clamp(min=0.0) - (-v.abs()).exp().log1p()
    return torch.where((noisy > -torch.inf) & (keys > -torch.inf).unsqueeze(-1), result, -torch.inf)


def _select(tensor: Tensor, parent: Tensor) -> Tensor:
    """Select the parents' entries ``(B, K', ...)`` of ``(B, K, ...)``."""
    return tensor[torch.arange(len(parent), device=parent.device).unsqueeze(-1), parent]


def _gumbel(seeds: Tensor, step: int, rows: int, count: int) -> Tensor:
    """Draw standard Gumbel noise ``(B, rows, count)``; a number does not depend on the shape."""
    uniform = uniforms_by_tensors(seeds, rows, count, first=step << 32)
    return -(-uniform.log()).log()
