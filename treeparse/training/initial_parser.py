"""The parser that a run starts from: a new one, or one with the weights and vocabularies of a model."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from treeparse.data.columns import column_named
from treeparse.data.features.indexer import Indexer
from treeparse.data.features.vector_files import read_vectors
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.files import expand_paths
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.sentence import Sentence
from treeparse.training.train_config import TrainConfig

NAMED_LABELS = 10
EMPTY = Vocabulary((), ())


def initial_parser(
    config: TrainConfig, sentences: Sequence[Sentence], unlabelled: Sequence[Sentence] = ()
) -> tuple[Parser, str | None]:
    """Build the parser that the config describes; return it with a remark for the user, if there is one.

    Its vocabularies come from the training sentences and, except for labels, the unlabelled ones. With ``init_from``
    they extend the model's vocabularies, and the remark names what was added.
    """
    if config.init_from is not None:
        return _continued(config, config.init_from, sentences, unlabelled)
    if config.data.vectors is None:
        return Parser.build(config.model, sentences, unlabelled=unlabelled), None
    paths = expand_paths([config.data.vectors])
    if len(paths) > 1:
        raise TreeparseError(f"data.vectors matches {len(paths)} files, {paths[0]} among them: name one.")
    only = _seen_forms([*sentences, *unlabelled]) if config.data.only_seen_vectors else None
    vectors = read_vectors(paths[0], max_vectors=config.data.max_vectors, only=only)
    return Parser.build(config.model, sentences, vectors, unlabelled=unlabelled), None


def _seen_forms(sentences: Sequence[Sentence]) -> set[str]:
    """Return the forms of the sentences, also lower-cased: vectors are looked up by both."""
    return {variant for sentence in sentences for form in sentence.forms for variant in (form, form.lower())}


def _continued(
    config: TrainConfig, directory: str, sentences: Sequence[Sentence], unlabelled: Sequence[Sentence]
) -> tuple[Parser, str]:
    """Build the parser that the config describes from the weights and the extended vocabularies of a model.

    New items, and tags that the model does not predict, get the first weights of a new parser. Tags that the config
    does not name are left out.
    """
    if config.data.vectors is not None:
        raise TreeparseError(
            f"data.vectors cannot be used with init_from, because the model in {directory} has its own word vectors: "
            "leave out data.vectors."
        )
    source = Parser.from_pretrained(directory)
    _check_sizes(config.model, source.config, directory)
    reader = config.model.reader.continuing(source.config.reader)
    features = reader.extended(source.indexer.features, [*sentences, *unlabelled])
    model = config.model.with_reader(reader).with_tags_of(sentences, features)
    indexer = source.indexer.extended(sentences, features, model.tags.columns())
    parser = Parser(model, indexer)
    target = parser.base_weights()
    _copy({name: weights for name, weights in source.state_dict().items() if name in target}, target)
    return parser, f"starting from {directory}: {_added(source.indexer, indexer, sum(map(len, sentences)))}"


def _check_sizes(config: ParserConfig, source: ParserConfig, directory: str) -> None:
    """Raise if the weights of a model do not fit the config, with all settings that differ."""
    for part, old, new in (("scorer", source.scorer, config.scorer), ("encoder", source.reader, config.reader)):
        if type(old) is not type(new):
            raise TreeparseError(
                f"The weights in {directory} do not fit the model that the config describes: its {part} is "
                f"{type(old).__name__} there and {type(new).__name__} here. Give the config the {part} of the other, "
                "or train without init_from."
            )
    here, there = _sizes(config), _sizes(source)
    differing = {name: value for name, value in there.items() if here.get(name, value) != value}
    if differing:
        shown = {name: json.dumps(value) for name, value in differing.items()}
        values = "; ".join(f"{name} is {text} there and {json.dumps(here[name])} here" for name, text in shown.items())
        options = " ".join(shlex.quote(f"--{name}={text}") for name, text in shown.items())
        raise TreeparseError(
            f"The weights in {directory} do not fit the model that the config describes: {values}. "
            f"Give the config's model section the values of the other ({options}), or train without init_from."
        )


def _sizes(config: ParserConfig) -> dict[str, Any]:
    """Return the settings that fix the weights' shapes and meaning, by the names of their options."""
    sizes = config.shaping().items()
    return {f"model.{name}": json.loads(json.dumps(value)) for name, value in sizes}  # with lists for tuples


@torch.no_grad()
def _copy(weights: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    """Copy weights into a parser with extended vocabularies, where every old item has its old index."""
    for name, values in weights.items():
        target[name][tuple(map(slice, values.shape))] = values


def _added(old: Indexer, new: Indexer, words: int) -> str:
    """Describe what the vocabularies gained."""
    labels, counts = _new_items(old.labels, new.labels)
    parts = []
    if labels:
        more = f" and {len(labels) - NAMED_LABELS} more" if len(labels) > NAMED_LABELS else ""
        share = sum(counts) / words
        parts.append(f"labels new to the model: {', '.join(labels[:NAMED_LABELS])}{more} ({share:.1%} of the words)")
    before, now = _vocabularies(old), _vocabularies(new)
    sizes = {noun: len(_new_items(before.get(noun, EMPTY), table)[0]) for noun, table in now.items()}
    if any(sizes.values()):
        parts.append(", ".join(f"{size:,} new {noun}{'s' * (size != 1)}" for noun, size in sizes.items() if size))
    if lost := [column_named(column).title for column in old.tags if column not in new.tags]:
        parts.append(f"it will not predict {' and '.join(lost)}, of which model.tags has no weight")
    return "; ".join(parts) or "it knows all labels, words and characters of data.train"


def _vocabularies(indexer: Indexer) -> dict[str, Vocabulary]:
    """Return the vocabularies that grow, without labels, by the noun for their items."""
    predicted = {f"{column_named(column).title} tag": tags for column, tags in indexer.tags.items()}
    return {**indexer.features.vocabularies(), **predicted}


def _new_items(old: Vocabulary, new: Vocabulary) -> tuple[Sequence[str], Sequence[int]]:
    """Return the items that a vocabulary gained, and how often each occurs in the training sentences."""
    return new.items[len(old.items) :], new.counts[len(old.items) :]
