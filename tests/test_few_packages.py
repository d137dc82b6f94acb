"""What works where treeparse was installed without the packages that it needs, and what is said of the rest."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers.parsers import random_parser

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


def test_distributions_need_three_packages() -> None:
    assert printed(NEEDED - FEW, DISTRIBUTIONS).count("[[-1, 0, 1, 2]]") == 3


def test_parsers_need_five_more(tmp_path: Path) -> None:
    random_parser().save_pretrained(tmp_path)
    program = (
        f"from treeparse import Parser; print(Parser.from_pretrained({str(tmp_path)!r}).parse([['a', 'b']])[0].heads)"
    )
    assert printed(NEEDED - FEW - FOR_PARSERS, program) in ("(0, 1)\n", "(2, 0)\n")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "from treeparse import Parser",
            "treeparse.Parser needs the package safetensors, which is not installed",
        ),
        ("from treeparse.training import train", "treeparse.training.train needs the package pytorch-lightning"),
        ("from treeparse.__main__ import main; assert main() == 2", "The command treeparse needs the package tqdm"),
    ],
)
def test_what_is_missing_is_one_sentence(program: str, message: str) -> None:
    told = f"""
import contextlib, io
said = io.StringIO()
with contextlib.redirect_stderr(said):
    try:
        {program}
    except ImportError as error:
        said.write(str(error))
print(said.getvalue())
"""
    said = printed(NEEDED - FEW, told)
    assert message in said and "pip install" in said and "Traceback" not in said and said.count("\n") <= 2
