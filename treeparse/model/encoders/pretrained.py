"""Pretrained models in a folder or on the Hugging Face Hub: their files, architecture, tokenizer and weights.

No code of theirs is run, and no weights are read but safetensors.
"""

import json
import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from treeparse.data.features.subwords import SpecialSubwords
from treeparse.errors import TreeparseError
from treeparse.model.folder.snapshots import snapshot
from treeparse.nn.huggingface import UNLIMITED, architecture_of, config_of, library_faults, model_arguments, quiet

CONFIG = "config.json"
# What is taken from the Hub: no weights that would have to be unpickled, and no code.
PATTERNS = ["config.json", "model.safetensors", "model-*.safetensors", "model.safetensors.index.json"]
PATTERNS += ["tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"]
PATTERNS += ["sentencepiece.bpe.model", "spiece.model", "spm.model"]


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model whose files lie in ``folder``; of one on the Hub ``revision`` is the commit, else it is ""."""

    name: str
    revision: str
    folder: Path

    @classmethod
    def find(cls, name: str, revision: str) -> "Pretrained":
        """The model in a folder of that name, or else on the Hub, whose cache is used where the files are there.

        Raises a sentence where there is none.
        """
        if not name:
            raise TreeparseError("encoder.model is empty: name a model's folder, or one on the Hugging Face Hub.")
        folder = Path(os.path.expandvars(name)).expanduser()
        if folder.is_dir():
            if revision:
                raise TreeparseError(f"encoder.revision is {revision!r:.100}, but {folder} is a folder: leave it out.")
            return cls(name, "", folder)
        if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
            raise TreeparseError(f"There is no folder {str(folder)!r:.200} with a model: see encoder.model.")
        found = _downloaded(name, revision)
        return cls(name, found.name, found)

    def architecture(self) -> dict[str, Any]:
        """The settings of its ``config.json``, with all defaults."""
        path = self.folder / CONFIG
        try:
            config = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise self._unusable(f"it has no {CONFIG}") from error
        except (OSError, ValueError, RecursionError) as error:
            raise self._unusable(f"its {CONFIG} cannot be read: {error}") from error
        if not isinstance(config, dict):
            raise self._unusable(f"its {CONFIG} holds no mapping")
        try:
            return architecture_of(config)
        except TreeparseError as error:
            raise self._unusable(str(error)) from error

    def tokenizer(self) -> tuple[dict[str, Any], SpecialSubwords, int]:
        """What its tokenizer's ``tokenizer.json`` holds, its special subwords, and how many subwords it says to read.

        The last is 0 where it does not say.
        """
        from tokenizers import Tokenizer
        from transformers import AutoTokenizer

        with quiet(), self._problems("its tokenizer cannot be read"):
            found: Any = AutoTokenizer.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)
        if not found.is_fast:
            raise self._unusable("its tokenizer has no fast form, as of a tokenizer.json")
        content = found.backend_tokenizer.to_str()
        plain = Tokenizer.from_str(content)
        plain.no_truncation()
        plain.no_padding()
        before, after = self._special(plain)
        ids = (found.unk_token_id, found.mask_token_id, found.pad_token_id, 0)
        unknown = next(number for number in ids if number is not None)
        padding = 0 if found.pad_token_id is None else found.pad_token_id
        limit = found.model_max_length if found.model_max_length < UNLIMITED else 0
        return json.loads(content), SpecialSubwords(before, after, unknown, padding), int(limit)

    def _special(self, tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The subwords that the model wants in front of a sentence and behind it."""
        for word in ("a", "1", "."):
            inner, whole = (
                tokenizer.encode([word], is_pretokenized=True, add_special_tokens=s).ids for s in (False, True)
            )
            for start in range(len(whole)):
                if inner and whole[start : start + len(inner)] == inner:
                    return tuple(whole[:start]), tuple(whole[start + len(inner) :])
        raise self._unusable("its tokenizer has no subword for a, 1 or the full stop")

    def weights(self, architecture: Mapping[str, Any]) -> dict[str, Tensor]:
        """The weights, by their names in a model of that architecture; raises where one is missing."""
        from transformers import AutoModel

        config = config_of(architecture)
        with quiet(), self._problems("its weights cannot be read"):
            model, loading = AutoModel.from_pretrained(
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
        """What a library finds wrong with a file, in a sentence."""
        return library_faults(lambda text: self._unusable(f"{problem} ({text})"))


def _downloaded(name: str, revision: str) -> Path:
    """The folder of a model of the Hub."""
    return snapshot(name, revision, PATTERNS, _is_whole, lambda text: _no_model(name, text))


def _is_whole(folder: Path) -> bool:
    return (folder / CONFIG).exists() and any(folder.glob("*.safetensors"))


def _no_model(name: str, text: str) -> TreeparseError:
    return TreeparseError(
        f"encoder.model is {name!r:.200}, but there is no such folder, and the model cannot be had from the Hugging "
        f"Face Hub ({text}): name a folder with its files, or get them where there is a network by hf download "
        f"{name:.200}."
    )
