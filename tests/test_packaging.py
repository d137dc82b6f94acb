"""What the project says of itself agrees; what works without some packages, and in a read-only installation."""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from helpers.parsers import random_parser
from helpers.unprivileged import make_read_only, run_as_nobody

import treeparse
from treeparse import shipped
from treeparse.shipped import every_name, shipped_file, shipped_model

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, HATCH = SETTINGS["project"], SETTINGS["tool"]["hatch"]


def test_every_extra_is_used() -> None:
    scripts = [path for path in (ROOT / "scripts").rglob("*") if path.suffix in ("", ".py") and path.is_file()]
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / ".ci" / "run", *scripts)]
    for extra in PROJECT["optional-dependencies"]:
        used = re.compile(rf"\[{extra}\]|install_treeparse (\w+,)*{extra}\b")
        assert any(map(used.search, texts)), extra


def test_classifiers_name_pythons_that_are_allowed() -> None:
    least = tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))
    named = [re.fullmatch(r"Programming Language :: Python :: (3)\.(\d+)", line) for line in PROJECT["classifiers"]]
    versions = [tuple(map(int, match.groups())) for match in named if match]
    assert versions and min(versions) == least


def test_a_wheel_holds_what_goes_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that a checkout has is found where the wheel has it, in the package."""
    names = every_name()
    assert {"rules/ud", "constraints/ud", "default"} <= set(names)
    for source, target in HATCH["build"]["targets"]["wheel"]["force-include"].items():
        shutil.copytree(ROOT / source, tmp_path / target)
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "treeparse" / "shipped.py"))
    assert every_name() == names
    assert all(shipped_file(name).is_relative_to(tmp_path) for name in names)
    model = shipped_model("en")
    assert model is not None and model.is_relative_to(tmp_path)


def test_the_citation_is_complete_and_agrees() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["message"] and citation["authors"]
    assert all(
        {"name"} <= set(author) or {"family-names", "given-names"} <= set(author) for author in citation["authors"]
    )
    assert (citation["title"], citation["version"]) == (PROJECT["name"], PROJECT["version"])
    assert (citation["license"], citation["keywords"]) == (PROJECT["license"], PROJECT["keywords"])


PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BROUGHT = {"tokenizers"}  # by transformers
NEEDED = {re.split(r"[\[>=<]", each)[0].replace("-", "_") for each in PROJECT["dependencies"]}
MODULES = {"PyYAML": "yaml"}  # whose names differ from the package's
FEW = {"torch", "numpy", "numba"}
FOR_PARSERS = {"safetensors", "tqdm", "conllu", "jsonargparse", "PyYAML"}
WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""
DISTRIBUTIONS = """
import torch
from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF, SecondOrderCRF, SiblingCRF
from treeparse.objectives import TreeLikelihood
scores = torch.zeros(1, 4, 4, requires_grad=True)
others = torch.zeros(1, 4, 4, 4)
for p in (NonProjectiveCRF(scores), ProjectiveCRF(scores), SiblingCRF(scores, others)):
    p.entropy().sum().backward()
    print(p.sample().shape, p.topk(2).heads.shape, LabeledCRF(p, torch.zeros(1, 4, 4, 2)).mode.heads.tolist())
"""


def printed(blocked: set[str], program: str) -> str:
    """What a program prints in a process that has not these packages."""
    names = {MODULES.get(name, name) for name in blocked | BROUGHT}
    command = [sys.executable, "-c", WITHOUT.format(blocked=names) + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_packages_are_named_as_the_project_names_them() -> None:
    assert FEW | FOR_PARSERS < NEEDED


def test_parsers_need_five_more(tmp_path: Path) -> None:
    random_parser().save_pretrained(tmp_path)
    program = (
        f"from treeparse import Parser; print(Parser.from_pretrained({str(tmp_path)!r}).parse([['a', 'b']])[0].heads)"
    )
    assert printed(NEEDED - FEW - FOR_PARSERS, program) in ("(0, 1)\n", "(2, 0)\n")


MISSING = {
    "from treeparse import Parser": "treeparse.Parser needs the package safetensors, which is not installed",
    "from treeparse.training import train": "treeparse.training.train needs the package pytorch-lightning",
    "from treeparse.__main__ import main; assert main() == 2": "The command treeparse needs the package tqdm",
}
TOLD = """
import contextlib, io
said = io.StringIO()
with contextlib.redirect_stderr(said):
    try:
        {program}
    except ImportError as error:
        said.write(str(error))
print(" ".join(said.getvalue().splitlines()))
"""


def test_distributions_need_three_packages_and_what_is_missing_is_one_sentence() -> None:
    told = "".join(TOLD.format(program=program) for program in MISSING)
    shown = printed(NEEDED - FEW, told + DISTRIBUTIONS)
    assert shown.count("[[-1, 0, 1, 2]]") == 3
    for said, message in zip(shown.splitlines(), MISSING.values(), strict=False):
        assert message in said and "pip install" in said and "Traceback" not in said


PROGRAM = """
import os, sys
from treeparse.cli.main import main
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
train = "train --config config.yaml --output run --data.train train.conllu --data.dev dev.conllu"
for command in (
    f"{train} -q --optimization.epochs 1",  # because Lightning logs what it found
    "predict run/model dev.conllu -o parsed.conllu",
    "kbest run/model dev.conllu -k 3 -o best.conllu",
):
    code = main(command.split())
    if code:
        sys.exit(code)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder below none that is closed to other users."""
    with tempfile.TemporaryDirectory(prefix="treeparse-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.slow
def test_a_container_trains_parses_and_lists(folder: Path, tiny_config: Path) -> None:
    """Kernels that this installation has compiled are compiled in the copy; others are compiled for the process."""
    site, work = folder / "site", folder / "work"
    shutil.copytree(Path(treeparse.__file__).parent, site / "treeparse")
    make_read_only(site)
    work.mkdir()
    work.chmod(0o777)
    for name in ("config.yaml", "train.conllu", "dev.conllu"):
        shutil.copy(tiny_config.with_name(name), work)
    done = run_as_nobody(["-W", "error", "-c", PROGRAM], work, {"PYTHONPATH": str(site)})
    assert done.returncode == 0, done.stderr
    # Matplotlib, where it is installed, is imported by a library of ours.
    assert all(line.startswith(("treeparse: ", "Matplotlib ")) for line in done.stderr.splitlines()), done.stderr
    sentences = (work / "dev.conllu").read_text(encoding="utf-8").count("\n\n")
    assert (work / "parsed.conllu").read_text(encoding="utf-8").count("\n\n") == sentences
    assert (work / "best.conllu").read_text(encoding="utf-8").count("# rank = 1\n") == sentences
    assert {path.name for path in work.iterdir()} == {
        *("config.yaml", "train.conllu", "dev.conllu", "run", "parsed.conllu", "best.conllu")
    }
    if sys.platform == "linux":
        assert (work / "run").stat().st_uid != site.stat().st_uid or site.stat().st_uid != 0
