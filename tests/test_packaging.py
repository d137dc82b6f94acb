"""What the project says of itself agrees, from pyproject.toml to the citation."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

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
