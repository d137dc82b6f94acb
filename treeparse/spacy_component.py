"""The parser in spaCy's pipelines: ``nlp.add_pipe("treeparse", config={"model": "runs/mine"})``.

The component sets ``token.head`` and ``token.dep_`` of each sentence of a Doc; a Doc without sentence boundaries is one
sentence. Labels are those of the treebank, except that spaCy calls the root's label "ROOT". The component changes no
tokens and no sentence boundaries: a component before it, such as ``sentencizer`` or ``senter``, sets the boundaries,
and the tokens should be words as in the treebank.

The component loads the model when it first needs it. ``nlp.to_disk`` saves the model with the pipeline, which then
loads without the original folder.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

import srsly
import torch
from spacy.language import Language
from spacy.parts_of_speech import IDS
from spacy.pipeline import Pipe
from spacy.pipeline.dep_parser import parser_score
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch

from treeparse.batch import pick_device
from treeparse.data.docs import doc_arcs, doc_sentences, fill_doc, span_words, word_tokens
from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.names import DecoderName, decoder_named, listing_decoder_named
from treeparse.sentence import EMPTY

for _kind, _names in ((Token, ("arc_prob", "label_prob")), (Span, ("tree_log_prob", "tree_entropy", "kbest"))):
    for _name in _names:
        if not _kind.has_extension(_name):
            _kind.set_extension(_name, default=None)


@dataclass(frozen=True)
class Settings:
    """The settings of the component.

    Attributes:
        model: the folder of a model or of its run, or a model on the hub; None for a pipeline that brings its model.
        decoder: which tree is the parse; None is the decoder of the model's config.
        tags: set ``token.pos_``, ``tag_`` and the morphology that the model predicts.
        probabilities: set ``token._.arc_prob`` and ``label_prob``, exact, among all trees, and of each sentence
            ``sentence._.tree_log_prob`` and ``tree_entropy``, in nats.
        kbest: set ``sentence._.kbest`` to this number of best trees, best first; 0 for none. Each tree is a mapping of
            ``heads`` (the index in the Doc of each token's head), ``deps``, ``log_prob`` and ``score``.
        batch_words: words parsed at once.
        device: auto, cpu, or cuda.
        precision: of the scores, as for `Parser.use_precision`.
    """

    model: str | None = None
    decoder: str | None = None
    tags: bool = False
    probabilities: bool = False
    kbest: int = 0
    batch_words: int = 5000
    device: str = "cpu"
    precision: str = "32"

    def __post_init__(self) -> None:
        if self.kbest < 0 or self.batch_words < 1:
            raise TreeparseError(
                f"kbest must be 0 or more and batch_words 1 or more, got {self.kbest} and {self.batch_words}."
            )
        if self.decoder is not None:
            (listing_decoder_named if self.kbest else decoder_named)(self.decoder)


@Language.factory(
    "treeparse",
    assigns=["token.dep", "token.head", "token.is_sent_start", "doc.sents"],
    default_config=vars(Settings()),
    default_score_weights={"dep_uas": 0.5, "dep_las": 0.5},
)
def make_component(
    nlp: Language,
    name: str,
    model: str | None,
    decoder: str | None,
    tags: bool,
    probabilities: bool,
    kbest: int,
    batch_words: int,
    device: str,
    precision: str,
) -> "ParserComponent":
    """Make the component; the arguments after ``name`` are the fields of `Settings`."""
    return ParserComponent(name, Settings(model, decoder, tags, probabilities, kbest, batch_words, device, precision))


class ParserComponent(Pipe):
    """A parser that sets the trees of Docs, in place.

    Raises:
        TreeparseError: the component has no model, a Doc lacks tags that the model reads, or ``tags`` is set and the
            model predicts none.
    """

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.settings = name, settings
        self.scorer = parser_score  # of `score`: UAS and LAS as spaCy counts them, for ``nlp.evaluate``
        self._parser: Parser | None = None
        self._process = os.getpid()

    @property
    def parser(self) -> Parser:
        """The parser, loaded at the first access."""
        if self._parser is None:
            if self.settings.model is None:
                raise TreeparseError(
                    f'The component {self.name} has no model: add it by nlp.add_pipe("treeparse", config={{"model": '
                    '"FOLDER"}) with the folder of a trained model.'
                )
            self._parser = self._load(self.settings.model)
        return self._parser

    def __call__(self, doc: Doc) -> Doc:
        """Parse a Doc and return it."""
        self._parse([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Parse Docs, ``batch_size`` at once. A faulty Doc goes to the error handler, alone."""
        for docs in minibatch(stream, size=batch_size):
            try:
                self._parse(docs)
            except Exception as error:
                if len(docs) == 1:
                    self.get_error_handler()(self.name, self, docs, error)
                else:
                    yield from self.pipe(docs, batch_size=1)
            else:
                yield from docs

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the model into a folder."""
        self.parser.save_pretrained(path)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Load a saved model."""
        self._parser = self._load(path)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the files of the model as bytes."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(saved := Path(folder) / "model")
            return srsly.msgpack_dumps({path.name: path.read_bytes() for path in saved.iterdir()})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Load the model from its files as bytes."""
        with tempfile.TemporaryDirectory() as folder:
            files: Any = srsly.msgpack_loads(data)
            for name, content in files.items():
                (Path(folder) / Path(name).name).write_bytes(content)
            return self.from_disk(folder)

    def _load(self, folder: str | Path) -> Parser:
        """Return the parser of a folder, on its device."""
        parser = Parser.from_pretrained(folder).to(pick_device(self.settings.device))
        if self.settings.tags:
            parser.check_tags()
            if unknown := {*parser.tag_names.get("upos", ())} - {EMPTY} - IDS.keys():
                raise TreeparseError(f"spaCy has no UPOS {', '.join(sorted(unknown))}, which the model predicts.")
        return parser.use_precision(self.settings.precision)

    def _parse(self, docs: Sequence[Doc]) -> None:
        """Parse Docs, all or none."""
        if os.getpid() != self._process:  # a worker of nlp.pipe, to which torch's threads were not copied
            torch.set_num_threads(1)
            self._process = os.getpid()
        settings, parser = self.settings, self.parser
        decoder: DecoderName | None = None if settings.decoder is None else decoder_named(settings.decoder)
        options: dict[str, Any] = {"batch_words": settings.batch_words, "decoder": decoder}
        spans = [doc_sentences(doc) for doc in docs]
        words = [span_words(span) for of_doc in spans for span in of_doc]
        parses = iter(parser.parse(words, probabilities=settings.probabilities, **options))
        lists = iter(parser.kbest(words, settings.kbest, **options) if settings.kbest else [[]] * len(words))
        for doc, doc_spans in zip(docs, spans, strict=True):
            doc_parses = list(islice(parses, len(doc_spans)))
            fill_doc(doc, doc_parses)
            for span, parse, best in zip(doc_spans, doc_parses, lists, strict=False):
                self._annotate(span, parse, best)

    def _annotate(self, span: Span, parse: Parse, best: Sequence[Parse]) -> None:
        """Set the tags, probabilities and best trees that the settings ask for."""
        words: list[Any] = word_tokens(span)
        if self.settings.tags:
            for column, values in parse.tags.items():
                for token, tag in zip(words, values, strict=True):
                    value = "" if tag == EMPTY else tag
                    if column == "upos":
                        token.pos_ = value
                    elif column == "xpos":
                        token.tag_ = value
                    else:
                        token.set_morph(value)
        if parse.arc_probs is not None and parse.label_probs is not None:
            for token, arc, labeled in zip(words, parse.arc_probs, parse.label_probs, strict=True):
                token._.arc_prob, token._.label_prob = arc, labeled
            span._.tree_log_prob, span._.tree_entropy = parse.log_prob, parse.entropy
        if best:
            trees = [(tree, *map(list, zip(*doc_arcs(span, tree), strict=True))) for tree in best]
            span._.kbest = [
                {"heads": heads, "deps": labels, "log_prob": tree.log_prob, "score": tree.score}
                for tree, heads, labels in trees
            ]
