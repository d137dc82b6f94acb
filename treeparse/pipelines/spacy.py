"""The parser in spaCy's pipelines: ``nlp.add_pipe("treeparse", config={"model": "runs/mine"})``.

Each sentence of a Doc, or a Doc without boundaries of sentences as one, gets its tree: ``token.head`` and
``token.dep_``, labels as in the treebank but for the root's, which is "ROOT" in spaCy. Boundaries of sentences and
tokens stay: sentences come from a component before this one, such as ``sentencizer`` or ``senter``, and tokens should
be words as those of the treebank.

The model is loaded when it is first needed. A pipeline that is saved, by ``nlp.to_disk``, takes it along, and loads
without the folder that it came from.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

import srsly
import torch
from spacy.language import Language
from spacy.parts_of_speech import IDS
from spacy.pipeline.dep_parser import parser_score
from spacy.tokens import Doc, Span, Token
from spacy.training import Example
from spacy.util import minibatch, raise_error

from treeparse.batch import pick_device
from treeparse.data.docs import doc_sentences, doc_tree, fill_doc, span_words, word_tokens
from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.model.tagging import check_tags
from treeparse.names import DecoderName, decoder_named, listing_decoder_named
from treeparse.sentence import EMPTY

ErrorHandler = Callable[[str, Any, list[Doc], Exception], Any]

TOKEN_EXTENSIONS = ("arc_prob", "label_prob")  # of the token's arc; of arc and label together
SENTENCE_EXTENSIONS = ("tree_log_prob", "tree_entropy", "kbest")


def _register(kind: type[Token] | type[Span], names: Iterable[str]) -> None:
    for name in names:
        if not kind.has_extension(name):
            kind.set_extension(name, default=None)


_register(Token, TOKEN_EXTENSIONS)
_register(Span, SENTENCE_EXTENSIONS)


@dataclass(frozen=True)
class Settings:
    """What the component does.

    Attributes:
        model: the folder of a model, or of its run, or a model of the hub; None where the pipeline's own is loaded.
        decoder: which tree is the parse; None is as the model's config says.
        tags: set ``token.pos_``, ``tag_`` and the morphology that the model predicts.
        probabilities: set ``token._.arc_prob`` and ``label_prob``, exact, among all trees; of each sentence
            ``sentence._.tree_log_prob`` and ``tree_entropy``, in nats.
        kbest: set ``sentence._.kbest`` to so many best trees, best first; 0 for none. Each is a mapping of ``heads``,
            places in the Doc of the heads of all tokens of the sentence, ``deps``, ``log_prob`` and ``score``.
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
                f"kbest must be 0 or more and batch_words 1 or more, not {self.kbest} and {self.batch_words}."
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
    """The component; arguments are `Settings`."""
    return ParserComponent(name, Settings(model, decoder, tags, probabilities, kbest, batch_words, device, precision))


class ParserComponent:
    """A parser that sets the trees of Docs, in place.

    Raises a ``TreeparseError`` where there is no model, where it reads tags that a Doc lacks, and where it predicts no
    tags that it is to set.
    """

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.settings = name, settings
        self._parser: Parser | None = None
        self._process = os.getpid()
        self._error_handler: ErrorHandler = raise_error

    @property
    def parser(self) -> Parser:
        """The parser, loaded when it is first asked for."""
        if self._parser is None:
            if self.settings.model is None:
                raise TreeparseError(
                    f'The component {self.name} has no model: add it by nlp.add_pipe("treeparse", config={{"model": '
                    '"FOLDER"}) with the folder of one that was trained.'
                )
            self._parser = self._ready(self.settings.model)
        return self._parser

    def __call__(self, doc: Doc) -> Doc:
        """Parse a Doc; it is given back itself."""
        self._parse([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Parse Docs, so many at once. One that is faulty goes to the error handler, alone."""
        for docs in minibatch(stream, size=batch_size):
            try:
                self._parse(docs)
            except Exception as error:
                if len(docs) == 1:
                    self._error_handler(self.name, self, docs, error)
                else:
                    yield from self.pipe(docs, batch_size=1)
            else:
                yield from docs

    def set_error_handler(self, error_handler: ErrorHandler) -> None:
        """Who is told of a Doc that cannot be parsed, which is then left out; by default the error is raised."""
        self._error_handler = error_handler

    def get_error_handler(self) -> ErrorHandler:
        """The same."""
        return self._error_handler

    def score(self, examples: Iterable[Example], **options: Any) -> dict[str, Any]:
        """UAS and LAS as spaCy counts them, for ``nlp.evaluate``."""
        return parser_score(examples, **options)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the model into a folder."""
        self.parser.save_pretrained(path)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Load the model that was saved."""
        self._parser = self._ready(path)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The files of the model."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(saved := Path(folder) / "model")
            return srsly.msgpack_dumps({path.name: path.read_bytes() for path in saved.iterdir()})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Load the model of these files."""
        with tempfile.TemporaryDirectory() as folder:
            files: Any = srsly.msgpack_loads(data)
            for name, content in files.items():
                (Path(folder) / Path(name).name).write_bytes(content)
            return self.from_disk(folder)

    def _ready(self, folder: str | Path) -> Parser:
        """The parser of a folder, on its device."""
        parser = Parser.from_pretrained(folder).to(pick_device(self.settings.device))
        if self.settings.tags:
            check_tags(parser)
            if unknown := {*parser.tag_names.get("upos", ())} - {EMPTY} - IDS.keys():
                raise TreeparseError(f"spaCy has no UPOS {', '.join(sorted(unknown))}, which the model predicts.")
        return parser.use_precision(self.settings.precision)

    def _parse(self, docs: Sequence[Doc]) -> None:
        """Parse Docs, all or none."""
        if os.getpid() != self._process:  # a worker of nlp.pipe: torch's other threads stayed behind, and it would wait
            torch.set_num_threads(1)
            self._process = os.getpid()
        settings, parser = self.settings, self.parser
        decoder: DecoderName | None = None if settings.decoder is None else decoder_named(settings.decoder)
        options: dict[str, Any] = {"batch_words": settings.batch_words, "decoder": decoder}
        spans = [doc_sentences(doc) for doc in docs]
        words = [span_words(span) for own in spans for span in own]
        parses = iter(parser.parse(words, probabilities=settings.probabilities, **options))
        lists = iter(parser.kbest(words, settings.kbest, **options) if settings.kbest else [[]] * len(words))
        for doc, own in zip(docs, spans, strict=True):
            of_doc = list(islice(parses, len(own)))
            fill_doc(doc, of_doc)
            for span, parse, best in zip(own, of_doc, lists, strict=False):
                self._annotate(span, parse, best)

    def _annotate(self, span: Span, parse: Parse, best: Sequence[Parse]) -> None:
        """Set what is asked for beside the tree."""
        words = word_tokens(span)
        if self.settings.tags:
            _set_tags(words, parse.tags)
        if parse.arc_probs is not None and parse.label_probs is not None:
            for token, arc, labeled in zip(words, parse.arc_probs, parse.label_probs, strict=True):
                token._.arc_prob, token._.label_prob = arc, labeled
            span._.tree_log_prob, span._.tree_entropy = parse.log_prob, parse.entropy
        if best:
            span._.kbest = [_as_mapping(span, each) for each in best]


def _set_tags(words: Sequence[Any], tags: Mapping[str, Sequence[str]]) -> None:
    for column, values in tags.items():
        for token, value in zip(words, ("" if value == EMPTY else value for value in values), strict=True):
            if column == "upos":
                token.pos_ = value
            elif column == "xpos":
                token.tag_ = value
            else:
                token.set_morph(value)


def _as_mapping(span: Span, parse: Parse) -> dict[str, Any]:
    """A tree of a list, of what a Doc can be saved with."""
    tree = doc_tree(span, parse)
    return {
        "heads": list(tree.heads),
        "deps": list(tree.labels),
        "log_prob": parse.log_prob,
        "score": parse.score,
    }
