"""How large a scorer is, from its settings alone: known before any of it is allocated."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from treeparse.errors import TreeparseError
from treeparse.names import TAGS

from .config import SIZES, BiLSTMConfig, EncoderConfig

BYTES = 4  # of a weight, in single precision
TRAINING_COPIES = 4  # the weights, their gradient, and Adam's two averages
SMALLEST: dict[str, int] = {name: 1 for name in ("words", "characters", "vectors", *TAGS)}  # vocabularies
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

# The settings that make a BiLSTM larger, each at its least.
_LEAST: dict[str, Any] = dict.fromkeys((*SIZES, "layers"), 1) | {"char_widths": (1,)}


class EncoderSize(NamedTuple):
    """How many weights an encoder has, frozen ones included, and of how many numbers its vectors are."""

    weights: int
    output_size: int


def bilstm_size(config: BiLSTMConfig, features: Mapping[str, int] = SMALLEST) -> EncoderSize:
    """The size of a `BiLSTMEncoder` for features of so many ids."""
    return EncoderSize(_embedding(config, features) + _recurrent(config), 2 * config.hidden_size)


def smaller_bilstms(config: BiLSTMConfig) -> Iterator[tuple[str, BiLSTMConfig]]:
    """Each setting that makes a BiLSTM larger, with its value as text, and the settings with this one at its least."""
    for name, least in _LEAST.items():
        value = getattr(config, name)
        yield f"encoder.{name} ({_shown(value)})", replace(config, **{name: min(value, least)})


def _embedding(config: BiLSTMConfig, features: Mapping[str, int]) -> int:
    weights = features["words"] * config.word_size
    weights += sum(features[tag] for tag in config.tags) * config.tag_size
    if config.vector_size:
        weights += (features["vectors"] + config.word_size) * config.vector_size
    if config.char_filters:
        weights += features["characters"] * config.char_size
        weights += sum((config.char_size * width + 1) * config.char_filters for width in config.char_widths)
    return weights


def _recurrent(config: BiLSTMConfig) -> int:
    words = config.word_size + config.tag_size * len(config.tags) + config.char_filters * len(config.char_widths)
    inner = 2 * config.hidden_size * (config.layers - 1)
    return 8 * config.hidden_size * (words + inner + (config.hidden_size + 2) * config.layers)


@dataclass(frozen=True)
class ScorerSize:
    """What fixes how many weights a scorer has.

    Attributes:
        encoder: the encoder's settings.
        encoder_size: what size an encoder of such settings has.
        smaller: the settings that make an encoder larger, as text, and the same encoder without each of them.
        arc_size: size of the vectors between which arcs are scored.
        label_size: size of the vectors between which labels are scored.
        labels: number of labels.
        tags: number of tags of all columns that are predicted.
    """

    encoder: EncoderConfig
    encoder_size: Callable[[Any], EncoderSize]
    smaller: Callable[[Any], Iterable[tuple[str, EncoderConfig]]]
    arc_size: int
    label_size: int
    labels: int
    tags: int = 0

    def weights(self) -> int:
        """The number of weights of a `BiaffineScorer` over the encoder, frozen ones included."""
        encoder, nodes = self.encoder_size(self.encoder)
        projections = 2 * (nodes + 1) * (self.arc_size + self.label_size)
        arcs = self.arc_size * (self.arc_size + 1)
        labels = self.labels * (self.label_size * (self.label_size + 2) + 1)
        return encoder + projections + arcs + labels + self.tags * (nodes + 1)

    def excess(self, most: int) -> str:
        """The settings because of which there are more than ``most`` weights, with their values, the worst first."""
        size, found = self, []
        while size.weights() > most:
            setting, smaller = min(size._with_one_at_its_least(), key=lambda choice: choice[1].weights())
            if smaller.weights() == size.weights():
                break
            found.append(setting)
            size = smaller
        return " and ".join(found)

    def _with_one_at_its_least(self) -> "Iterator[tuple[str, ScorerSize]]":
        for setting, encoder in self.smaller(self.encoder):
            yield setting, replace(self, encoder=encoder)
        yield f"arc_size ({self.arc_size})", replace(self, arc_size=1)
        yield f"label_size ({self.label_size})", replace(self, label_size=1)


def check_memory(size: ScorerSize, *, copies: int) -> None:
    """Raise where this machine cannot hold a scorer's weights so many times over."""
    memory = machine_memory()
    wanted = size.weights() * BYTES * copies
    if memory is not None and wanted > memory:
        raise TreeparseError(
            f"The model would have at least {_amount(size.weights())} weights and take {_amount(wanted / 1e9)} GB of "
            f"memory, but there are {_amount(memory / 1e9)} GB on this machine: "
            f"lower {size.excess(memory // (BYTES * copies))}."
        )


def machine_memory() -> int | None:
    """The bytes of memory that there are for this process, also in a container; None if the system does not say."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # no POSIX
        return None
    for path in map(Path, CONTAINER_LIMITS):
        with suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(int(path.read_text()))
    return min(limits)


def _amount(number: float) -> str:
    return f"{number:,.1f}" if number < 1000 else f"{number:,.0f}" if number < 1e9 else f"{number:.1e}"


def _shown(value: int | tuple[int, ...]) -> str:
    return str(value) if isinstance(value, int) else ", ".join(map(str, value))
