"""The provenance of a run's model: its treebanks, with their licences, and the machine."""

import json
import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import torch

from treeparse.batch import pick_device
from treeparse.model.folder import file_header, without_header
from treeparse.model.settings import read_settings
from treeparse.sentence import Sentence
from treeparse.version import installed_version

CPUINFO = Path("/proc/cpuinfo")
# Names of licences in treebanks, to be written as on the Hugging Face hub.
CREATIVE_COMMONS = re.compile(r"CC[ -](BY(?:-NC)?(?:-SA|-ND)?)[ -](\d\.\d)", re.IGNORECASE)
LICENCE_LINE = re.compile(r"^License:\s*(.+?)\s*$", re.MULTILINE)  # of the README of a UD treebank
SHORTEST, LONGEST = 4, 8  # words of the card's example
EVERYDAY = 10  # sentences, at least, that have each of its words
RELEASE = re.compile(r"ud-treebanks-v(\d+\.\d+)")


@dataclass(frozen=True)
class Provenance:
    """The data and the machine that a model was trained with.

    Attributes:
        files: the names of the training files.
        sentences: number of training sentences.
        words: number of their words.
        trees: number of training sentences of which some head is known.
        licences: licences of the treebanks that their folders name.
        releases: releases of Universal Dependencies that the names of folders name.
        device: name of the processor or the GPU.
        threads: number of CPU threads.
        versions: versions of treeparse, torch and Python.
        example: words of a training sentence that the card shows; empty for none.
    """

    files: tuple[str, ...]
    sentences: int
    words: int
    trees: int
    licences: tuple[str, ...]
    releases: tuple[str, ...]
    device: str
    threads: int
    versions: Mapping[str, str]
    example: tuple[str, ...]

    @classmethod
    def of(cls, files: Sequence[str | Path], sentences: Sequence[Sentence], device: str | None) -> Self:
        """Return the provenance of a model that is now trained on these sentences of these files on a device."""
        paths = [Path(file) for file in files]
        return cls(
            files=tuple(path.name for path in paths),
            sentences=len(sentences),
            words=sum(map(len, sentences)),
            trees=sum(any(head >= 0 for head in sentence.heads or ()) for sentence in sentences),
            licences=_distinct(_licence(path.parent) for path in paths),
            releases=_distinct(_release(path) for path in paths),
            device=device_name(pick_device(device)),
            threads=torch.get_num_threads(),
            versions={
                "treeparse": installed_version(),
                "torch": torch.__version__,
                "Python": platform.python_version(),
            },
            example=everyday_sentence(sentences),
        )

    def to_json(self) -> str:
        """Return the text that ``from_json`` reads."""
        return json.dumps({**file_header(), **asdict(self)}, ensure_ascii=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> Self:
        """Read the text that ``to_json`` wrote."""
        return read_settings(cls, without_header(json.loads(text), where), where)


def everyday_sentence(sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """Return the words of a short training sentence for the card; empty if there is none.

    Each of its words occurs in at least `EVERYDAY` sentences, so that it reveals no single text. Of several sentences,
    the function takes the one whose rarest word occurs in the most sentences.
    """
    counts = Counter(word for sentence in sentences for word in {*sentence.forms})
    short = (s.forms for s in sentences if SHORTEST <= len({*s.forms}) <= len(s) <= LONGEST)
    best = max(short, key=lambda forms: min(counts[word] for word in forms), default=())
    return best if min((counts[word] for word in best), default=0) >= EVERYDAY else ()


def device_name(device: torch.device) -> str:
    """Return the system's name for the processor or the GPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines() if CPUINFO.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def licence_tag(licence: str) -> str | None:
    """Return the hub's tag of a Creative Commons licence, such as cc-by-sa-4.0; None for others."""
    match = CREATIVE_COMMONS.search(licence)
    return f"cc-{match[1]}-{match[2]}".lower() if match else None


def _licence(folder: Path) -> str | None:
    """Return the licence that the README of a treebank names."""
    readme = folder / "README.md"
    try:
        match = LICENCE_LINE.search(readme.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return match[1] if match else None


def _release(path: Path) -> str | None:
    match = RELEASE.search(str(path))
    return match[1] if match else None


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))
