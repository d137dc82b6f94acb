"""The interface of one parser and of several as one: parses, lists, samples and scores of trees."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import replace
from itertools import count, islice
from threading import Event
from typing import TypeVar, Unpack

import torch

from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.mapping import Parsed, Progress, Words, as_sentences, check_several, each_sentence, with_trees
from treeparse.data.parses import Parse
from treeparse.data.prefetch import map_ahead
from treeparse.errors import TreeparseError
from treeparse.model.inference.parsing import Model, find_trees
from treeparse.model.inference.tree_request import ParseOptions, SampleOptions, TreeOptions, TreeRequest
from treeparse.sentence import Sentence

S = TypeVar("S")
T = TypeVar("T")


class AnyParser(Model):
    """Parses sentences by the distributions of labelled trees that a subclass gives them."""

    def known_words(self) -> Vocabulary | None:
        """The words of the training data, in lower case, with their counts, of the first model that stores them."""
        lists = (network.indexer.features.known_words() for network in self.networks)
        return next((words for words in lists if words is not None), None)

    def multiword_tokens(self) -> Mapping[str, str]:
        """The multiword tokens of the training data, in lower case, with their words, of the first model with some."""
        return next(
            (network.indexer.multiword_tokens for network in self.networks if network.indexer.multiword_tokens), {}
        )

    def check(self, sentence: Sentence) -> None:
        """Raise if the sentence lacks tags that a model reads."""
        for network in self.networks:
            network.indexer.features.check(sentence)

    def check_tags(self) -> None:
        """Raise if the model predicts no tags."""
        if not self.tag_names:
            raise TreeparseError(
                "The model predicts no tags, or the models of an ensemble have none in common: train with a weight "
                "for tags, such as --model.tags.upos 1, or do without tags."
            )

    def find_trees(
        self,
        sentences: Iterable[Words],
        request: TreeRequest,
        ordinals: int | Sequence[int] = 0,
        *,
        progress: Progress | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> list[list[Parse]]:
        """Return the list of trees of each sentence, in order, that a request asks for.

        ``parse``, ``kbest``, ``sample`` and ``score_trees`` are shorter ways to write it.

        Args:
            sentences: the sentences, as for ``parse``.
            request: which trees to find, and what to add to them.
            ordinals: the index of each sentence in a longer list, or the index of the first one. A sentence's samples
                depend on the seed and on this index.
            progress: called after each batch with the indices of its sentences.
            check: called after each batch, and again and again in a search by rules, in any thread; it may raise to end
                the call.
        """
        return find_trees(self, sentences, request, ordinals, progress=progress, check=check)

    def parse(
        self, sentences: Iterable[Words], *, progress: Progress | None = None, **options: Unpack[ParseOptions]
    ) -> list[Parse]:
        """Return the parse of each sentence, in order: the labelled tree that the decoder chooses.

        Labels count in the choice of arcs. Log probabilities are among all trees, whatever the decoder. A sentence is a
        ``Sentence``, a list of words, or anything else that
        ``as_sentence`` takes. A spaCy ``Doc`` counts as its sentences, each with a parse of
        its own; tokens of white space alone are no words. A model that predicts tags adds them to the parses. Batches
        hold sentences of similar length.

        Known heads, possible heads and rules restrict the trees, exactly: the parse is the best tree that satisfies
        them.

        Args:
            sentences: the sentences to parse.
            progress: called after each batch with the indices of its sentences, for example to move a progress bar.
            **options:
                - ``batch_words``: words of a batch, about; 5000 by default.
                - ``decoder``: best, arcs_first, nonprojective, projective or minimum_risk; None for the config's.
                - ``keep_heads``: keep the heads and labels that a ``Sentence`` has; -1 and ``_`` leave them open. Log
                  probabilities are conditional on the known ones.
                - ``within``: choose each word's head among its possible ones, ``Sentence.allowed``, if it has some. Log
                  probabilities are conditional on these.
                - ``rules``: rules that trees must satisfy (`treeparse.rules`), or a search for such trees, with its
                  bound and its counts. A sentence without such a tree within the bound gets the best tree; log
                  probabilities are as without rules. A word's UPOS is its own, or else predicted. Not for the decoder
                  minimum_risk.
                - ``treebank``: parse as this treebank is annotated, one of ``treebanks``; None for each sentence's own,
                  ``Sentence.treebank``. A sentence of no known treebank gets the mean of all treebanks' vectors, and
                  all labels.
                - ``probabilities``: add the exact probabilities of arcs and labelled arcs among all trees, and the
                  entropy.
                - ``arc_marginals``: add the exact probability of every arc, whatever its label.
                - ``head_threshold``: add to each word the set of heads of at least this probability, such as
                  ``treeparse.metrics.conformal_threshold`` finds; None for no sets.
                - ``certain``: add to each word its certainty, the probability that its labelled arc is right and so are
                  all more probable ones. ``Parse.certain_tree`` leaves words open that are less certain than a number
                  that ``treeparse.metrics.conformal_trees`` finds; None for no certainties.
                - ``gradient``: add the exact ``expected_gradient`` of each sentence.

        Raises:
            UnfitSentenceError: no tree agrees with what is known of a sentence, or it is too long for this machine.
            TreeparseError: a sentence is a string or has no words, or lacks tags that the model reads.
        """
        return [parse for [parse] in find_trees(self, sentences, TreeRequest(**options), progress=progress)]

    def stream(
        self,
        sentences: Iterable[Words],
        *,
        ahead: int = 4000,
        progress: Progress | None = None,
        **options: Unpack[ParseOptions],
    ) -> Iterator[Parse]:
        """Yield the parse of each sentence, in order, in memory that does not grow with their number.

        The ``options`` are those of ``parse``. The parses are the same except for rounding, because other sentences
        share a batch: the last digits of numbers and, rarely, one of two trees that nearly tie. The method reads and
        parses ``ahead`` sentences at a time. It reads the next ones before it yields the parses of the last ones; a
        thread parses them meanwhile, and ends with the iterator. An error in reading or parsing is raised after the
        parses of the earlier sentences, up to the last multiple of ``ahead``.
        """
        request = TreeRequest(**options)
        if ahead < 1:
            raise TreeparseError(f"ahead must be 1 or more, not {ahead}.")
        check_several(sentences)

        def parse(index_and_chunk: tuple[int, list[Words]], check: Callable[[], None]) -> list[Parse]:
            index, chunk = index_and_chunk
            return [parse for [parse] in find_trees(self, chunk, request, first=index, progress=progress, check=check)]

        def parses() -> Iterator[Parse]:
            unread = iter(each_sentence(sentences))
            chunks = iter(lambda: list(islice(unread, ahead)), [])
            with closing(parse_ahead(parse, zip(count(0, ahead), chunks), self.device)) as lists:
                for parsed in lists:
                    yield from parsed

        return parses()

    def annotate(
        self,
        sentences: Iterable[Parsed],
        *,
        ahead: int = 4000,
        progress: Progress | None = None,
        **options: Unpack[ParseOptions],
    ) -> Iterator[Parsed]:
        """Yield the sentences themselves, in order, each with its parse; everything besides the tree is unchanged.

        A ``Sentence``, a ``ConlluSentence`` and a ``TokenList`` of
        the ``conllu`` library come back as copies, the last with ``head``, ``deprel`` and ``deps`` set. A row of a data
        set comes back as a dict with the columns ``head`` and ``deprel``. A spaCy ``Doc`` comes back itself, as from
        spaCy's own parsers: each of its sentences has its tree, in ``token.head`` and ``token.dep_``; the root's
        ``dep_`` is "ROOT". The rest is as in ``stream``.

        Raises:
            TypeError: a sentence is a list of words, which cannot hold a tree.
        """
        check_several(sentences)
        waiting = deque[tuple[Parsed, int]]()  # items without trees yet, and their numbers of sentences

        def read() -> Iterator[Words]:
            for item in sentences:
                own = list(each_sentence([item]))
                waiting.append((item, len(own)))
                yield from own

        return _filled(waiting, self.stream(read(), ahead=ahead, progress=progress, **options))

    def kbest(
        self, sentences: Iterable[Words], k: int, *, progress: Progress | None = None, **options: Unpack[TreeOptions]
    ) -> list[list[Parse]]:
        """Return the k best labelled trees of each sentence, best first, exact and distinct; fewer if fewer exist.

        Trees that differ in one label count as different. The decoder chooses among all trees (nonprojective) or among
        those without crossing arcs (projective). With rules, the list has the k best trees that satisfy them.
        Probabilities of arcs are among all trees, not among the list. The rest is as in ``parse``, and so are the
        options ``batch_words``, ``decoder``, ``keep_heads``, ``within``, ``rules``, ``treebank`` and ``probabilities``.
        """
        return find_trees(self, sentences, TreeRequest("kbest", k, **options), progress=progress)

    def sample(
        self,
        sentences: Iterable[Words],
        k: int,
        *,
        first: int | Sequence[int] = 0,
        progress: Progress | None = None,
        **options: Unpack[SampleOptions],
    ) -> list[list[Parse]]:
        """Draw k labelled trees of each sentence, with probabilities exactly proportional to exp(score / temperature).

        Lists are in the order of the draws; a shorter list by the same seed is the start of a longer one. The decoder
        projective draws from the trees without crossing arcs, any other from all. A ``log_prob`` is the log probability
        of the draw, from these trees at this temperature; a ``score`` is the model's own. Probabilities are of
        the model's own distribution of all trees, whatever the temperature and the decoder. With rules, trees that
        break one are drawn again, up to the bound's number a sentence, so that the others are exact samples of the
        trees that satisfy the rules. The rest is as in ``parse``.

        Args:
            sentences: the sentences to draw trees for.
            k: trees of a sentence.
            first: index of the first sentence in a longer list, 0 or more; or the indices of all.
            progress: as in ``parse``.
            **options: the options of ``kbest``, and
                - ``replacement``: whether a tree can be drawn again (default). If not, trees are different, labels
                  included, and fewer if fewer exist.
                - ``seed``: 0 or more. The trees of sentence ``i`` depend only on ``(seed, first + i)`` and its scores;
                  the last bits of scores in single precision depend on the batch. Without replacement, a GPU draws
                  other trees.
                - ``temperature``: from 1e-6 up; 1 draws from the model's distribution, lower ones favour better trees.
        """
        return find_trees(self, sentences, TreeRequest("sample", k, **options), first, progress=progress)

    def score_trees(
        self,
        sentences: Iterable[Words],
        *,
        batch_words: int = 5000,
        treebank: str | None = None,
        progress: Progress | None = None,
    ) -> list[Parse]:
        """Return the sentences' own trees as parses, with the model's log probabilities, scores and marginals.

        A label that the model, or the treebank, does not have is impossible, and so are several roots where its trees
        have one: such a tree has the ``log_prob`` -inf, and its other arcs their probabilities. The rest is as in
        ``parse``.

        Raises:
            TreeparseError: a sentence has no heads and labels, or its heads form no tree.
        """
        converted = as_sentences(sentences)
        request = TreeRequest("score", batch_words=batch_words, treebank=treebank, probabilities=True)
        lists = find_trees(self, converted, request, progress=progress)
        # The model does not have all labels of the sentences.
        return [replace(parse, labels=each.labels or ()) for each, [parse] in zip(converted, lists, strict=True)]


def parse_ahead(
    parse: Callable[[S, Callable[[], None]], T], inputs: Iterable[S], device: torch.device, *, ahead: int = 1
) -> Generator[T, None, None]:
    """Return the results of ``parse``, in order; a thread parses the next input while the caller uses the last result.

    Args:
        parse: parses an input. It calls its second argument again and again, which raises once the iterator is closed;
            otherwise closing would wait for the whole input.
        inputs: read by the caller's thread.
        device: the model's.
        ahead: results in advance; with 0 the caller's thread parses.
    """
    if torch.is_autocast_enabled(device.type):
        ahead = 0  # because autocast holds for one thread
    closed = Event()

    def check() -> None:
        if closed.is_set():
            raise CancelledError

    return map_ahead(lambda item: parse(item, check), inputs, ahead, closed)


def _filled(waiting: deque[tuple[Parsed, int]], parses: Iterator[Parse]) -> Iterator[Parsed]:
    """Yield the waiting items with their parses; taking a parse may add waiting items."""
    for parse in parses:
        while not waiting[0][1]:
            yield with_trees(waiting.popleft()[0], ())
        item, count = waiting.popleft()
        yield with_trees(item, [parse, *islice(parses, count - 1)])
    yield from (with_trees(item, ()) for item, _ in waiting)
