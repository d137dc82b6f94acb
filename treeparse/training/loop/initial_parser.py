"""The parser that a run starts from: new, or with the weights and vocabularies of another."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from treeparse.data.features.indexer import Indexer
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import TAG_COLUMNS
from treeparse.data.files import expand_paths
from treeparse.data.vectors.files import read_vectors
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.model.encoders import encoder_kind
from treeparse.sentence import Sentence
from treeparse.training.settings.config import TrainConfig

# Settings on which no weight depends: a run may have others than the model that it starts from.
FREE_MODEL_SETTINGS = {"dropout", "single_root", "trees", "decoder", "tags", "temperature", "label_temperature"}
NAMED_LABELS = 10
NOTHING = Vocabulary((), ())


def initial_parser(
    config: TrainConfig, sentences: Sequence[Sentence], unlabelled: Sequence[Sentence] = ()
) -> tuple[Parser, str | None]:
    """The parser that the config describes, and what the user should know of it.

    Its vocabularies are those of the training sentences, unlabelled ones too but for labels, or of ``init_from``
    extended by them; then the text names what was added.
    """
    if config.init_from is not None:
        return _pretrained(config, config.init_from, sentences, unlabelled)
    if config.data.vectors is None:
        return Parser.build(config.model, sentences, unlabelled=unlabelled), None
    paths = expand_paths([config.data.vectors])
    if len(paths) > 1:
        raise TreeparseError(f"data.vectors matches {len(paths)} files, {paths[0]} among them: name one.")
    only = _seen([*sentences, *unlabelled]) if config.data.only_seen_vectors else None
    vectors = read_vectors(paths[0], max_vectors=config.data.max_vectors, only=only)
    return Parser.build(config.model, sentences, vectors, unlabelled=unlabelled), None


def _seen(sentences: Sequence[Sentence]) -> set[str]:
    """The words under which vectors of these sentences are looked up: as they stand, and lower-cased."""
    forms = {form for sentence in sentences for form in sentence.forms}
    return forms | {form.lower() for form in forms}


def _pretrained(
    config: TrainConfig, directory: str, sentences: Sequence[Sentence], unlabelled: Sequence[Sentence]
) -> tuple[Parser, str]:
    """A parser as the config describes it, with the vocabularies of another, extended, and all of its weights.

    What is new has the weights that a new parser gives it; so have tags that the other does not predict. Those that
    the config does not name are left out.
    """
    if config.data.vectors is not None:
        raise TreeparseError(f"The model in {directory} brings its own word vectors, if any: leave out data.vectors.")
    source = Parser.from_pretrained(directory)
    _check_sizes(config.model, source.config, directory)
    encoder = encoder_kind(config.model.encoder).continuing(source.config.encoder)
    features = encoder_kind(encoder).extended(source.indexer.features, [*sentences, *unlabelled])
    indexer = source.indexer.extended(sentences, features, config.model.tags.columns())
    parser = Parser(replace(config.model, encoder=encoder), indexer)
    target = parser.base_weights()
    _copy({name: weights for name, weights in source.state_dict().items() if name in target}, target)
    return parser, f"starting from {directory}: {_added(source.indexer, indexer, sum(map(len, sentences)))}"


def _check_sizes(wanted: ParserConfig, found: ParserConfig, directory: str) -> None:
    """Raise where the weights of a model do not fit the config, with all settings that differ."""
    encoders = [encoder_kind(config.encoder).name for config in (found, wanted)]
    if encoders[0] != encoders[1]:
        raise TreeparseError(
            f"The weights in {directory} do not fit the model that the config describes: its encoder is {encoders[0]} "
            f"there and {encoders[1]} here. Give the config the encoder of the other, or train without init_from."
        )
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
    sizes = {name: value for name, value in asdict(config).items() if name not in {*FREE_MODEL_SETTINGS, "encoder"}}
    sizes |= {f"encoder.{name}": value for name, value in encoder_kind(config.encoder).shaping().items()}
    return {f"model.{name}": json.loads(_shown(value)) for name, value in sizes.items()}  # with lists for tuples


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
    before = _vocabularies(old)
    sizes = [(noun, len(_new_items(before.get(noun, NOTHING), table)[0])) for noun, table in _vocabularies(new).items()]
    if any(size for _, size in sizes):
        parts.append(", ".join(f"{size:,} new {noun}{'s' * (size != 1)}" for noun, size in sizes if size))
    if lost := [TAG_COLUMNS[column] for column in old.tags if column not in new.tags]:
        parts.append(f"it will not predict {' and '.join(lost)}, of which model.tags has no weight")
    return "; ".join(parts) or "it knows all labels, words and characters of data.train"


def _vocabularies(indexer: Indexer) -> dict[str, Vocabulary]:
    """Those that grow, but for labels, by the noun for what each holds."""
    predicted = {f"{TAG_COLUMNS[column]} tag": tags for column, tags in indexer.tags.items()}
    return {**indexer.features.vocabularies(), **predicted}


def _new_items(old: Vocabulary, new: Vocabulary) -> tuple[Sequence[str], Sequence[int]]:
    """What an extended vocabulary holds besides the old one, and how often each was seen."""
    return new.items[len(old.items) :], new.counts[len(old.items) :]
