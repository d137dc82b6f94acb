"""The model of a run as a folder of its own: the parser of the best epoch so far, and its card.

The card says in Markdown, which the hub reads, what the model is, its scores and its training. A run notes the
provenance of its model when it begins.
"""

import json
import math
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import torch
import yaml

from treeparse.data.columns import titles_of
from treeparse.data.outputs import atomic_write, check_folder
from treeparse.errors import TreeparseError
from treeparse.metrics import AttachmentReport
from treeparse.metrics.tags import TAG_SCORES
from treeparse.model import Parser
from treeparse.model.folder import CARD, check_model_folder, file_header, without_header
from treeparse.model.settings import read_settings
from treeparse.sentence import Sentence
from treeparse.shipped import installed_version
from treeparse.training.run_directory import EpochRecord, RunDirectory, best_record, clock

UD_FILE = re.compile(r"([a-z]{2,3})_\w+-ud-\w+\.conllu")  # named by its language
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
    def of(cls, paths: Sequence[Path], sentences: Sequence[Sentence], device: torch.device) -> Self:
        """Return the provenance of a model that is now trained on these sentences of these files on a device."""
        return cls(
            files=tuple(path.name for path in paths),
            sentences=len(sentences),
            words=sum(map(len, sentences)),
            trees=sum(any(head >= 0 for head in sentence.heads or ()) for sentence in sentences),
            licences=tuple(dict.fromkeys(filter(None, (_licence(path.parent) for path in paths)))),
            releases=tuple(dict.fromkeys(match[1] for match in map(RELEASE.search, map(str, paths)) if match)),
            device=device_name(device),
            threads=torch.get_num_threads(),
            versions={
                "treeparse": installed_version(),
                "torch": torch.__version__,
                "Python": platform.python_version(),
            },
            example=everyday_sentence(sentences),
        )

    @classmethod
    def read(cls, run: RunDirectory) -> Self | None:
        """Read the provenance of a run's model; None if its file is missing."""
        if not run.provenance.exists():
            return None
        values = json.loads(run.provenance.read_bytes())
        return read_settings(cls, without_header(values, str(run.provenance)), str(run.provenance))

    def write(self, run: RunDirectory) -> None:
        """Save the provenance of a run's model."""
        atomic_write(run.provenance, json.dumps({**file_header(), **asdict(self)}, ensure_ascii=False, indent=2) + "\n")


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


@dataclass(frozen=True)
class Export:
    """The result of an export.

    Attributes:
        best: the epoch of the model.
        epochs: number of completed epochs.
        folder: the model folder.
        written: false if the folder held this model already and did not change.
    """

    best: EpochRecord
    epochs: int
    folder: Path
    written: bool


def export_model(
    run: RunDirectory, folder: Path | None = None, calibrate: Callable[[Parser], bool] | None = None
) -> Export:
    """Write the model of the best epoch so far into ``folder``, by default the run's own ``model``.

    The run may be finished, killed or still running, which does not change its own result. Another model in ``folder``
    is replaced. The end of training has a function to ``calibrate`` the parser, which returns whether it could; the run
    notes the new settings for later exports.

    Raises:
        TreeparseError: the run's folder is no run, has no complete epoch or has damaged files, or ``folder`` holds
            other files than a model's.
        OSError: a file cannot be read or written.
    """
    check_folder(run.path)
    if not run.checkpoints.is_dir():
        raise TreeparseError(f"{run.path} is no run: it has no folder {run.checkpoints.name}. Name a run's folder.")
    target = run.model if folder is None else folder
    parser, written = run.read_parser(), False
    while True:
        history = run.load_best(parser)
        is_calibrated = calibrate is not None and calibrate(parser)
        if is_calibrated:
            run.write_parser(parser)
        if not _holds(target, parser, with_settings=is_calibrated):
            check_model_folder(target, "model", CARD)
            parser.save_pretrained(target)
            write_card(target, run, parser, history)
            written = True
        # Training may have continued, even to its own export: the written model must not be older than that one.
        if best_record(run.read_history()) == best_record(history):
            return Export(best_record(history), len(history), target, written)


def _holds(folder: Path, parser: Parser, *, with_settings: bool) -> bool:
    """Return whether the folder holds a model of these weights, and of these settings."""
    try:
        model = Parser.from_pretrained(folder)
    except (TreeparseError, OSError):
        return False
    own, weights = parser.merged_weights(), model.merged_weights()
    same = own.keys() == weights.keys() and all(torch.equal(own[name], weights[name]) for name in own)
    return same and (model.config == parser.config or not with_settings)


def write_card(
    folder: Path,
    run: RunDirectory,
    parser: Parser,
    history: Sequence[EpochRecord],
    tests: Mapping[str, AttachmentReport] | None = None,
    *,
    title: str | None = None,
) -> Path:
    """Write the card of a run's model into the model's folder and return its path.

    Args:
        folder: the folder of the model.
        run: the run, whose config and provenance the card shows.
        parser: the run's model.
        history: the run's epochs, at least one.
        tests: scores of the model by the names of the files.
        title: the name of the model; by default the name of the run's folder.

    Raises:
        TreeparseError: one of the run's files is damaged.
    """
    provenance = Provenance.read(run)
    parts = [
        _metadata(provenance),
        f"# {title or run.path.resolve().name}",
        _description(parser),
        _use(parser, provenance),
        "## Scores",
        "\n".join(_scores(history, tests or {})),
        "## Training",
        "\n".join(_training(parser, history, provenance)),
        f"<details><summary>config.yaml</summary>\n\n```yaml\n{_without_folders(run.read_settings())}```\n\n</details>",
    ]
    path = folder / CARD
    atomic_write(path, "\n\n".join(parts) + "\n")
    return path


def _use(parser: Parser, provenance: Provenance | None) -> str:
    """Show how to parse an example of the treebank, or a file if there is no example or the model reads tags."""
    example = () if provenance is None or titles_of(parser.indexer.features.tag_columns()) else provenance.example
    read = "" if example else "from treeparse.data import read_conllu\n"
    words = f"[{json.dumps(example, ensure_ascii=False)}]" if example else 'read_conllu("my-text.conllu")'
    return f"""```python
from treeparse import Parser  # pip install treeparse
{read}
parser = Parser.from_pretrained("THIS FOLDER")  # or its name on the hub
for parse in parser.parse({words}):
    print(parse.heads, parse.labels, parse.log_prob)
```"""


def _metadata(provenance: Provenance | None) -> str:
    """Return the metadata that the hub reads."""
    lines = ["library_name: treeparse", "tags:", "- dependency-parsing", "- treeparse"]
    if provenance is not None:
        matches = [UD_FILE.fullmatch(name) for name in provenance.files]
        languages = sorted({match[1] for match in matches if match})
        lines += ["language:", *(f"- {language}" for language in languages)] if languages else []
        tags = {licence_tag(licence) for licence in provenance.licences}
        if len(tags) == 1 and None not in tags:
            lines.append(f"license: {tags.pop()}")
    return "\n".join(["---", *lines, "---"])


def _description(parser: Parser) -> str:
    config, features = parser.config, parser.indexer.features
    roots = "exactly one word" if config.single_root else "one word or more"
    weights = sum(tensor.numel() for tensor in parser.base_weights().values())
    tags, predicted = titles_of(features.tag_columns()), titles_of(parser.tag_names)
    names = ", ".join(parser.indexer.treebanks)
    treebanks = f" It parses as one of the treebanks {names} (`treeparse predict --treebank NAME`)." if names else ""
    read = f" and their {tags}" if tags else ""
    prediction = f" It predicts {predicted}, too (`treeparse predict --tags`)." if predicted else ""
    return (
        f"A graph-based dependency parser by treeparse: {config.scorer.description(config)} of arcs and "
        f"{len(parser.indexer.labels)} labels, {weights:,} weights. It gives "
        f"probabilities to {config.tree_family.description}, with {roots} under the root. It reads the words of a "
        f"sentence{read}, split as in the treebanks below.{prediction}{treebanks}"
    )


def _scores(history: Sequence[EpochRecord], tests: Mapping[str, AttachmentReport]) -> Iterator[str]:
    best = best_record(history)
    yield "Percent, as the official scorer of the CoNLL 2018 shared task counts, on gold words, punctuation included;"
    yield "text of another kind than the treebank's is parsed less well."
    yield ""
    yield "| | sentences | UAS | LAS | CLAS | whole trees |"
    yield "|:--|--:|--:|--:|--:|--:|"
    if best.dev_uas is not None:
        yield f"| the dev set, which chose the epoch | | {_percent(best.dev_uas)} | {_percent(best.dev_las)} | | |"
    for name in dict.fromkeys(key.partition("/")[2] for key in best.dev_treebanks):
        scores = (best.dev_treebanks.get(f"{kind}/{name}") for kind in ("uas", "las"))
        yield f"| the dev set of {name} | | {' | '.join(map(_percent, scores))} | | |"
    for name, report in tests.items():
        shares = (report.uas, report.las, report.clas, report.complete_match)
        yield f"| {name} | {report.sentences:,} | {' | '.join(map(_percent, shares))} |"
    if best.dev_tags:
        tags = (f"{TAG_SCORES[name]} {100 * share:.2f}" for name, share in best.dev_tags.items())
        yield ""
        yield f"Tags of the dev set: {', '.join(tags)}."


def _percent(share: float | None) -> str:
    return "-" if share is None or math.isnan(share) else f"{100 * share:.2f}"


def _training(parser: Parser, history: Sequence[EpochRecord], provenance: Provenance | None) -> Iterator[str]:
    best, seconds = best_record(history), sum(record.seconds for record in history)
    if provenance is not None:
        trees = "" if provenance.trees == provenance.sentences else f", {provenance.trees:,} of them with trees"
        size = f"{provenance.sentences:,} sentences, {provenance.words:,} words{trees}"
        yield f"- Treebanks: {', '.join(provenance.files)} ({size})"
        if provenance.releases:
            yield f"- Universal Dependencies {', '.join(provenance.releases)}"
        yield f"- Licence of the treebanks: {', '.join(provenance.licences) or 'not known, see the treebanks'}"
    config = parser.config
    if (config.temperature, config.label_temperature) != (1, 1):
        yield f"- Probabilities: temperature {config.temperature} of arcs, {config.label_temperature} of labels"
    yield f"- Time: {clock(seconds)} for {history[-1].epoch} epochs; the model is that of epoch {best.epoch}"
    if provenance is not None:
        threads = f"{provenance.threads} thread{'s' * (provenance.threads != 1)}"
        yield f"- Machine: {provenance.device}, {threads}"
        yield f"- Versions: {', '.join(f'{name} {version}' for name, version in provenance.versions.items())}"
    yield "- Command: `treeparse train --config config.yaml`, with the following as `config.yaml`"


def _without_folders(settings: Mapping[str, Any]) -> str:
    """Return the settings as YAML, with files by their names alone, because paths may reveal private names."""
    data = _without_paths(settings["data"])
    data["treebanks"] = {name: _without_paths(treebank) for name, treebank in data.get("treebanks", {}).items()}
    shown = {**settings, "data": data, "output": Path(settings["output"]).name}
    if shown.get("init_from") is not None:
        shown["init_from"] = Path(shown["init_from"]).name
    return yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)


def _without_paths(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the names of files instead of their paths."""
    shown = {**settings}
    for name in ("train", "dev", "unlabelled", "vectors", "cache"):
        if (paths := shown.get(name)) is not None:
            shown[name] = [Path(path).name for path in paths] if isinstance(paths, list) else Path(paths).name
    return shown
