"""The parser that a run starts from: new, or with the weights and vocabularies of another."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from treeparse.core import Sentence, TreeparseError
from treeparse.data.features import TAG_COLUMNS
from treeparse.data.files import expand_paths
from treeparse.data.indexer import Indexer
from treeparse.data.vectors import read_vectors
from treeparse.data.vocabulary import Vocabulary
from treeparse.model import Parser, ParserConfig
from treeparse.training.config import TrainConfig

# Settings on which no weight depends: a run may have others than the model that it starts from.
FREE_MODEL_SETTINGS = {"dropout", "single_root", "trees", "decoder"}
FREE_ENCODER_SETTINGS = {
    "min_count",
    "vector_size",  # the pretrained vectors are always those of the model
    "word_dropout",
    "embedding_dropout",
    "dropout",
    "recurrent_dropout",
}
NAMED_LABELS = 10


def initial_parser(config: TrainConfig, sentences: Sequence[Sentence]) -> tuple[Parser, str | None]:
    """The parser that the config describes, and what the user should know of it.

    Its vocabularies are those of the training sentences, or of ``init_from`` extended by them; then the text names what
    was added.
    """
    if config.init_from is not None:
        return _pretrained(config, config.init_from, sentences)
    if config.data.vectors is None:
        return Parser.build(config.model, sentences), None
    paths = expand_paths([config.data.vectors])
    if len(paths) > 1:
        raise TreeparseError(f"data.vectors matches {len(paths)} files, {paths[0]} among them: name one.")
    return Parser.build(config.model, sentences, read_vectors(paths[0], max_vectors=config.data.max_vectors)), None


def _pretrained(config: TrainConfig, directory: str, sentences: Sequence[Sentence]) -> tuple[Parser, str]:
    """A parser as the config describes it, with the vocabularies of another, extended, and all of its weights.

    What is new has the weights that a new parser gives it.
    """
    if config.data.vectors is not None:
        raise TreeparseError(f"The model in {directory} brings its own word vectors, if any: leave out data.vectors.")
    source = Parser.from_pretrained(directory)
    _check_sizes(config.model, source.config, directory)
    encoder = replace(config.model.encoder, vector_size=source.config.encoder.vector_size)
    indexer = source.indexer.extended(sentences, min_count=encoder.min_count)
    parser = Parser(replace(config.model, encoder=encoder), indexer)
    _copy(source.state_dict(), parser.state_dict())
    return parser, f"starting from {directory}: {_added(source.indexer, indexer, sum(map(len, sentences)))}"


def _check_sizes(wanted: ParserConfig, found: ParserConfig, directory: str) -> None:
    """Raise where the weights of a model do not fit the config, with all settings that differ."""
    here, there = _sizes(wanted), _sizes(found)
    differing = {name: value for name, value in there.items() if here.get(name, value) != value}
    if differing:
        values = "; ".join(
            f"{name} is {_shown(value)} there and {_shown(here[name])} here" for name, value in differing.items()
        )
        options = " ".join(shlex.quote(f"--{name}={_shown(value)}") for name, value in differing.items())
        raise TreeparseError(
            f"The weights in {directory} do not fit the model that the config describes: {values}. "
            f"Give the config's model section the values of the other ({options}), or train without init_from."
        )


def _sizes(config: ParserConfig) -> dict[str, Any]:
    """The settings that fix the weights' shapes and meaning, by the names of their options."""
    model = json.loads(_shown(asdict(config)))  # with lists for tuples
    encoder = model.pop("encoder")
    free = set(FREE_ENCODER_SETTINGS)
    free |= set() if config.encoder.char_filters else {"char_size", "char_widths"}
    free |= set() if config.encoder.tags else {"tag_size"}
    sizes = {f"model.{name}": value for name, value in model.items() if name not in FREE_MODEL_SETTINGS}
    return sizes | {f"model.encoder.{name}": value for name, value in encoder.items() if name not in free}


def _shown(value: Any) -> str:
    return json.dumps(value)


@torch.no_grad()
def _copy(weights: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    """Copy weights into those of a parser whose vocabularies go on behind theirs: every old id keeps its place."""
    for name, values in weights.items():
        target[name][tuple(map(slice, values.shape))] = values


def _added(old: Indexer, new: Indexer, words: int) -> str:
    """What vocabularies got, as text."""
    labels, counts = _new_items(old.labels, new.labels)
    parts = []
    if labels:
        more = f" and {len(labels) - NAMED_LABELS} more" if len(labels) > NAMED_LABELS else ""
        share = sum(counts) / words
        parts.append(f"labels new to the model: {', '.join(labels[:NAMED_LABELS])}{more} ({share:.1%} of the words)")
    before, after = old.features, new.features
    tables = [("word", before.words, after.words), ("character", before.characters, after.characters)]
    tables += [(f"{TAG_COLUMNS[name]} tag", table, after.tags[name]) for name, table in before.tags.items()]
    sizes = [(noun, len(_new_items(*pair)[0])) for noun, *pair in tables]
    if any(size for _, size in sizes):
        parts.append(", ".join(f"{size:,} new {noun}{'s' * (size != 1)}" for noun, size in sizes if size))
    return "; ".join(parts) or "it knows all labels, words and characters of data.train"


def _new_items(old: Vocabulary, new: Vocabulary) -> tuple[Sequence[str], Sequence[int]]:
    """What an extended vocabulary holds besides the old one, and how often each was seen."""
    return new.items[len(old.items) :], new.counts[len(old.items) :]
