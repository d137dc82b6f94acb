"""What the project says of itself agrees, from pyproject.toml to the citation."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_extra_is_used() -> None:
    scripts = [ROOT / ".ci" / "run", *(path for path in (ROOT / "scripts").iterdir() if path.is_file())]
    texts = [path.read_text(encoding="utf-8") for path in scripts]
    for extra in PROJECT["optional-dependencies"]:
        used = re.compile(rf"\[{extra}\]|install_treeparse (\w+,)*{extra}\b")
        assert any(map(used.search, texts)), extra


def test_classifiers_name_pythons_that_are_allowed() -> None:
    least = tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))
    named = [re.fullmatch(r"Programming Language :: Python :: (3)\.(\d+)", line) for line in PROJECT["classifiers"]]
    versions = [tuple(map(int, match.groups())) for match in named if match]
    assert versions and min(versions) == least


def test_the_citation_is_complete_and_agrees() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["message"] and citation["authors"]
    assert all(
        {"name"} <= set(author) or {"family-names", "given-names"} <= set(author) for author in citation["authors"]
    )
    assert (citation["title"], citation["version"]) == (PROJECT["name"], PROJECT["version"])
    assert (citation["license"], citation["keywords"]) == (PROJECT["license"], PROJECT["keywords"])
