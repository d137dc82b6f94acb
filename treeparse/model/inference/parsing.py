"""Parse sentences in batches, with the distributions of a parser or of an ensemble.

A `TreeRequest` says which trees to find; `find_trees` finds them.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from treeparse import terminal
from treeparse.batch import moved
from treeparse.data.features.padding import padded_heads
from treeparse.data.mapping import Progress, Words, as_sentences, check_several, each_sentence, map_batches
from treeparse.data.parses import Parse
from treeparse.data.raw_text import CHECKED, RawTextCheck
from treeparse.errors import NoTreeError, TreeparseError, did_you_mean
from treeparse.model.inference.lists import (
    TreeLists,
    as_crf,
    best_trees,
    check_own_trees,
    chosen_trees,
    mended_trees,
    own_trees,
    sampled_trees,
    with_arc_marginals,
    with_certainties,
    with_expected_gradients,
    with_head_sets,
    with_probabilities,
)
from treeparse.model.inference.ruled import RuledBatch
from treeparse.model.inference.tree_request import TreeRequest, UnfitSentenceError
from treeparse.model.tagging import Tagging, TagNames
from treeparse.names import Decoder
from treeparse.rules import RuleTally
from treeparse.sentence import Sentence
from treeparse.trees import LabeledDistribution, Mixture
from treeparse.trees.parts import arcs_of

ARC_BYTES = 60  # at least, for the scores of an arc and what parsing makes of them
PART_BYTES = 8  # at least, for the score of a part of three words and its copy
PART_CELLS = 2**16  # arcs of a batch whose parts of three words are scored: larger ones lose more by padding
LABEL_SCORES = 2**22  # label scores of a batch of lists in memory at once
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
ON_DEVICE = 2  # batches in work at once on a GPU
CPU_WORDS = 4000  # words of a batch on a CPU: larger ones gain little and leave threads without work at the end


class Model(Protocol):
    """The interface that parsing needs from a parser or an ensemble.

    Attributes:
        raw_text: checks the first sentences for text that is not split into words.
    """

    raw_text: RawTextCheck

    @property
    def label_names(self) -> Sequence[str]:
        """The labels by their ids."""
        ...

    @property
    def root_label(self) -> int:
        """The id of the label that arcs from the root, and no others, have; -1 if none is reserved for them."""
        ...

    @property
    def tag_names(self) -> TagNames:
        """The tags of each column that the model predicts, by their ids."""
        ...

    @property
    def networks(self) -> Sequence[Any]:
        """The parsers whose networks score sentences; parsing sets them to evaluation mode."""
        ...

    @property
    def default_decoder(self) -> Decoder:
        """The decoder that is used if none is named: that of the first parser's config."""
        return self.networks[0].config.decoder

    @property
    def device(self) -> torch.device:
        """The device on which sentences are scored."""
        ...

    @property
    def treebanks(self) -> tuple[str, ...]:
        """The names of the treebanks that a model was trained on, if they had names."""
        return tuple(dict.fromkeys(name for network in self.networks for name in network.indexer.treebanks))

    def check_treebank(self, name: str | None) -> None:
        """Raise for the name of a treebank that no model was trained on; None is no name."""
        if name is not None and name not in self.treebanks:
            known = f"the model knows {', '.join(self.treebanks) or 'none by name'}"
            raise TreeparseError(
                f"Unknown treebank {name!r:.60}: {known}" + (did_you_mean(name, self.treebanks) or ".")
            )

    def length(self, sentence: Sentence) -> int:
        """The length of the sentence that counts towards the size of a batch: words, or subwords."""
        return max(each.indexer.features.length(sentence) for each in self.networks)

    def collate(self, sentences: Iterable[Words], indices: Sequence[int] | None = None) -> Any:
        """The sentences as the argument of ``distribution_and_tags``."""
        ...

    def distribution_and_tags(
        self, batch: Any, /, *, keep: Tensor | None = None
    ) -> tuple[LabeledDistribution, Tagging]:
        """The distribution of each sentence's labelled trees, and the probabilities of its tags.

        ``keep`` ``(B, n+1, n+1)`` bool are the arcs of known trees; pruning leaves at least one of them possible.
        """
        ...


def find_trees(
    model: Model,
    sentences: Iterable[Words],
    request: TreeRequest,
    ordinals: int | Sequence[int] = 0,
    *,
    first: int = 0,
    progress: Progress | None = None,
    check: Callable[[], None] = lambda: None,
) -> list[list[Parse]]:
    """Return the list of trees of each sentence, in order.

    Call this directly from a public method: warnings use ``stacklevel=3``.

    Args:
        model: the parser or ensemble whose distributions are used.
        sentences: as for `as_sentences`.
        request: which trees to find, and what to add to them.
        ordinals: of the sentences in a longer list, or that of the first one; with the seed they determine samples.
        first: the index of the first sentence in messages.
        progress: called after each batch with the indices of its sentences.
        check: called after each batch, and again and again in a search by rules, in any thread; it may raise to end the
            call.

    Raises:
        UnfitSentenceError: no tree agrees with the heads, labels and possible heads of a sentence, or its scores do
            not fit into the memory of this machine.
        TreeparseError: as `as_sentences`, the model, the request and the rules do.
    """
    check_several(sentences)
    inputs = list(each_sentence(sentences))
    converted = as_sentences(inputs, first)
    request = request.with_decoder(model.default_decoder)
    if request.treebank is not None:
        model.check_treebank(request.treebank)
        converted = [replace(sentence, treebank=request.treebank) for sentence in converted]
    seeded, search = _as_ordinals(ordinals, len(converted)), request.search
    if request.method == "score":
        check_own_trees(converted)
    for index, sentence in enumerate(converted, first):
        request.conditions.check(sentence, model.label_names, model.root_label, index)
    _check_lengths(model, converted, first)
    if search is not None:
        search.rules.check_labels(model.label_names)
        request = replace(request, rules=replace(search, tally=RuleTally()))
    split_by_user = (
        own.forms
        for own, words in zip(converted[:CHECKED], inputs, strict=False)
        if isinstance(words, list | tuple | Mapping)
    )
    if doubt := model.raw_text.check(split_by_user):
        warnings.warn(terminal.message(f"{doubt[0].upper()}{doubt[1:]}"), stacklevel=3)

    ended = Event()

    def check_running() -> None:
        check()
        if ended.is_set():
            raise CancelledError

    def batch_lists(indices: list[int], chosen: list[Sentence]) -> list[list[Parse]]:
        seeds = [seeded[index] for index in indices]
        return _batch_lists(model, request, chosen, indices, seeds, first, check_running)

    def report(indices: Sequence[int]) -> None:
        check()
        if progress is not None:
            progress([first + index for index in indices])

    with evaluating(model.networks):
        options = {**_threads(model.device), **_limits(model, request)}
        result = map_batches(batch_lists, converted, length=model.length, progress=report, ended=ended, **options)
    if search is not None and request.search is not None:
        search.tally.add(request.search.tally)  # once all is done, so that nothing counts twice when it is not
    return result


@torch.inference_mode()
def _batch_lists(
    model: Model,
    request: TreeRequest,
    sentences: Sequence[Sentence],
    indices: Sequence[int],
    ordinals: Sequence[int],
    first: int,
    check: Callable[[], None],
) -> list[list[Parse]]:
    """Return the lists of a batch; ``first + indices`` are those of the sentences in messages."""
    known, names, root, keep = request.conditions, model.label_names, model.root_label, None
    if any(network.config.prune_below for network in model.networks):
        if request.method == "score":
            keep = arcs_of(moved(padded_heads(sentences), model.device))
        elif known:
            keep = known.arcs(sentences, names, root, model.device)
    batch = model.collate([sentence.without_tree() for sentence in sentences], indices)
    p, tagging = model.distribution_and_tags(batch, keep=keep)
    p = known.conditioned(p, sentences, names, root) if known else p
    search, named_by = request.search, [first + index for index in indices]
    ruled = None if search is None else RuledBatch.of(search, sentences, names, tagging.likeliest("upos"), check)
    with _naming_unfit(p, request, named_by) if known else nullcontext():
        lists = _trees_of(p, request, sentences, names, ordinals, ruled)
        if known and bool((lists.heads[0, :, 1] < 0).any()):
            raise NoTreeError("No tree was found.")
    parses = tagging.add_to(lists.parses(sentences, names))
    _check_found(parses, named_by)
    if request.probabilities:
        parses = with_probabilities(p, lists, parses)
    if request.gradient:
        parses = with_expected_gradients(p, parses)
    if request.arc_marginals:
        parses = with_arc_marginals(p, parses)
    if request.certain is not None:
        parses = with_certainties(p, lists, parses)
    return parses if request.head_threshold is None else with_head_sets(p, request.head_threshold, parses)


def _trees_of(
    p: LabeledDistribution,
    request: TreeRequest,
    sentences: Sequence[Sentence],
    label_names: Sequence[str],
    ordinals: Sequence[int],
    batch: RuledBatch | None,
) -> TreeLists:
    """Return the trees of a batch that a request asks for; ``batch`` has the rules, if there are any."""
    decoder = request.named_decoder
    if request.method == "score":  # whatever the rules
        return own_trees(p, sentences, label_names)
    if request.method == "sample":
        return sampled_trees(p, request, ordinals, batch)
    best = best_trees(p, request.k, decoder) if request.method == "kbest" else chosen_trees(p, decoder)
    return best if batch is None else mended_trees(best, p, request.k, decoder, batch)


def _as_ordinals(ordinals: int | Sequence[int], count: int) -> Sequence[int]:
    """Return the ordinals of ``count`` sentences, from those of all or from the first one."""
    if isinstance(ordinals, int):
        ordinals = range(ordinals, ordinals + count)
    if len(ordinals) != count:
        raise TreeparseError(f"{count} sentences came with {len(ordinals)} indices: give one for each sentence.")
    if min(ordinals, default=0) < 0:
        raise TreeparseError(f"The index of a sentence must be 0 or more, got {min(ordinals)}.")
    return ordinals


def _check_lengths(model: Model, sentences: Sequence[Sentence], first: int) -> None:
    """Raise `UnfitSentenceError` for a sentence whose scores do not fit into the memory of this machine, on a CPU."""
    memory = _machine_memory()
    if memory is None or model.device.type != "cpu":
        return
    kinds = max(len(network.config.tree_family.part_kinds) for network in model.networks)

    def needed_for(words: int) -> float:
        nodes = words + 1
        return nodes**2 * (ARC_BYTES + nodes * kinds * PART_BYTES)

    lengths = [len(sentence.forms) for sentence in sentences]
    if needed_for(max(lengths, default=0)) <= memory:  # as nearly always: the loop below takes longer
        return
    for index, words in enumerate(lengths, first):
        needed = needed_for(words)
        if needed > memory:
            raise UnfitSentenceError(
                f"it has {words:,} words, so that its scores need more than {needed / 1e9:,.0f} GB of memory, but this "
                f"machine has {memory / 1e9:,.0f} GB; treeparse predict --max-words leaves out longer sentences",
                index,
            )


def _machine_memory() -> int | None:
    """Return the bytes of memory of this machine or container; None if the system does not say."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # no POSIX
        return None
    for path in map(Path, CONTAINER_LIMITS):
        with suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(int(path.read_text()))
    return min(limits)


def _check_found(parses: Sequence[Sequence[Parse]], indices: Sequence[int]) -> None:
    """Raise if a sentence has no tree; scores on a GPU are not validated before."""
    for index, own in zip(indices, parses, strict=True):
        if not own:
            raise NoTreeError(
                f"Sentence {index} (counted from 0) has no tree, because its scores are not numbers: is the model "
                "damaged, or its precision too low?"
            )


@contextmanager
def _naming_unfit(p: LabeledDistribution, request: TreeRequest, indices: Sequence[int]) -> Iterator[None]:
    """Raise `UnfitSentenceError` for the first sentence of a batch without a tree instead of `NoTreeError`."""
    try:
        yield
    except NoTreeError as error:
        raise _unfit(p, request, indices) or error from error


def _unfit(p: LabeledDistribution, request: TreeRequest, indices: Sequence[int]) -> UnfitSentenceError | None:
    """The error for the first sentence of a batch without a tree, if there is one."""
    one = p.components[0] if isinstance(p, Mixture) else as_crf(p, "Conditions")
    for item, index in enumerate(indices):
        has_tree = False
        with suppress(NoTreeError):
            heads, _ = one.of_items(torch.tensor([item], device=p.device)).decode(request.named_decoder)
            has_tree = bool((heads >= 0).any())
        if not has_tree:
            return UnfitSentenceError("no tree of the model has the heads, labels and possible heads given", index)
    return None


def _threads(device: torch.device) -> dict[str, int]:
    """The number of batches that are parsed at once: one under autocast, which holds for one thread only.

    While a GPU works on one batch, the CPU prepares the next one and turns the trees of the last one into parses.
    """
    at_once = torch.get_num_threads()
    if torch.is_autocast_enabled(device.type):
        return {"threads": 1}
    return {"threads": at_once} if device.type == "cpu" else {"threads": ON_DEVICE, "torch_threads": at_once}


def _limits(model: Model, request: TreeRequest) -> dict[str, int]:
    """The size of batches. The k trees of a batch, the label scores that lists need, and scores of parts must fit."""
    batch_words = min(request.batch_words, CPU_WORDS) if model.device.type == "cpu" else request.batch_words
    has_parts = any(network.config.tree_family.part_kinds for network in model.networks)
    if not request.is_list:
        return {"max_words": batch_words, **({"max_squared": PART_CELLS} if has_parts else {})}
    scores = LABEL_SCORES // len(model.networks)
    words = min(batch_words, max(1, scores // request.k))
    squared = max(1, scores // len(model.label_names))
    return {"max_words": words, "max_squared": min(squared, PART_CELLS) if has_parts else squared}


@contextmanager
def evaluating(networks: Sequence[nn.Module]) -> Iterator[None]:
    """Set the networks to evaluation mode, and back to their previous modes at the end."""
    were_training = [network.training for network in networks]
    for network in networks:
        network.eval()
    try:
        yield
    finally:
        for network, was_training in zip(networks, were_training, strict=True):
            network.train(was_training)
