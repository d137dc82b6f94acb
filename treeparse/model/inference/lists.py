"""Lists of the labelled trees of a batch: one chosen tree, the best k, random ones or the sentences' own."""

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Generator, Tensor

from treeparse.batch import fetched, moved
from treeparse.data.features.padding import padded_heads
from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.model.inference.ruled import (
    DistinctDraws,
    IndependentDraws,
    ItemList,
    Row,
    RuledBatch,
    accepted_lists,
    mended_lists,
)
from treeparse.model.inference.tree_request import TreeRequest, known_labels
from treeparse.names import Decoder, listing_decoder_named
from treeparse.sentence import Sentence, tree_problem
from treeparse.trees import LabeledCRF, LabeledDistribution, Mixture

ARCS = 2**20  # whose scores are copied at once, for the probabilities of several arcs together
LONGEST_LIST = 2**27  # words in the list of one sentence


class TreeLists(NamedTuple):
    """The labelled trees of a batch, up to K for each item, in order; -1 and -inf pad shorter lists."""

    heads: Tensor  # (K, B, n+1)
    labels: Tensor  # (K, B, n+1)
    scores: Tensor  # (K, B) sums over the labelled arcs
    log_probs: Tensor  # (K, B) nats

    @classmethod
    def of(cls, lists: Sequence[ItemList], log_partition: Tensor, nodes: int) -> Self:
        """Return the lists of trees of ``nodes`` nodes, with log probabilities from the log partition ``(B,)``."""
        longest = max(len(each.rows) for each in lists)
        columns = ([row[part] for each in lists for row in _filled(each.rows, longest, nodes)] for part in range(2))
        shape, device = (len(lists), longest, nodes), log_partition.device
        heads, labels = (torch.tensor([*rows], device=device).reshape(shape).transpose(0, 1) for rows in columns)
        scores = [[*each.scores, *[-math.inf] * (longest - len(each.scores))] for each in lists]
        values = torch.tensor(scores, dtype=torch.float64, device=device).T
        return cls(heads, labels, values, values - log_partition)

    def items(self) -> list[ItemList]:
        """The trees of each item."""
        heads, labels, scores = (column.transpose(0, 1) for column in fetched(*self[:3]))
        counts = (heads[..., 1] >= 0).sum(-1)
        columns = zip(*(column.tolist() for column in (counts, heads, labels, scores)), strict=True)
        return [
            ItemList(list(itertools.islice(zip(heads, labels, strict=True), n)), scores[:n])
            for n, heads, labels, scores in columns
        ]

    def parses(self, sentences: Sequence[Sentence], names: Sequence[str]) -> list[list[Parse]]:
        """The trees of each sentence as parses; ``names`` are the labels by their ids."""
        heads, labels, *values = (column.transpose(0, 1).numpy() for column in fetched(*self))
        real = heads[..., 1] >= 0
        # Convert all items at once, because that is faster. Leave out the padding, because the longest list may be
        # hundreds of times as long as others.
        named = np.array(names, dtype=object)[labels[real]]
        rows = zip(*(column.tolist() for column in (heads[real], named, *(each[real] for each in values))), strict=True)
        return [
            [_parse(sentence, *row) for row in itertools.islice(rows, count)]
            for sentence, count in zip(sentences, real.sum(-1).tolist(), strict=True)
        ]


def chosen_trees(p: LabeledDistribution, decoder: Decoder) -> TreeLists:
    """Return lists of one tree, which the decoder chooses; log probabilities are among all trees."""
    return _lists_of_one(p, *p.decode(decoder))


def own_trees(p: LabeledDistribution, sentences: Sequence[Sentence], label_names: Sequence[str]) -> TreeLists:
    """Return lists of one tree, the sentence's own; a label that is none of ``label_names`` is impossible."""
    trees = padded_heads(sentences), known_labels(sentences, label_names)
    return _lists_of_one(p, *(moved(part, p.device) for part in trees))


def check_own_trees(sentences: Sequence[Sentence]) -> None:
    """Raise if a sentence has no tree."""
    for number, sentence in enumerate(sentences, 1):
        problem = "it came without heads or labels"
        if sentence.heads is not None and sentence.labels is not None:
            problem = tree_problem(sentence.heads, single_root=False)
        if problem:
            raise TreeparseError(f"Sentence {number} has no tree: {problem}.")


def best_trees(p: LabeledDistribution, k: int, decoder: Decoder) -> TreeLists:
    """Return the k best labelled trees, best first; log probabilities are among all trees, whatever the decoder."""
    crf = as_crf(p, "Lists of the best trees")
    k = list_length(k, p, different=True)
    heads, labels, scores, _ = crf.for_decoder(listing_decoder_named(decoder)).topk(k)
    return TreeLists(heads, labels, scores, crf.log_prob_of_scored(heads, labels, scores))


def mended_trees(best: TreeLists, p: LabeledDistribution, k: int, decoder: Decoder, batch: RuledBatch) -> TreeLists:
    """Return lists of the k best trees that satisfy rules: a search replaces lists with a tree that breaks one."""
    crf, before = as_crf(p, "Rules"), best.items()
    lists = mended_lists(before, crf.for_decoder(decoder), k, batch)
    if all(map(operator.is_, lists, before)):
        return best
    return TreeLists.of(lists, crf.log_partition, best.heads.shape[-1])


def _lists_of_one(p: LabeledDistribution, heads: Tensor, labels: Tensor) -> TreeLists:
    """Return lists of one tree from heads and labels ``(B, n+1)``."""
    scores = p.score(heads, labels)
    log_probs = p.log_prob_of_scored(heads, labels, scores)
    return TreeLists(*(column.unsqueeze(0) for column in (heads, labels, scores, log_probs)))


def as_crf(p: LabeledDistribution, purpose: str) -> LabeledCRF:
    """Return a distribution in which a tree's score is a sum over its parts.

    Raises:
        TreeparseError: for another distribution; ``purpose``, a plural, begins the message.
    """
    if isinstance(p, LabeledCRF):
        return p
    raise TreeparseError(
        f"{purpose} need a tree's log probability to be a sum over its arcs, got a mixture, as of models combined by "
        "marginals: combine them by scores or log_probs."
    )


def list_length(k: int, p: LabeledDistribution, *, different: bool) -> int:
    """Return ``k``; if trees must be different, at most the number of labelled trees of the longest sentence."""
    words, labels = p.shape[1] - 1, p.shape[3]
    if different:
        k = min(k, (words + 1) ** (words - 1) * labels**words)
    if k * words > LONGEST_LIST:
        raise TreeparseError(f"{k} trees of {words} words are too many: ask for {LONGEST_LIST // words} or fewer.")
    return k


def _parse(sentence: Sentence, heads: list[int], labels: list[str], score: float, log_prob: float) -> Parse:
    end = len(sentence.forms) + 1
    return Parse(sentence.forms, tuple(heads[1:end]), tuple(labels[1:end]), log_prob, score)


def _filled(rows: Sequence[Row], count: int, nodes: int) -> Iterator[Row]:
    """Yield the trees, then trees of -1 up to ``count``."""
    nothing = [-1] * nodes
    return itertools.chain(rows, itertools.repeat((nothing, nothing), count - len(rows)))


def sampled_trees(
    p: LabeledDistribution, request: TreeRequest, ordinals: Sequence[int], batch: RuledBatch | None
) -> TreeLists:
    """Draw k labelled trees with probabilities proportional to exp(score / temperature), in the order of the draws.

    The decoder "projective" draws from projective trees, any other from all. Log probabilities are those of the draws;
    scores do not depend on the temperature.

    Args:
        p: the distribution of labelled trees.
        request: has the options of the draws.
        ordinals: of the sentences; the seed and an ordinal determine a sentence's trees.
        batch: the rules that trees must satisfy; None without rules.
    """
    p, temperature = p.for_decoder(request.named_decoder), request.temperature
    drawn_from = p
    if temperature != 1:
        drawn_from = as_crf(p, f"Temperatures other than 1, here {temperature},").tempered(temperature)
    if batch is not None:
        trees = _accepted_trees(as_crf(drawn_from, "Rules"), request, ordinals, batch)
    else:
        k = list_length(request.k, p, different=not request.replacement)
        generators = _generators(request.seed, ordinals)
        if request.replacement:
            trees = drawn_from.sample((k,), generator=generators)
        else:
            trees = drawn_from.sample_without_replacement(k, generator=generators)[:2]
    scores = p.score(*trees)
    log_probs = drawn_from.log_prob_of_scored(*trees, scores / temperature).clamp_max(0.0)
    return TreeLists(*trees, scores, log_probs)


def _accepted_trees(
    p: LabeledCRF, request: TreeRequest, ordinals: Sequence[int], batch: RuledBatch
) -> tuple[Tensor, Tensor]:
    """Draw trees until k of them satisfy the rules; the rounds do not depend on k."""
    most = list_length(batch.search.opened + request.k, p, different=not request.replacement)

    def generators(items: Sequence[int]) -> list[Generator]:
        return _generators(request.seed, [ordinals[item] for item in items])

    if request.replacement:
        drawing = IndependentDraws(p, _generators(request.seed, ordinals))
    else:
        drawing = DistinctDraws(p, generators, most)
    lists = [ItemList(rows, []) for rows in accepted_lists(drawing, request.k, batch)]
    heads, labels, *_ = TreeLists.of(lists, p.log_partition, p.scores.shape[-1])
    return heads, labels


def _generators(seed: int, ordinals: Sequence[int]) -> list[Generator]:
    """Return the generator of each sentence, which depends only on the seed and the sentence's ordinal."""
    sequences = [np.random.SeedSequence(seed, spawn_key=(ordinal,)) for ordinal in ordinals]
    return [Generator().manual_seed(int(each.generate_state(1, np.uint64)[0])) for each in sequences]


def with_probabilities(p: LabeledDistribution, trees: TreeLists, lists: Sequence[Sequence[Parse]]) -> list[list[Parse]]:
    """Add the marginals of arcs and labelled arcs, and the entropy, to the parses of a batch.

    Args:
        p: the distribution of all trees.
        trees: heads and labels of the parses.
        lists: the parses of each sentence, one for each tree.
    """
    marginals = p.tree_marginals(trees.heads, trees.labels)
    arcs, labeled = (part.clamp_max(1.0).transpose(0, 1).tolist() for part in marginals)
    entropies = repeat(None, len(lists)) if isinstance(p, Mixture) else p.entropy().clamp_min(0.0).tolist()
    return [
        [
            replace(parse, arc_probs=_of_words(arcs, parse), label_probs=_of_words(labels, parse), entropy=entropy)
            for parse, arcs, labels in zip(parses, *rows, strict=False)  # padding has no parses
        ]
        for parses, entropy, *rows in zip(lists, entropies, arcs, labeled, strict=True)
    ]


def with_expected_gradients(p: LabeledDistribution, lists: Sequence[Sequence[Parse]]) -> list[list[Parse]]:
    """Add the expected squared length of the gradient to the parses of a batch; a mixture has none."""
    if isinstance(p, Mixture):
        return [[*parses] for parses in lists]
    lengths = p.expected_gradient().clamp_min(0.0).tolist()
    return [
        [replace(parse, expected_gradient=length) for parse in parses]
        for parses, length in zip(lists, lengths, strict=True)
    ]


def with_arc_marginals(p: LabeledDistribution, lists: Sequence[Sequence[Parse]]) -> list[list[Parse]]:
    """Add the probability of each head of each word to the parses of a batch."""
    rows = p.arc_marginals().clamp_max(1.0).transpose(1, 2).cpu()
    return [
        [replace(parse, arc_marginals=_of_heads(parse, marginals)) for parse in parses]
        for parses, marginals in zip(lists, rows, strict=True)
    ]


def _of_heads(parse: Parse, marginals: Tensor) -> tuple[tuple[float, ...], ...]:
    """The rows of the words of a matrix ``(n+1, n+1)`` whose rows are dependents."""
    size = len(parse.tokens) + 1
    return tuple(map(tuple, marginals[1:size, :size].tolist()))


def with_certainties(p: LabeledDistribution, trees: TreeLists, lists: Sequence[Sequence[Parse]]) -> list[list[Parse]]:
    """Add to each word of the parses the probability that its labelled arc and all more probable ones are right."""
    rows = certainties(p, trees.heads[0], trees.labels[0]).tolist()
    return [
        [replace(parse, certainties=_of_words(row, parse)) for parse in parses]
        for parses, row in zip(lists, rows, strict=True)
    ]


def certainties(p: LabeledDistribution, heads: Tensor, labels: Tensor) -> Tensor:
    """Return for each word of a labelled tree the probability of its arc and all more probable ones together.

    The probability of several arcs is the share of the trees that have them in the weight of all, Z(given) / Z, times
    the probabilities of their labels. Arcs come in the order of their labelled marginals, so that a word of a higher
    certainty than another one is right wherever that one and all before it are.

    Args:
        p: a flat batch of distributions.
        heads: ``(B, n+1)``, the trees.
        labels: ``(B, n+1)``.

    Returns:
        ``(B, n+1)`` float64, 1 where there is no word.
    """
    components = p.components if isinstance(p, Mixture) else (p,)
    log_weights = p.log_weights if isinstance(p, Mixture) else heads.new_zeros((1, len(heads)), dtype=torch.float64)
    is_word = heads >= 0
    marginals = p.tree_marginals(heads, labels)[1]
    place = torch.where(is_word, marginals, -1.0).argsort(stable=True, dim=-1, descending=True).argsort(-1)
    probs = torch.ones(heads.shape, dtype=torch.float64, device=heads.device)
    for rows in is_word.nonzero().split(max(1, ARCS // heads.shape[-1] ** 2)):
        items, words = rows.unbind(1)
        known = place[items] <= place[items, words].unsqueeze(1)
        logs = [_log_probs_of_known(each, items, known, heads, labels) for each in components]
        probs[items, words] = (log_weights[:, items] + torch.stack(logs)).logsumexp(0).exp().clamp_max(1.0)
    return probs


def _log_probs_of_known(p: LabeledCRF, items: Tensor, known: Tensor, heads: Tensor, labels: Tensor) -> Tensor:
    """Return the log probabilities ``(I,)`` of the ``known`` arcs ``(I, n+1)`` of items' trees, with their labels."""
    given = p.arcs.of_items(items).given(heads[items].where(known, -1))
    of_labels = p.labels.log_probs_of_arcs(heads.unsqueeze(0), labels.unsqueeze(0))[0, items].where(known, 0.0)
    return given.log_partition - p.arcs.log_partition[items] + of_labels.sum(-1)


def with_head_sets(p: LabeledDistribution, threshold: float, lists: Sequence[Sequence[Parse]]) -> list[list[Parse]]:
    """Add to each word the set of heads whose probability is at least the threshold, and the parse's own head."""
    marginals = p.arc_marginals().transpose(1, 2).cpu()
    return [
        [replace(parse, head_sets=_head_sets(parse, rows >= threshold)) for parse in parses]
        for parses, rows in zip(lists, marginals, strict=True)
    ]


def _head_sets(parse: Parse, chosen: Tensor) -> tuple[tuple[int, ...], ...]:
    """The sets of a boolean matrix ``(n+1, n+1)`` whose rows are dependents."""
    size = len(parse.tokens) + 1
    is_head = chosen[:size, :size] & ~torch.eye(size, dtype=torch.bool)
    is_head[torch.arange(1, size), torch.tensor(parse.heads)] = True
    return tuple(tuple(row.nonzero().flatten().tolist()) for row in is_head[1:])


def _of_words(probs: Sequence[float], parse: Parse) -> tuple[float, ...]:
    """The values of the words, from those of all nodes."""
    return tuple(probs[1 : len(parse.tokens) + 1])
