"""The vectors of words before they know their context: word, pretrained, character and tag embeddings."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from .characters import CharacterEncoder
from .config import BiLSTMConfig, SpellingAndTags
from .dropout import WordDropout


class LexicalEmbedding(nn.Module):
    """Concatenates a word's embedding (plus its projected pretrained vector), characters and tags.

    ``sizes`` gives the number of ids of each feature, ``unknown`` the id of an unknown word and ``specials`` the number
    of ids that stand for no word.
    """

    def __init__(self, config: BiLSTMConfig, sizes: Mapping[str, int], *, unknown: int, specials: int) -> None:
        super().__init__()
        self.word_dropout = WordDropout(config.word_dropout, unknown=unknown, specials=specials)
        self.words = _table(sizes["words"], config.word_size)
        self.vectors = None
        if config.vector_size:
            # Frozen, and without a draw from the generator: whoever builds or loads the model sets these weights.
            self.vectors = nn.Embedding.from_pretrained(torch.zeros(sizes["vectors"], config.vector_size))
            self.project = nn.Linear(config.vector_size, config.word_size, bias=False)
            # The vectors' values have a deviation of one: projected, they too start at a length of about one.
            nn.init.normal_(self.project.weight, std=(config.vector_size * config.word_size) ** -0.5)
        self.tags = tag_tables(config, sizes)
        self.characters = character_encoder(config, sizes)
        self.output_size = config.word_size + spelling_and_tags_size(config)

    def forward(self, features: Mapping[str, Tensor]) -> Tensor:
        """(B, n+1, output_size)."""
        words = self.words(self.word_dropout(features["words"]))
        if self.vectors is not None:
            words = words + self.project(self.vectors(features["vectors"]))
        return torch.cat([words, *spelling_and_tags(self.characters, self.tags, features)], -1)

    def distinct(self, features: Mapping[str, Tensor], places: Tensor) -> tuple[Tensor, Tensor]:
        """What `forward` gives, outside training, to the nodes at ``places`` (N,) of the flattened batch: each once.

        The vectors (U, output_size) of the different nodes, and which of them each node has (N,). Nodes of one form
        have one vector, unless their tags tell them apart.
        """
        forms = features["forms"].flatten()[places]
        chosen, which = places, torch.arange(len(places), device=places.device)
        if not self.tags:
            # Any place of a form will do: whatever else is read of a node depends on its form alone.
            forms, which = forms.unique(return_inverse=True)
            chosen = forms.new_empty(len(forms)).scatter_(0, which, places)
        of_nodes = {name: ids.flatten()[chosen] for name, ids in features.items() if name != "characters"}
        return self(of_nodes | {"characters": features["characters"]}), which


def tag_tables(config: SpellingAndTags, sizes: Mapping[str, int]) -> nn.ModuleDict:
    """The embedding of each tag that is read."""
    return nn.ModuleDict({name: _table(sizes[name], config.tag_size, silent=2) for name in config.tags})


def character_encoder(config: SpellingAndTags, sizes: Mapping[str, int]) -> CharacterEncoder | None:
    """The encoder of words' characters, if they are read."""
    if not config.char_filters:
        return None
    return CharacterEncoder(
        sizes["characters"], size=config.char_size, filters=config.char_filters, widths=config.char_widths
    )


def spelling_and_tags_size(config: SpellingAndTags) -> int:
    """The size of what `spelling_and_tags` gives, in all."""
    return config.char_filters * len(config.char_widths) + config.tag_size * len(config.tags)


def spelling_and_tags(
    characters: CharacterEncoder | None, tags: nn.ModuleDict, features: Mapping[str, Tensor]
) -> Iterator[Tensor]:
    """What a node's vector holds of its characters and of each of its tags, each (B, n+1, size)."""
    if characters is not None:
        yield characters(features["characters"], features["forms"])
    for name, table in tags.items():
        yield table(features[name])


def _table(count: int, size: int, *, silent: int = 1) -> nn.Embedding:
    """An embedding whose first ``silent`` rows are 0: padding, and the unknown where training never meets it."""
    table = nn.Embedding(count, size, padding_idx=0)
    # As the concatenated parts meet one LSTM, every vector starts at a length of about one, whatever its size.
    nn.init.normal_(table.weight, std=size**-0.5)
    with torch.no_grad():
        table.weight[:silent].zero_()
    return table
