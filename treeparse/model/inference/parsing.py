"""Parse sentences in batches, with the distributions of a parser or of an ensemble.

A `Request` says which trees to find; `lists_of` finds them.
"""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypedDict

import torch
from torch import Tensor, nn

from treeparse import terminal
from treeparse.data.mapping import Progress, Words, as_sentences, check_several, each_sentence, map_batches
from treeparse.data.parses import Parse
from treeparse.data.text.rawtext import CHECKED, RawTextCheck
from treeparse.errors import NoTreeError, TreeparseError
from treeparse.model.inference.given import Given, UnfitSentenceError
from treeparse.model.inference.lists import ChosenTree, ListFinder, TreeLists, as_crf
from treeparse.model.inference.probabilities import with_expected_gradients, with_head_sets, with_probabilities
from treeparse.model.inference.ruled import RuledBatch
from treeparse.model.tagging import Tagging, TagNames
from treeparse.names import DecoderName, decoder_named
from treeparse.rules import Rules, RuleSearch, RuleTally, as_search
from treeparse.sentence import Sentence
from treeparse.trees import LabeledDistribution, Mixture
from treeparse.trees.tree_kinds import part_kinds

ARC_BYTES = 60  # at least, for the scores of an arc and what parsing makes of them
PART_BYTES = 8  # at least, for the score of a part of three words and its copy
PART_CELLS = 2**16  # arcs of a batch whose parts of three words are scored: larger ones lose more by padding
LABEL_SCORES = 2**22  # label scores of a batch of lists in memory at once
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
ON_DEVICE = 2  # batches in work at once on a GPU
CPU_WORDS = 4000  # words of a batch on a CPU: larger ones gain little and leave threads without work at the end


@dataclass(frozen=True)
class Request:
    """Which trees to find for each sentence, and what to add to them.

    Attributes:
        finder: finds the list of a sentence's trees.
        batch_words: words of a batch, about; fewer if lists are long.
        given: what trees must have in common with their sentences.
        rules: the search for trees that satisfy rules; None without rules.
        probabilities: whether to add the probabilities of arcs and the entropy.
        head_threshold: the least probability of a head in a word's set of heads; None for no sets.
        gradient: whether to add the expected squared length of the gradient.
        progress: called after each batch with the indices of its sentences.
    """

    finder: ListFinder
    batch_words: int
    given: Given = field(default_factory=Given)
    rules: RuleSearch | None = None
    probabilities: bool = False
    head_threshold: float | None = None
    gradient: bool = False
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.batch_words < 1:
            raise TreeparseError(f"batch_words must be 1 or more, got {self.batch_words}.")


class ParseOptions(TypedDict, total=False):
    """The options of ``Parser.parse``, which explains them."""

    batch_words: int
    decoder: DecoderName | None
    keep_heads: bool
    within: bool
    rules: Rules | RuleSearch | None
    probabilities: bool
    head_threshold: float | None
    gradient: bool
    progress: Progress | None


def parse_request(
    *,
    default: DecoderName,
    batch_words: int = 5000,
    decoder: DecoderName | None = None,
    keep_heads: bool = False,
    within: bool = False,
    rules: Rules | RuleSearch | None = None,
    probabilities: bool = False,
    head_threshold: float | None = None,
    gradient: bool = False,
    progress: Progress | None = None,
) -> Request:
    """Return the request of ``Parser.parse``; without a ``decoder`` it has the ``default`` one."""
    tree = ChosenTree(decoder_named(default if decoder is None else decoder))
    given = Given(keep_heads, within)
    return Request(tree, batch_words, given, as_search(rules), probabilities, head_threshold, gradient, progress)


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
    def tag_names(self) -> TagNames:
        """The tags of each column that the model predicts, by their ids."""
        ...

    @property
    def networks(self) -> Sequence[Any]:
        """The parsers whose networks score sentences; parsing sets them to evaluation mode."""
        ...

    @property
    def device(self) -> torch.device:
        """The device on which sentences are scored."""
        ...

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


def lists_of(model: Model, sentences: Iterable[Words], request: Request, first: int = 0) -> list[list[Parse]]:
    """Return the list of trees of each sentence, in order.

    Call this directly from a public method: warnings use ``stacklevel=3``.

    Args:
        model: the parser or ensemble whose distributions are used.
        sentences: as for `as_sentences`.
        request: which trees to find, and what to add to them.
        first: the index of the first sentence in a longer list; errors name sentences by it.

    Raises:
        UnfitSentenceError: no tree agrees with the heads, labels and possible heads of a sentence, or its scores do
            not fit into the memory of this machine.
        TreeparseError: as `as_sentences`, the model, the finder and the rules do.
    """
    check_several(sentences)
    inputs = list(each_sentence(sentences))
    converted = as_sentences(inputs, first)
    finder, known, rules, names = request.finder, request.given, request.rules, model.label_names
    finder.check_for(len(converted))
    for index, sentence in enumerate(converted, first):
        known.check(sentence, names, index)
    _check_lengths(model, converted, first)
    prunes = any(network.config.prune_below for network in model.networks)
    if rules is not None:
        rules.rules.check_labels(names)
        finder, rules = finder.under(rules.rules), replace(rules, tally=RuleTally())
    split_by_user = (
        own.forms
        for own, words in zip(converted[:CHECKED], inputs, strict=False)
        if isinstance(words, list | tuple | Mapping)
    )
    if doubt := model.raw_text.check(split_by_user):
        warnings.warn(terminal.message(f"{doubt[0].upper()}{doubt[1:]}"), stacklevel=3)

    @torch.inference_mode()
    def batch_lists(indices: list[int], chosen: list[Sentence]) -> list[list[Parse]]:
        scored = known.without_trees(chosen) if known else chosen
        keep = None
        if prunes:
            keep = known.arcs(chosen, names, model.device) if known else finder.arcs(indices, model.device)
        p, tagging = model.distribution_and_tags(model.collate(scored, indices), keep=keep)
        p = known.conditioned(p, chosen, names) if known else p
        batch = None if rules is None else RuledBatch.of(rules, chosen, names, tagging.likeliest("upos"))
        lists = _lists(finder, p, indices, batch, first if known else None)
        parses = tagging.add_to(lists.parses(chosen, names))
        _check_found(parses, [first + index for index in indices])
        if request.probabilities:
            parses = with_probabilities(p, lists, parses, [each.config.label_power for each in model.networks])
        if request.gradient:
            parses = with_expected_gradients(p, parses)
        return parses if request.head_threshold is None else with_head_sets(p, request.head_threshold, parses)

    def report(indices: Sequence[int]) -> None:
        if request.progress is not None:
            request.progress([first + index for index in indices])

    with evaluating(model.networks):
        options = {**_threads(model.device), **_limits(model, finder, request.batch_words)}
        result = map_batches(batch_lists, converted, length=model.length, progress=report, **options)
    if rules is not None and request.rules is not None:
        request.rules.tally.add(rules.tally)  # once all is done, so that nothing counts twice when it is not
    return result


def _check_lengths(model: Model, sentences: Sequence[Sentence], first: int) -> None:
    """Raise `UnfitSentenceError` for a sentence whose scores do not fit into the memory of this machine, on a CPU."""
    memory = _machine_memory()
    if memory is None or model.device.type != "cpu":
        return
    kinds = max(len(part_kinds(network.config.trees)) for network in model.networks)

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


def _lists(
    finder: ListFinder, p: LabeledDistribution, indices: Sequence[int], batch: RuledBatch | None, first: int | None
) -> TreeLists:
    """Return the lists of a batch.

    With ``first``, the index of the first sentence, the distribution is conditioned: raise `UnfitSentenceError` for the
    first sentence that no tree fits.
    """
    try:
        lists = finder(p, indices) if batch is None else finder.ruled(as_crf(p, "Rules"), indices, batch)
        if first is not None and bool((lists.heads[0, :, 1] < 0).any()):
            raise NoTreeError("No tree was found.")
    except NoTreeError as error:
        if first is None:
            raise
        raise _unfit(p, [first + index for index in indices]) or error from error
    return lists


def _unfit(p: LabeledDistribution, indices: Sequence[int]) -> UnfitSentenceError | None:
    """The error for the first sentence of a batch without a tree, if there is one."""
    one = p.components[0] if isinstance(p, Mixture) else as_crf(p, "Conditions")
    for item, index in enumerate(indices):
        heads, _ = one.of_items(torch.tensor([item], device=p.device)).mode
        if bool((heads < 0).all()):
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


def _limits(model: Model, finder: ListFinder, batch_words: int) -> dict[str, int]:
    """The size of batches. The k trees of a batch, the label scores that lists need, and scores of parts must fit."""
    if model.device.type == "cpu":
        batch_words = min(batch_words, CPU_WORDS)
    has_parts = any(part_kinds(network.config.trees) for network in model.networks)
    if not finder.holds_labels:
        return {"max_words": batch_words, **({"max_squared": PART_CELLS} if has_parts else {})}
    scores = LABEL_SCORES // len(model.networks)
    words = min(batch_words, max(1, scores // finder.k))
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
