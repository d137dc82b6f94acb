"""The parser itself: it is built or loaded, scores sentences and finds their trees."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import torch
from torch import Tensor, nn

from treeparse.core import Batch, Sentence, TreeparseError
from treeparse.data.indexer import Indexer
from treeparse.data.mapping import Words, as_sentences, map_batches
from treeparse.data.parses import Parse
from treeparse.data.rawtext import LOOKED_AT, RawTextCheck
from treeparse.data.vectors import WordVectors
from treeparse.model.config import ParserConfig, scorer_size
from treeparse.model.encoders import encoder_kind
from treeparse.model.labels import BiaffineLabels
from treeparse.model.lists import BestLists, ListFinder, SampledLists, TreeLists
from treeparse.model.storage import (
    CONFIG,
    VOCABULARY,
    WEIGHTS,
    from_plain,
    load_weights,
    model_folder,
    read_model,
    write_model,
)
from treeparse.nn import BiaffineScorer
from treeparse.nn.size import TRAINING_COPIES, check_memory
from treeparse.objectives import Objective, Term, total_loss
from treeparse.trees import LabeledCRF
from treeparse.trees.decoders import DISTRIBUTIONS, Decoder, DecoderName, decoded, decoder_named

LABEL_SCORES = 2**22  # of the arcs of a batch of lists

WEIGHTS_AMISS = 10**6  # that a damaged model may have too many and still be built, to say which

T = TypeVar("T")


class Parser(nn.Module):
    """A graph-based dependency parser. :meth:`build` makes an untrained one, :meth:`from_pretrained` loads one."""

    def __init__(self, config: ParserConfig, indexer: Indexer) -> None:
        super().__init__()
        check_memory(scorer_size(config, indexer), copies=1)
        self.config, self.indexer = config, indexer
        self._raw_text = RawTextCheck(indexer.features.known_words())
        self.scorer = BiaffineScorer(
            encoder_kind(config.encoder).module(indexer.features),
            labels=len(indexer.labels),
            arc_size=config.arc_size,
            label_size=config.label_size,
            dropout=config.dropout,
        )

    @classmethod
    def build(
        cls,
        config: ParserConfig,
        sentences: Sequence[Sentence],
        vectors: WordVectors | None = None,
        *,
        unlabelled: Sequence[Sentence] = (),
    ) -> Self:
        """An untrained parser with the vocabularies of the training sentences; ``unlabelled`` ones give no labels.

        ``vectors`` give the encoder its frozen table of pretrained vectors and its ``vector_size``; they are saved with
        the model. Raises where ``config`` has a ``vector_size`` already that is not theirs, and where the encoder reads
        no vectors.
        """
        config = replace(config, encoder=encoder_kind(config.encoder).completed(vectors))
        kind = encoder_kind(config.encoder)
        indexer = Indexer.build(sentences, kind.features([*sentences, *unlabelled], vectors))
        check_memory(scorer_size(config, indexer), copies=TRAINING_COPIES)
        parser = cls(config, indexer)
        kind.initialise(parser.scorer.encoder, vectors)
        return parser

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> Self:
        """The parser that :meth:`save_pretrained` wrote, or a run's, from its folder; on the CPU and ready to parse.

        Raises a ``TreeparseError`` where a file is missing or does not fit the others: every weight must be there,
        in its shape, and no other. Nothing in the directory is run, and nothing imported for it: where it names an
        encoder of one's own (:class:`~treeparse.model.OwnEncoder`), that class must have been imported before.
        """
        directory = model_folder(directory)
        config, vocabulary, weights = read_model(directory)
        settings = from_plain(ParserConfig, config, f"{directory}/{CONFIG}")
        with _no_parser(directory):
            indexer = Indexer.from_json(vocabulary, encoder_kind(settings.encoder).restored)
            size = scorer_size(settings, indexer)
            wanted, held = size.weights(), sum(tensor.numel() for tensor in weights.values())
        if wanted > 2 * held + WEIGHTS_AMISS:  # not to be allocated only to find that they do not fit
            raise TreeparseError(
                f"The weights in {directory} do not fit its config: {WEIGHTS} holds {held:,} numbers and {CONFIG} "
                f"asks for {wanted:,}, see {size.excess(held)}: the files are not of one model."
            )
        with _no_parser(directory):
            parser = cls(settings, indexer)
        load_weights(parser, weights, str(directory))
        return parser.eval()

    def save_pretrained(self, directory: str | Path) -> None:
        """Writes ``config.json``, ``vocabulary.json`` and ``model.safetensors``, all of them or none."""
        write_model(directory, asdict(self.config), self.indexer.to_json(), self.state_dict())

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def collate(self, sentences: Iterable[Words], indices: Sequence[int] | None = None) -> Batch:
        """The sentences, or lists of words, as a batch on the parser's device; ``indices`` are their places."""
        return self.indexer.collate(as_sentences(sentences), indices).to(self.device)

    def distribution(self, batch: Batch) -> LabeledCRF:
        """The distribution of each sentence's labelled trees, in float64: what all else is made of.

        Its trees are those of the config's ``trees`` and ``single_root``. Label scores are log probabilities of labels
        given their arcs, so that its ``base`` is the distribution of the trees; they are computed where they are needed
        and take little memory. The label "root" is for arcs from the root, and for no others.
        """
        scores = self.scorer(batch)
        family = DISTRIBUTIONS[self.config.trees]
        trees = family(scores.arcs.double(), batch.lengths, single_root=self.config.single_root)
        return LabeledCRF(trees, BiaffineLabels(scores, self.indexer.root_label))

    def loss(self, batch: Batch, objective: Objective) -> Tensor:
        """The objective, a scalar: the mean over the words of the sentences that it is for."""
        return self.loss_and_terms(batch, objective)[0]

    def loss_and_terms(self, batch: Batch, objective: Objective) -> tuple[Tensor, Sequence[Term]]:
        """:meth:`loss`, and what it is made of."""
        p = self.distribution(batch)
        terms = objective.terms(p, batch)
        return total_loss(terms, p), terms

    @torch.inference_mode()
    def parse_batch(
        self, batch: Batch, sentences: Sequence[Sentence], decoder: DecoderName | None = None
    ) -> list[Parse]:
        """The labelled tree that the decoder, or the config's, chooses for each sentence of a batch."""
        return self._parses(self.distribution(batch), sentences, self._decoder(decoder))

    @torch.inference_mode()
    def measure(self, batch: Batch, sentences: Sequence[Sentence], objective: Objective) -> tuple[list[Parse], float]:
        """The parses of a batch with gold trees, and :meth:`loss`; the sentences are scored once for both."""
        p = self.distribution(batch)
        loss = float(total_loss(objective.terms(p, batch), p))
        return self._parses(p, sentences, self._decoder(None)), loss

    def _parses(self, p: LabeledCRF, sentences: Sequence[Sentence], decoder: Decoder) -> list[Parse]:
        trees = decoded(p, decoder)
        scores = p.score(trees)
        lists = TreeLists(*(column.unsqueeze(1) for column in (*trees, scores - p.log_partition, scores)))
        return [parse for [parse] in lists.parses(sentences, self.indexer.labels)]

    def parse(
        self,
        sentences: Iterable[Words],
        *,
        batch_words: int = 5000,
        decoder: DecoderName | None = None,
    ) -> list[Parse]:
        """The parse of each sentence, in order: the labelled tree that the decoder, or the config's, chooses.

        Labels have a say in which arcs are best. Log probabilities are among all trees, whichever the decoder. A
        sentence is a :class:`~treeparse.core.Sentence`, a list of words, or what else
        :func:`~treeparse.data.mapping.as_sentence` takes. Batches hold sentences of like length, about ``batch_words``
        words each. Raises where a sentence is a string or has no words, and where the model reads tags and a sentence
        has none.
        """
        parse_batch = partial(self.parse_batch, decoder=self._decoder(decoder))
        return self._in_batches(sentences, parse_batch, max_words=batch_words)

    def kbest(
        self,
        sentences: Iterable[Words],
        k: int,
        *,
        batch_words: int = 5000,
        decoder: DecoderName | None = None,
    ) -> list[list[Parse]]:
        """The k best labelled trees of each sentence, best first, exact and distinct; fewer where there are fewer.

        Trees that differ in a label alone count too. The decoder, or the config's, says among which trees: all
        (nonprojective), or those without crossing arcs (projective). The rest is as in :meth:`parse`.
        """
        return self._lists(sentences, BestLists(k, self._decoder(decoder)), batch_words)

    def sample(
        self,
        sentences: Iterable[Words],
        k: int,
        *,
        replacement: bool = True,
        seed: int = 0,
        first: int | Sequence[int] = 0,
        temperature: float = 1.0,
        batch_words: int = 5000,
        decoder: DecoderName | None = None,
    ) -> list[list[Parse]]:
        """Labelled trees of each sentence, drawn with probabilities exactly proportional to exp(score / temperature).

        Lists are in the order drawn; shorter ones by an equal seed are the start of longer ones. The decoder
        projective, or the config's, draws from the trees without crossing arcs, any other from all. A ``log_prob`` is
        that by which the tree is drawn, from these trees at this temperature; a ``score`` is the model's own. The rest
        is as in :meth:`parse`.

        Args:
            sentences: what to parse.
            k: trees of a sentence.
            replacement: whether a tree can be drawn again. If not, trees are different, labels included, and fewer
                where there are fewer.
            seed: 0 or more. The trees of sentence ``i`` depend on ``(seed, first + i)`` and its scores alone; the last
                bits of scores in single precision depend on the batch. Without replacement, a GPU draws other trees.
            first: 0 or more, the place of the first sentence in a longer list; or the places of all.
            temperature: from 1e-6 up; 1 draws from the model's distribution, lower ones favour better trees.
            batch_words: as in :meth:`parse`.
            decoder: as above.
        """
        sentences = _held(sentences)
        if not isinstance(first, int) and len(first) != len(sentences):
            raise TreeparseError(f"{len(sentences)} sentences came with {len(first)} places: give one a sentence.")
        lists = SampledLists(k, self._decoder(decoder), replacement, seed, first, temperature)
        return self._lists(sentences, lists, batch_words)

    def _decoder(self, name: DecoderName | None) -> Decoder:
        """The decoder of that name, or the config's."""
        return decoder_named(self.config.decoder if name is None else name)

    @torch.inference_mode()
    def _lists(self, sentences: Iterable[Words], finder: ListFinder, batch_words: int) -> list[list[Parse]]:
        def lists(batch: Batch, chosen: list[Sentence]) -> list[list[Parse]]:
            found = finder(self.distribution(batch), batch.indices.tolist())
            return found.parses(chosen, self.indexer.labels)

        # A batch holds the scores of all its labels, and k trees of all its words.
        words = min(batch_words, max(1, LABEL_SCORES // finder.k))
        squared = max(1, LABEL_SCORES // len(self.indexer.labels))
        return self._in_batches(sentences, lists, max_words=words, max_squared=squared)

    def _in_batches(
        self,
        sentences: Iterable[Words],
        function: Callable[[Batch, list[Sentence]], Sequence[T]],
        **limits: int,
    ) -> list[T]:
        """What a function finds for each sentence, without dropout; it sees them in batches of like length."""
        held = _held(sentences)
        given = as_sentences(held)
        lists = (
            own.forms for own, words in zip(given[:LOOKED_AT], held, strict=False) if isinstance(words, list | tuple)
        )
        if doubt := self._raw_text.look(lists):
            warnings.warn(f"{doubt[0].upper()}{doubt[1:]}", stacklevel=3)
        was_training = self.training
        self.eval()
        length = self.indexer.features.length
        try:
            return map_batches(
                lambda places, chosen: function(self.collate(chosen, places), chosen), given, length=length, **limits
            )
        finally:
            self.train(was_training)


def _held(sentences: Iterable[Words]) -> Sequence[Words]:
    """The sentences where they can be gone through more than once."""
    return sentences if isinstance(sentences, Sequence) else list(sentences)


@contextmanager
def _no_parser(directory: str | Path) -> Iterator[None]:
    """What fails on JSON that ``save_pretrained`` did not write: there are as many ways as there are mistakes."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise TreeparseError(
            f"{VOCABULARY} and {CONFIG} in {directory} make no parser ({type(error).__name__}: {error}): "
            "copy the model again."
        ) from error
