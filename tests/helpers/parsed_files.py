"""What the tests of the commands that parse share: input files, and what stands in the lists that are written."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from udtools import Validator
from udtools.incident import Incident

from treeparse.data.conllu import ConlluSentence
from treeparse.data.nbest import read_nbest
from treeparse.model import Parse, Parser
from treeparse.sentence import Sentence

SENTENCES = [("Noun1", "Adj2", "Verb1"), ("Verb1",), tuple(f"w{word}" for word in range(12)), ("a", "b")]
MULTIWORD = (
    "# newdoc\n"
    "# sent_id = m\n"
    "# text = dámelo ya\n"
    "1-3\tdámelo\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tda\tdar\tVERB\t_\t_\t0\troot\t_\t_\n"
    "2\tme\tyo\tPRON\t_\t_\t1\tiobj\t_\t_\n"
    "3\tlo\tél\tPRON\t_\t_\t1\tobj\t_\t_\n"
    "3.1\tda\tdar\tVERB\t_\t_\t_\t_\t1:conj\t_\n"
    "4\tya\tya\tADV\t_\t_\t1\tadvmod\t_\t_\n"
    "\n"
)


def conllu(*sentences: Sequence[str]) -> str:
    """Sentences without heads, named s1, s2, ..."""
    rows = ("".join(f"{n}\t{form}" + "\t_" * 8 + "\n" for n, form in enumerate(forms, 1)) for forms in sentences)
    return "".join(f"# sent_id = s{number}\n{block}\n" for number, block in enumerate(rows, 1))


def trees_as_text(sentences: Sequence[Sentence]) -> str:
    """Sentences with the trees that they have."""
    blocks = [ConlluSentence.from_forms(s.forms).with_parse(s.heads or (), s.labels or ()) for s in sentences]
    return "".join(block.text for block in blocks)


def written(path: Path, data: str | bytes) -> str:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def lists_of(path: Path) -> list[tuple[str | None, list[Parse]]]:
    return [(nbest.sent_id, list(nbest.parses)) for nbest in read_nbest(path)]


def saved_with(parser: Parser, folder: Path, **settings: object) -> Path:
    """The folder of a model, a copy of the parser with other settings in its config."""
    parser.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))
    return folder


def incidents(path: Path) -> list[Incident]:
    """What the official validator finds, up to level 2."""
    return Validator(lang="ud", level=2, output=None).validate_files([str(path)]).error_tracker


def assert_same(found: list[list[Parse]], expected: list[list[Parse]]) -> None:
    """The same trees; figures within the rounding of single precision, which depends on the batch."""
    for some, others in zip(found, expected, strict=True):
        for one, other in zip(some, others, strict=True):
            assert (one.tokens, one.heads, one.labels) == (other.tokens, other.heads, other.labels)
            figures = one.log_prob, one.score
            assert figures == pytest.approx((other.log_prob, other.score), rel=1e-5, abs=1e-4)
