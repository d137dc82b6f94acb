"""Pretrained models in a folder or on the Hugging Face Hub: their download, files, architecture, tokenizer and weights.

treeparse runs no code from them and reads no weights but safetensors.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from treeparse.data.features.subwords import SpecialSubwords
from treeparse.errors import TreeparseError
from treeparse.json_files import from_json
from treeparse.nn.huggingface import (
    UNLIMITED,
    architecture_of,
    config_of,
    library,
    library_faults,
    model_arguments,
    quiet,
)

CONFIG = "config.json"
# The files to download from the Hub: no pickled weights, and no code.
PATTERNS = ["config.json", "model.safetensors", "model-*.safetensors", "model.safetensors.index.json"]
PATTERNS += ["tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"]
PATTERNS += ["sentencepiece.bpe.model", "spiece.model", "spm.model"]


def snapshot(
    name: str,
    revision: str | None,
    patterns: Sequence[str],
    is_whole: Callable[[Path], bool],
    error_of: Callable[[str], TreeparseError],
) -> Path:
    """Return the folder of a repository's files; a complete copy in the cache is used without network access.

    Args:
        name: ``organisation/name``.
        revision: a branch, tag or commit; None for the main branch.
        patterns: names of the files to download.
        is_whole: whether a folder has all files that are needed.
        error_of: makes the error from the hub's message if the download fails.
    """
    from huggingface_hub import snapshot_download  # slow to import

    options: dict[str, Any] = {"revision": revision or None, "allow_patterns": [*patterns]}
    try:
        cached = Path(snapshot_download(name, local_files_only=True, **options))
        if is_whole(cached):
            return cached
    except Exception:  # no copy in the cache, which the library reports by several errors
        pass
    try:
        return Path(snapshot_download(name, local_files_only=False, **options))
    except Exception as error:
        raise error_of(first_line(error)) from error


def first_line(error: Exception) -> str:
    """The first line of the hub's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:300]


def _folder(name: str) -> Path:
    return Path(os.path.expandvars(name)).expanduser()


def public_name(name: str) -> str:
    """Return the name of a pretrained model as others may read it: of a folder, without the path to it."""
    folder = _folder(name)
    return folder.resolve().name if name and folder.is_dir() else name


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model with its files in ``folder``; ``revision`` is its commit on the Hub, "" for a local model."""

    name: str
    revision: str
    folder: Path

    @classmethod
    def find(cls, name: str, revision: str) -> "Pretrained":
        """Return the model in the folder ``name``, or else the one on the Hub, from its cache if possible.

        Raises ``TreeparseError`` if there is no such model.
        """
        if not name:
            raise TreeparseError(
                "encoder.model must not be empty: name a model's folder, or a model on the Hugging Face Hub."
            )
        folder = _folder(name)
        if folder.is_dir():
            if revision:
                raise TreeparseError(
                    f"encoder.revision must be empty for a folder ({folder}), got {revision!r:.100}: leave it out."
                )
            return cls(name, "", folder)
        if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
            raise TreeparseError(
                f"There is no folder {str(folder)!r:.200} (encoder.model), and the Hugging Face Hub has no such names."
            )
        folder = snapshot(name, revision, PATTERNS, _is_whole, lambda text: _no_model(name, text))
        return cls(name, folder.name, folder)

    def architecture(self) -> dict[str, Any]:
        """Return the settings in the model's ``config.json``, with all defaults."""
        path = self.folder / CONFIG
        try:
            config = from_json(path.read_bytes())
        except FileNotFoundError as error:
            raise self._unusable(f"it has no {CONFIG}") from error
        except (OSError, ValueError) as error:
            raise self._unusable(f"its {CONFIG} cannot be read: {error}") from error
        if not isinstance(config, dict):
            raise self._unusable(f"its {CONFIG} must be a mapping")
        try:
            return architecture_of(config)
        except TreeparseError as error:
            raise self._unusable(str(error)) from error

    def tokenizer(self) -> tuple[dict[str, Any], SpecialSubwords, int]:
        """Return the data of the ``tokenizer.json``, the special subwords and the tokenizer's limit of subwords.

        The limit is 0 for a tokenizer without one.
        """
        with quiet(), self._problems("its tokenizer cannot be read"):
            tokenizer: Any = library().AutoTokenizer.from_pretrained(
                self.folder, local_files_only=True, trust_remote_code=False
            )
        if not tokenizer.is_fast:
            raise self._unusable("its tokenizer has no fast version (tokenizer.json)")
        content = tokenizer.backend_tokenizer.to_str()
        plain = tokenizer.backend_tokenizer.from_str(content)  # a copy
        plain.no_truncation()
        plain.no_padding()
        before, after = self._special(plain)
        ids = (tokenizer.unk_token_id, tokenizer.mask_token_id, tokenizer.pad_token_id, 0)
        unknown = next(number for number in ids if number is not None)
        padding = 0 if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        limit = tokenizer.model_max_length if tokenizer.model_max_length < UNLIMITED else 0
        return json.loads(content), SpecialSubwords(before, after, unknown, padding), int(limit)

    def _special(self, tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the special subwords that the tokenizer adds before and after a sentence."""
        for word in ("a", "1", "."):
            inner, whole = (
                tokenizer.encode([word], is_pretokenized=True, add_special_tokens=s).ids for s in (False, True)
            )
            for start in range(len(whole)):
                if inner and whole[start : start + len(inner)] == inner:
                    return tuple(whole[:start]), tuple(whole[start + len(inner) :])
        raise self._unusable("its tokenizer has no subword for 'a', '1' or '.'")

    def weights(self, architecture: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the weights by their names in a model of this architecture; raise if one is missing."""
        config = config_of(architecture)
        with quiet(), self._problems("its weights cannot be read"):
            model, loading = library().AutoModel.from_pretrained(
                self.folder,
                config=config,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
                **model_arguments(config),
            )
        if missing := sorted(loading["missing_keys"]):
            raise self._unusable(f"its weights lack {', '.join(missing[:3])}{', ...' if missing[3:] else ''}")
        return model.float().state_dict()

    def _unusable(self, problem: str) -> TreeparseError:
        return TreeparseError(f"The model {self.name!r:.200} cannot be used: {problem}.")

    def _problems(self, problem: str) -> AbstractContextManager[None]:
        """Return a context that makes a library's error, about a file, an error of this model."""
        return library_faults(lambda text: self._unusable(f"{problem} ({text})"))


def _is_whole(folder: Path) -> bool:
    return (folder / CONFIG).exists() and any(folder.glob("*.safetensors"))


def _no_model(name: str, text: str) -> TreeparseError:
    return TreeparseError(
        f"encoder.model is {name!r:.200}, which is not a folder and cannot be downloaded from the Hugging Face Hub "
        f"({text}): name a folder with the model's files, or download them on a machine with a network by hf download "
        f"{name:.200}."
    )
