"""What a run's model comes from, beside its config: its treebanks, with their licences, and the machine."""

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
from treeparse.errors import TreeparseError
from treeparse.model.storage import file_header, from_plain, upgraded
from treeparse.sentence import Sentence
from treeparse.setting_fields import added_setting
from treeparse.version import installed_version

CPUINFO = Path("/proc/cpuinfo")
# How the names that licences have in treebanks are written on the Hugging Face hub.
CREATIVE_COMMONS = re.compile(r"CC[ -](BY(?:-NC)?(?:-SA|-ND)?)[ -](\d\.\d)", re.IGNORECASE)
LICENCE_LINE = re.compile(r"^License:\s*(.+?)\s*$", re.MULTILINE)  # of the README of a UD treebank
SHORTEST, LONGEST = 4, 8  # words of the card's example
EVERYDAY = 10  # sentences, at least, that have each of its words
RELEASE = re.compile(r"ud-treebanks-v(\d+\.\d+)")


@dataclass(frozen=True)
class Origin:
    """What a model comes from.

    Attributes:
        files: the names of the training files.
        sentences: number of training sentences.
        words: number of their words.
        trees: number of training sentences of which some head is known.
        licences: of the treebanks, as far as their folders say.
        releases: of Universal Dependencies, as far as the names of folders say.
        device: cpu or cuda, and its name.
        threads: of the CPU.
        versions: of treeparse, torch and Python.
        example: the words of a training sentence that the card shows; none where it shows no sentence.
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
    example: tuple[str, ...] = added_setting((), before=())

    @classmethod
    def of(cls, files: Sequence[str | Path], sentences: Sequence[Sentence], device: str | None) -> Self:
        """That of a model which is now trained on the sentences of these files on that device."""
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
        """The text from which :meth:`from_json` makes an equal one."""
        return json.dumps({**file_header(), **asdict(self)}, ensure_ascii=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> Self:
        """The origin that :meth:`to_json` wrote. Raises where it did not."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise TreeparseError(f"{where} is damaged ({error}): remove it, and the card does without.") from error
        return from_plain(cls, upgraded(data, where) if isinstance(data, dict) else data, where)


def everyday_sentence(sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """The words of a short training sentence, for the card: that whose rarest word is in the most sentences.

    Every word of it is in `EVERYDAY` sentences at least, so that it tells nothing of any one text; none if there is no
    such sentence.
    """
    counts = Counter(word for sentence in sentences for word in {*sentence.forms})
    short = (s.forms for s in sentences if SHORTEST <= len({*s.forms}) <= len(s) <= LONGEST)
    best = max(short, key=lambda forms: min(counts[word] for word in forms), default=())
    return best if min((counts[word] for word in best), default=0) >= EVERYDAY else ()


def device_name(device: torch.device) -> str:
    """The processor or the GPU, by the name that the system has for it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines() if CPUINFO.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def licence_tag(licence: str) -> str | None:
    """What the hub calls a Creative Commons licence: cc-by-sa-4.0; None for others."""
    found = CREATIVE_COMMONS.search(licence)
    return f"cc-{found[1]}-{found[2]}".lower() if found else None


def _licence(folder: Path) -> str | None:
    """What the README of a treebank says of its licence."""
    readme = folder / "README.md"
    try:
        found = LICENCE_LINE.search(readme.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return found[1] if found else None


def _release(path: Path) -> str | None:
    found = RELEASE.search(str(path))
    return found[1] if found else None


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))
