"""Lists of labelled trees drawn at random."""

from collections.abc import Sequence

import numpy as np
from torch import Generator, Tensor

from treeparse.model.inference.lists import TreeLists, as_crf, list_length
from treeparse.model.inference.ruled import DistinctDraws, IndependentDraws, ItemList, RuledBatch, accepted_lists
from treeparse.model.inference.tree_request import TreeRequest
from treeparse.trees import LabeledCRF, LabeledDistribution


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
        k, generators = (
            list_length(request.k, p, different=not request.replacement),
            _generators(request.seed, ordinals),
        )
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
