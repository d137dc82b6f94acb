"""The parser that a run starts from: new, or with the weights and vocabularies of another."""

from collections.abc import Sequence
from dataclasses import replace

from treeparse.core import Sentence, TreeparseError
from treeparse.data.files import expand_paths
from treeparse.data.vectors import read_vectors
from treeparse.model import Parser
from treeparse.training.config import TrainConfig


def initial_parser(config: TrainConfig, sentences: Sequence[Sentence]) -> Parser:
    """The parser that the config describes, with the vocabularies of the training sentences or of ``init_from``."""
    if config.init_from is not None:
        return _pretrained(config, config.init_from)
    if config.data.vectors is None:
        return Parser.build(config.model, sentences)
    paths = expand_paths([config.data.vectors])
    if len(paths) > 1:
        raise TreeparseError(f"data.vectors matches {len(paths)} files, {paths[0]} among them: name one.")
    return Parser.build(config.model, sentences, read_vectors(paths[0], max_vectors=config.data.max_vectors))


def _pretrained(config: TrainConfig, directory: str) -> Parser:
    """A parser as the config describes it, with the vocabularies and all weights of another."""
    if config.data.vectors is not None:
        raise TreeparseError(f"The model in {directory} brings its own word vectors, if any: leave out data.vectors.")
    source = Parser.from_pretrained(directory)
    encoder = replace(config.model.encoder, vector_size=source.config.encoder.vector_size)
    parser = Parser(replace(config.model, encoder=encoder), source.indexer)
    try:
        parser.load_state_dict(source.state_dict())
    except RuntimeError as error:
        raise TreeparseError(
            f"The weights in {directory} do not fit the model that the config describes "
            f"({' '.join(str(error).split())}): give its model section the settings in {directory}/config.json."
        ) from error
    return parser
