"""Peers that parse large corpora on CPUs, trained for an iteration: UDPipe 1 and spaCy's parser."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile

from treeparse.data.conllu import ConlluSentence, read_conllu

Timed = Callable[[Path, Path], float]
"""Parses a file of CoNLL-U to another, and returns the seconds."""

# Of the models of Universal Dependencies 2.0 that UDPipe 1 ships; it reads the gold tags of its input.
PARSITO = (
    "iterations=1;embedding_form=50;embedding_upostag=20;embedding_feats=20;embedding_deprel=20;hidden_layer=200;"
    "transition_system=projective;transition_oracle=static;structured_interval=0;use_gold_tags=1"
)


@dataclass(frozen=True)
class CorpusPeer:
    """A peer: the package that has it, how many sentences it parses, and how it is trained."""

    name: str
    package: str
    module: str
    sentences: int
    train: Callable[[Sequence[ConlluSentence]], Timed]

    def prepare(self, sentences: Sequence[ConlluSentence]) -> Timed | None:
        """Train it, where it is installed."""
        return self.train(sentences) if find_spec(self.module) else None


def udpipe(sentences: Sequence[ConlluSentence], options: str = "") -> Timed:
    """UDPipe 1's parser with a beam of five (its default), behind its own reader and before its own writer."""
    import ufal.udpipe as library  # pyright: ignore[reportMissingImports]

    error, known = library.ProcessingError(), library.Sentences()
    reader = library.InputFormat.newConlluInputFormat()
    reader.setText("".join(each.text for each in sentences))
    while reader.nextSentence(sentence := library.Sentence(), error):
        known.push_back(sentence)
    training = (known, library.Sentences(), "none", "none", PARSITO, error)
    with NamedTemporaryFile() as file:
        file.write(library.Trainer.train("morphodita_parsito", *training))
        file.flush()
        model = library.Model.load(file.name)

    def parse(corpus: Path, output: Path) -> float:
        pipeline = library.Pipeline(model, "conllu", library.Pipeline.NONE, options, "conllu")
        started = time.perf_counter()
        output.write_text(pipeline.process(corpus.read_text(encoding="utf-8"), error), encoding="utf-8")
        if error.occurred():
            raise SystemExit(error.message)
        return time.perf_counter() - started

    return parse


def spacy_parser(sentences: Sequence[ConlluSentence]) -> Timed:
    """The transition parser of spaCy over the convolutions of its small pipelines, from words in memory to a table."""
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example

    nlp = spacy.blank("en")
    nlp.add_pipe("parser")
    examples = []
    for sentence in sentences:
        words, heads = [*sentence.words.forms], [*(sentence.words.heads or ())]
        labels = ["ROOT" if label == "root" else label for label in sentence.words.labels or ()]
        places = [place if head == 0 else head - 1 for place, head in enumerate(heads)]
        gold = Doc(nlp.vocab, words=words, heads=places, deps=labels)
        examples.append(Example(Doc(nlp.vocab, words=words), gold))
    optimizer = nlp.initialize(lambda: examples)
    for start in range(0, len(examples), 50):
        nlp.update(examples[start : start + 50], sgd=optimizer)

    def parse(corpus: Path, output: Path) -> float:
        texts = [[*sentence.words.forms] for sentence in read_conllu(corpus)]
        started = time.perf_counter()
        with output.open("w", encoding="utf-8") as stream:
            for doc in nlp.pipe((Doc(nlp.vocab, words=words) for words in texts), batch_size=1000):
                stream.writelines(f"{token.text}\t{token.head.i}\t{token.dep_}\n" for token in doc)
        return time.perf_counter() - started

    return parse


PEERS = (
    CorpusPeer("UDPipe 1", "ufal.udpipe", "ufal.udpipe", 10_000, udpipe),
    CorpusPeer("UDPipe 1, greedy", "ufal.udpipe", "ufal.udpipe", 10_000, partial(udpipe, options="beam_search=1")),
    CorpusPeer("spaCy's parser", "spacy", "spacy", 10_000, spacy_parser),
)
