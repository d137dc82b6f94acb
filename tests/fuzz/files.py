"""Files with a few changes: whoever reads one returns what it holds, or says in a sentence what is wrong with it."""

import functools
import re
import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from helpers.parsed_files import MULTIWORD
from helpers.tiny_runs import write_tiny_config
from helpers.vector_files import word2vec
from hypothesis import strategies as st
from udtools import Validator

from fuzz.mutations import Mutation, mutated, mutations
from treeparse import terminal
from treeparse.cli.main import main
from treeparse.corpus.cluster import read_manifest
from treeparse.data.conllu import ConlluSentence, joinable_texts, load_treebank, read_conllu, scan_conllu
from treeparse.data.features.vector_files import read_vectors
from treeparse.data.nbest import NBestList, read_nbest, write_nbest
from treeparse.data.tokenised import read_text
from treeparse.data.validation import TreeCheck
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.objectives.constraints.constraint_files import read_constraints
from treeparse.rules.rule_files import read_rules
from treeparse.sentence import Sentence
from treeparse.training import load_config, train
from treeparse.training.run_directory import read_csv

ROOT = Path(__file__).parents[2]
_FOLDER = TemporaryDirectory()
CORPUS = Path(__file__).parent / "corpus"  # what once failed, in a folder for each format
LOOSE_LINES = re.compile(rb"\r|\n\n\n|\A\n|\A\xef\xbb\xbf")  # which the official validator refuses, and we read
# What the official validator calls errors of lines and of trees; all else is of comments, annotation and white space.
OF_LINES_AND_TREES = {
    *("empty-column", "empty-sentence", "head-self-loop", "invalid-head", "invalid-line", "invalid-utf"),
    *("invalid-word-id", "invalid-word-interval", "misplaced-comment", "misplaced-empty-node", "multiple-roots"),
    *("misplaced-word-interval", "non-tree", "number-of-columns", "overlapping-word-intervals", "unknown-head"),
    *("reversed-word-interval", "word-id-sequence", "word-interval-out"),
}
SENTENCE = Sentence(("A", "dog", "barks"), upos=("DET", "NOUN", "VERB"))
LARGEST = 6000  # bytes of a file to begin with: changes then meet all that a format has


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        suffix: of its name.
        seeds: files without a fault.
        read: reads a file, and checks what follows from that; the error of a faulty one is checked by the caller.
        names_file: whether errors name the file.
    """

    suffix: str
    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[Path], object]
    names_file: bool = True


@dataclass(frozen=True)
class Changed:
    """A file of a format, before the changes, and the changes."""

    format: str
    seed: int
    changes: list[Mutation]

    @property
    def data(self) -> bytes:
        seeds = [*FORMATS[self.format].seeds(), *(path.read_bytes() for path in failed(self.format))]
        return mutated(seeds[self.seed % len(seeds)], self.changes)


def check(example: Changed) -> int:
    check_file(example.format, example.data)
    return 1


def check_file(name: str, data: bytes) -> str | None:
    """Read a file of a format: it is read, or the message says in a sentence what is wrong, which is returned."""
    form = FORMATS[name]
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of doubts that commands print
        path = Path(folder, f"some{form.suffix}")
        path.write_bytes(data)
        told = told_of(lambda: form.read(path))
        if told is not None and form.names_file:
            assert path.name in told, told
        return told


def told_of(call: Callable[[], object]) -> str | None:
    """Call, and return the message of the error that it raises, if any, which must be a sentence of one line."""
    try:
        call()
    except TreeparseError as error:
        told = terminal.message(str(error))
        assert len(told) > 20, told
        assert told == terminal.line(told) and len(told) <= terminal.LONGEST
        assert "Traceback" not in told and "object at 0x" not in told, told
        return told
    return None


def _sentences(path: Path) -> None:
    """A treebank whose sentences are all right is written as it was, and read again as the same."""
    results = list(scan_conllu(path, TreeCheck(single_root=True)))
    faults = [str(fault) for result in results if not isinstance(result, ConlluSentence) for fault in result]
    assert all(path.name in fault for fault in faults)
    told = told_of(lambda: load_treebank(path))
    assert (told is not None) == bool(faults), (faults, told)
    with_partial = told_of(lambda: load_treebank(path, partial=True, single_root=False))
    if not faults:
        assert with_partial is None, with_partial
        sentences = [result for result in results if isinstance(result, ConlluSentence)]
        text = "".join(joinable_texts(s.text for s in sentences))
        assert text.encode() == path.read_bytes()
        again = path.with_suffix(".again")
        again.write_bytes(text.encode())
        assert [each.words for each in read_conllu(again, require_trees=True)] == [each.words for each in sentences]


def _beside_the_validator(path: Path) -> None:
    """What the official validator says of lines and trees, we refuse; and we refuse nothing else."""
    results = list(scan_conllu(path, TreeCheck(single_root=True)))
    faults = [str(result[0]) for result in results if not isinstance(result, ConlluSentence)]
    try:
        found = {each.testid for each in _validator().validate_files([str(path)]).error_tracker}
    except (UnicodeDecodeError, ValueError, AssertionError):  # which its reader raises of such files
        assert faults
        return
    if found & OF_LINES_AND_TREES and not LOOSE_LINES.search(path.read_bytes()):
        assert faults, found
    if faults:
        assert found or not path.read_bytes().strip(), faults


@functools.cache
def _validator() -> Validator:
    return Validator(lang="ud", level=2, output=None)


def _lists(path: Path) -> None:
    """Lists that are read are written and read again as the same."""
    lists = list(read_nbest(path))
    again = path.with_name(f"again{path.suffix}")
    write_nbest(again, lists)

    def listed(lists: Sequence[NBestList]) -> list[Any]:
        return [[(parse.tokens, parse.heads, parse.labels, parse.log_prob) for parse in each.parses] for each in lists]

    assert listed(list(read_nbest(again))) == listed(lists)


def _config(path: Path) -> None:
    """With the treebank that shipped configs lack."""
    load_config(path, ["--data.train", "train.conllu"])


def _model(name: str) -> Format:
    """A folder of a model whose file ``name`` is changed: it parses, or says why not."""

    def read(path: Path) -> None:
        folder = path.with_name("model")
        shutil.copytree(trained_run() / "model", folder)
        shutil.copyfile(path, folder / name)
        parser = Parser.from_pretrained(folder)
        (parse,) = parser.parse([SENTENCE])
        assert len(parse.heads) == len(parse.labels) == 3

    return Format(Path(name).suffix, lambda: [(trained_run() / "model" / name).read_bytes()], read, names_file=False)


@functools.cache
def _treebanks() -> list[bytes]:
    demo = (ROOT / "data" / "demo-dev.conllu").read_bytes()[:LARGEST]
    return [demo[: demo.rindex(b"\n\n") + 2], MULTIWORD.encode(), 2 * MULTIWORD.replace("= m", "= n").encode()]


@functools.cache
def trained_run() -> Path:
    """The folder of a run, whose model reads tags; each process trains it once."""
    config = load_config(write_tiny_config(Path(_FOLDER.name)), ["--model.encoder.tags", "[upos]"])
    return train(config, quiet=True).parent


@functools.cache
def listed(command: str, suffix: str) -> bytes:
    """The output of kbest or sample for demo sentences, as JSON or CoNLL-U by the suffix."""
    source, output = Path(_FOLDER.name, "demo.conllu"), Path(_FOLDER.name, f"{command}{suffix}")
    source.write_bytes(b"\n\n".join((ROOT / "data" / "demo-dev.conllu").read_bytes().split(b"\n\n")[:4]) + b"\n\n")
    assert main([command, "-q", str(trained_run()), str(source), "-k", "3", "-o", str(output)]) == 0
    return output.read_bytes()


def _rules() -> list[bytes]:
    return [
        (ROOT / "configs" / "rules" / "ud.yaml").read_bytes(),
        b"trees: projective\nforbidden:\n- {head: [punct], dependent: [obj]}\n",
    ]


def _constraints() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "configs" / "constraints").iterdir())]


def _vectors() -> list[bytes]:
    rows = {"the": [1.0, -2.5, 0.25], "Straße": [0.0, 1e-8, 3.0], "a b": [1.0, 1.0, 1.0]}
    text = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows.items()).encode()
    del rows["a b"]  # a word of a binary file has no space
    return [text, b"3 3\n" + text, word2vec(rows)]


def _configs() -> list[bytes]:
    own = (trained_run() / "config.yaml").read_bytes()
    shipped = [(ROOT / "configs" / f"{name}.yaml").read_bytes() for name in ("tiny", "linear", "second_order", "mrt")]
    return [own, *shipped]


def _manifests() -> list[bytes]:
    return [b'{"output": "a.conllu", "sentences": 3}\n{"output": "b.conllu", "error": "no"}\n']


FORMATS = {
    "treebank": Format(".conllu", _treebanks, _sentences),
    "treebank beside the validator": Format(".conllu", _treebanks, _beside_the_validator),
    "lists in JSON": Format(".jsonl", lambda: [listed("kbest", ".jsonl")], _lists),
    "samples in JSON": Format(".jsonl", lambda: [listed("sample", ".jsonl")], _lists),
    "lists in CoNLL-U": Format(".conllu", lambda: [listed("kbest", ".conllu")], _lists),
    "text": Format(".txt", lambda: [b"They saw stars .\n\nA dog barks\n"], lambda path: list(read_text(path))),
    "rules": Format(".yaml", _rules, read_rules),
    "constraints": Format(".yaml", _constraints, read_constraints),
    "vectors": Format(".vec", _vectors, lambda path: read_vectors(path, max_vectors=100)),
    "history": Format(".csv", lambda: [(trained_run() / "metrics.csv").read_bytes()], read_csv),
    "manifest": Format(".jsonl", _manifests, read_manifest),
    "config": Format(".yaml", _configs, _config, names_file=False),
    "config of a model": _model("config.json"),
    "vocabulary of a model": _model("vocabulary.json"),
    "weights of a model": _model("model.safetensors"),
}


def failed(name: str) -> list[Path]:
    """The files of a format that once failed."""
    return sorted((CORPUS / name.replace(" ", "-")).glob("*"))


def changed(*formats: str) -> st.SearchStrategy[Changed]:
    """Files of some formats, by default of all, with a few changes."""
    return st.builds(Changed, st.sampled_from(formats or list(FORMATS)), st.integers(0, 11), mutations())
