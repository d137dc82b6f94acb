"""Parses of any number of sentences, in batches, by whatever gives the distribution of a batch: one parser, or several.

What both offer is made here of their distributions; they say only which trees are wanted.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypedDict

import torch
from torch import nn

from treeparse.data.mapping import Progress, Words, as_sentences, check_several, each_sentence, map_batches
from treeparse.data.parses import Parse
from treeparse.data.text.rawtext import LOOKED_AT, RawTextCheck
from treeparse.errors import NoTreeError
from treeparse.model.inference.given import Given, UnfitSentenceError
from treeparse.model.inference.lists import ChosenTree, ListFinder, TreeLists
from treeparse.model.inference.probabilities import with_expected_gradients, with_head_sets, with_probabilities
from treeparse.model.inference.ruled import RuledBatch
from treeparse.model.tagging import Tagging
from treeparse.names import DecoderName, decoder_named
from treeparse.rules import Rules, RuleSearch, RuleTally, as_search
from treeparse.sentence import Sentence
from treeparse.trees import LabeledDistribution

LABEL_SCORES = 2**22  # of the arcs of batches of lists that are held at once
ON_DEVICE = 2  # batches that are in work where a device computes
CPU_WORDS = 4000  # of a batch at most: larger ones gain little there, and leave threads without work at the end


@dataclass(frozen=True)
class Conditions:
    """What trees must agree with: what is known of their sentences, and rules."""

    given: Given = field(default_factory=Given)
    rules: RuleSearch | None = None


def conditions_of(keep_heads: bool, within: bool, rules: Rules | RuleSearch | None) -> Conditions:
    """The conditions that a user sets."""
    return Conditions(Given(keep_heads, within), as_search(rules))


@dataclass(frozen=True)
class Request:
    """What is asked of sentences.

    Attributes:
        finder: how the lists of their trees are made.
        batch_words: words of a batch, about; fewer where lists are long.
        conditions: on the trees.
        probabilities: whether the parses have those of their arcs, and the entropy.
        head_threshold: the probability from which on a head is in a word's set; None for no sets.
        gradient: whether the parses have the expected squared length of the gradient.
        progress: called after each batch, with the indices of its sentences.
    """

    finder: ListFinder
    batch_words: int
    conditions: Conditions = Conditions()
    probabilities: bool = False
    head_threshold: float | None = None
    gradient: bool = False
    progress: Progress | None = None


class ParseOptions(TypedDict, total=False):
    """What ``Parser.parse`` takes beside sentences; all of it is explained there."""

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
    """The request of ``Parser.parse``, whose decoder is the ``default`` one unless another is named."""
    tree = ChosenTree(decoder_named(default if decoder is None else decoder))
    conditions = conditions_of(keep_heads, within, rules)
    return Request(tree, batch_words, conditions, probabilities, head_threshold, gradient, progress)


class Model(Protocol):
    """The interface that parsing needs from a parser, or from several as one.

    Attributes:
        raw_text: checks the first sentences for text that is not split into words.
    """

    raw_text: RawTextCheck

    @property
    def label_names(self) -> Sequence[str]:
        """The labels by their ids."""
        ...

    @property
    def networks(self) -> Sequence[nn.Module]:
        """What scores the sentences; parsing is without dropout in each."""
        ...

    @property
    def label_powers(self) -> Sequence[float]:
        """The power of P(label | arc) in written probabilities of labels, of each network."""
        ...

    @property
    def device(self) -> torch.device:
        """Where sentences are scored."""
        ...

    def length(self, sentence: Sentence) -> int:
        """What the sentence counts for in the bounds of a batch."""
        ...

    def collate(self, sentences: Iterable[Words], indices: Sequence[int] | None = None) -> Any:
        """What ``distribution_and_tags`` takes."""
        ...

    def distribution_and_tags(self, batch: Any, /) -> tuple[LabeledDistribution, Tagging]:
        """The distribution of each sentence's labelled trees, and the probabilities of its tags."""
        ...


def lists_of(model: Model, sentences: Iterable[Words], request: Request, first: int = 0) -> list[list[Parse]]:
    """The list of trees of each sentence, in order. Called by what the user calls, at whose place warnings stand.

    Args:
        model: whose distributions.
        sentences: as for `as_sentences`.
        request: what is asked of them.
        first: the place of the first sentence in a longer list, by which faults are named.

    Raises:
        UnfitSentenceError: no tree agrees with what is known of a sentence.
        TreeparseError: as `as_sentences`, the model, the finder and the rules do.
    """
    check_several(sentences)
    held = list(each_sentence(sentences))
    given = as_sentences(held, first)
    finder, conditions = request.finder, request.conditions
    finder.check_for(len(given))
    names, known, rules = model.label_names, conditions.given, conditions.rules
    for place, sentence in enumerate(given, first):
        known.check(sentence, names, place)
    if rules is not None:
        rules.rules.check_labels(names)
        finder, rules = finder.under(rules.rules), replace(rules, tally=RuleTally())
    lists = (
        own.forms
        for own, words in zip(given[:LOOKED_AT], held, strict=False)
        if isinstance(words, list | tuple | Mapping)
    )
    if doubt := model.raw_text.look(lists):
        warnings.warn(f"{doubt[0].upper()}{doubt[1:]}", stacklevel=3)

    @torch.inference_mode()
    def batch_lists(places: list[int], chosen: list[Sentence]) -> list[list[Parse]]:
        scored = known.without_trees(chosen) if known else chosen
        p, tagging = model.distribution_and_tags(model.collate(scored, places))
        p = known.conditioned(p, chosen, names) if known else p
        batch = None if rules is None else RuledBatch.of(rules, chosen, names, tagging.likeliest("upos"))
        lists = _fitting_lists(finder, p, places, batch, first) if known else _lists(finder, p, places, batch)
        parses = tagging.add_to(lists.parses(chosen, names))
        _check_found(parses, [first + place for place in places])
        if request.probabilities:
            parses = with_probabilities(p, lists, parses, model.label_powers)
        if request.gradient:
            parses = with_expected_gradients(p, parses)
        return parses if request.head_threshold is None else with_head_sets(p, request.head_threshold, parses)

    def report(places: Sequence[int]) -> None:
        if request.progress is not None:
            request.progress([first + place for place in places])

    with evaluating(model.networks):
        options = {**_threads(model.device), **_limits(model, finder, request.batch_words)}
        found = map_batches(batch_lists, given, length=model.length, progress=report, **options)
    if rules is not None and conditions.rules is not None:
        conditions.rules.tally.add(rules.tally)  # once all is done, so that nothing counts twice when it is not
    return found


def _check_found(parses: Sequence[Sequence[Parse]], places: Sequence[int]) -> None:
    """Raise where a sentence has no tree: on a device nobody has looked at the scores before."""
    for place, own in zip(places, parses, strict=True):
        if not own:
            raise NoTreeError(
                f"Sentence {place} (counted from 0) has no tree, as the model's scores are not numbers there: is the "
                "model damaged, or its precision too low?"
            )


def _lists(finder: ListFinder, p: LabeledDistribution, places: Sequence[int], batch: RuledBatch | None) -> TreeLists:
    if batch is None:
        return finder(p, places)
    return finder.ruled(p.as_crf("Rules"), places, batch)


def _fitting_lists(
    finder: ListFinder, p: LabeledDistribution, places: Sequence[int], batch: RuledBatch | None, first: int
) -> TreeLists:
    """The same of a distribution given what is known; the sentence that no tree fits is named, counted from first."""
    named = [first + place for place in places]
    try:
        lists = _lists(finder, p, places, batch)
    except NoTreeError as error:
        raise _unfit(p, named) or error from error
    if bool((lists.heads[:, 0, 1] < 0).any()):
        raise _unfit(p, named) or NoTreeError("No tree was found.")
    return lists


def _unfit(p: LabeledDistribution, places: Sequence[int]) -> UnfitSentenceError | None:
    """The error for the first sentence of a batch without a tree, if there is one."""
    one = p.components[0]
    for item, place in enumerate(places):
        heads, _ = one.of_items(torch.tensor([item], device=p.device)).mode
        if bool((heads < 0).all()):
            return UnfitSentenceError("no tree of the model has the heads, labels and possible heads given", place)
    return None


def _threads(device: torch.device) -> dict[str, int]:
    """How many batches are parsed at once; one under autocast, which other threads would not see.

    While a device works on one batch, the next is read and asked for, and the trees of the one before are made parses.
    """
    at_once = torch.get_num_threads()
    if torch.is_autocast_enabled(device.type):
        return {"threads": 1}
    return {"threads": at_once} if device.type == "cpu" else {"threads": ON_DEVICE, "torch_threads": at_once}


def _limits(model: Model, finder: ListFinder, batch_words: int) -> dict[str, int]:
    """The size of batches: one holds k trees of all its words and, of lists, the scores of all its labels."""
    if model.device.type == "cpu":
        batch_words = min(batch_words, CPU_WORDS)
    if not finder.holds_labels:
        return {"max_words": batch_words}
    held = LABEL_SCORES // len(model.networks)
    words = min(batch_words, max(1, held // finder.k))
    return {"max_words": words, "max_squared": max(1, held // len(model.label_names))}


@contextmanager
def evaluating(networks: Sequence[nn.Module]) -> Iterator[None]:
    """Without dropout, whatever they were in before."""
    were_training = [network.training for network in networks]
    for network in networks:
        network.eval()
    try:
        yield
    finally:
        for network, was_training in zip(networks, were_training, strict=True):
            network.train(was_training)
