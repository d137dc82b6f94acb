"""Every work that the package, its scripts and the README cite stands in the list of references."""

import re
from pathlib import Path

import pytest

from treeparse import references

ROOT = Path(__file__).parents[1]
TEXTS = [ROOT / "README.md"] + [
    path
    for folder in ("treeparse", "scripts", "configs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".md", ".yaml")
]
ENTRIES = [" ".join(entry.split()) for entry in re.split(r"\n(?! )", references.__doc__ or "")]
SHORT_NAME = re.compile(r"(?<![\w`])\[([A-Z]{2,3}|Exp|KBest|Lec|Root|Samp|Unb)\]")
AUTHORS = re.compile(  # the first one, and the year
    r"\b(?!By |In |After |See )([A-Z][\w-]+)(?:,? (?:and )?[A-Z][\w-]+)*(?: et al\.)?,? \(?((?:19|20)\d\d)\b"
)
NO_AUTHORS = {"CoNLL", "EWT"}


def short_names() -> set[str]:
    return {entry[1 : entry.index("]")] for entry in ENTRIES if entry.startswith("[")}


def prose(path: Path) -> str:
    """The text of a file; of Python, docstrings and comments, about."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    return "\n".join([*re.findall(r'"""(.*?)"""', text, re.DOTALL), *re.findall(r"(?<=# ).*", text)])


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_cited_is_listed(path: Path) -> None:
    text = " ".join(prose(path).split())
    assert set(SHORT_NAME.findall(text)) <= short_names()
    for author, year in AUTHORS.findall(text):
        if author not in NO_AUTHORS:
            assert any(author in entry and year in entry for entry in ENTRIES), f"{author} {year} is no reference"


def test_the_list_is_found_by_the_patterns() -> None:
    assert short_names() == {"DM", "Exp", "GTH", "KBest", "Lec", "MTT", "Root", "Samp", "Unb"}
    assert SHORT_NAME.findall("as in [MTT] §3 and ([Exp]; list[T])") == ["MTT", "Exp"]
    assert AUTHORS.findall("Kool et al. 2019, and Davison and Hinkley (1997)") == [
        ("Kool", "2019"),
        ("Davison", "1997"),
    ]
