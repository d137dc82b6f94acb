"""The guide's commands exist, its pictures are its script's own, its links hold; its build runs its code."""

import pkgutil
import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml
from scripts.guide import blocks, pictures

from treeparse.cli import main as cli

PAGES = sorted(blocks.PAGES.rglob("*.md"))
TUTORIALS = [page for page in PAGES if page.parent.name == "tutorials"]
NAMES = [str(page.relative_to(blocks.PAGES)) for page in PAGES]
REFERENCE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.parent.name == "reference")
every_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


@every_page
def test_every_command_of_a_page_has_its_options(page: Path) -> None:
    modules = cli._commands(cli.COMMANDS)
    parser = cli._build_parser(modules)
    for block in blocks.blocks_of(page.read_text(encoding="utf-8")):
        if block.language == "sh":
            lines = block.code.replace("\\\n", " ").splitlines()
            for line in (line for line in lines if line.startswith("treeparse ")):
                command = shlex.split(line.split(" | ")[0].split(" > ")[0])
                assert cli._parse(parser, modules, command[1:]).command == command[1]


@every_page
def test_links_lead_to_files(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (page.parent / link).is_file(), link


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_says_how_it_opens_as_a_notebook(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.endswith(f"`jupytext --to notebook -o {page.stem}.ipynb scripts/guide/pages/tutorials/{page.name}`.\n")
    if "```sh\n" in text.split("```python\n")[0]:  # otherwise jupytext takes the language of the first block
        assert yaml.safe_load(text.split("---")[1]) == {"jupyter": {"jupytext": {"main_language": "python"}}}


def test_no_two_pages_train_into_one_folder() -> None:
    readme = blocks.GUIDE.parents[1] / "README.md"
    commands = re.compile(r"^treeparse (?:self-)?train .*--output (runs/\S+)", re.MULTILINE)
    folders = [set(commands.findall(page.read_text(encoding="utf-8"))) for page in (*TUTORIALS, readme)]
    assert sum(map(len, folders)) == len(set().union(*folders)) > len(TUTORIALS) // 2


def test_every_page_is_in_the_navigation() -> None:
    config = (blocks.GUIDE / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"([\w/]+\.md)$", config, re.MULTILINE)
    assert sorted(listed) == NAMES
    assert yaml.safe_load(config)["theme"]["font"] is False  # which would be loaded from elsewhere


def test_the_pictures_are_those_that_the_script_draws(tmp_path: Path) -> None:
    pictures.main(["--output", str(tmp_path)])
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert drawn == {path.name: path.read_text(encoding="utf-8") for path in pictures.FOLDER.iterdir()}
    shown = {Path(link).name for page in PAGES for link in re.findall(r"\(([^)]+\.svg)\)", page.read_text("utf-8"))}
    assert shown == set(drawn)


def test_modules_of_a_page_are_forgotten(tmp_path: Path) -> None:
    page, before = tmp_path / "page.md", [*sys.path]
    code = "import sys\nsys.path.insert(0, '.')\nopen('mine.py', 'w').close()\nimport mine\n"
    page.write_text(f"```python\n{code}```\n", encoding="utf-8")
    assert not blocks.run_page(page)
    assert "mine" not in sys.modules and sys.path == before


def test_a_page_that_shows_something_else_is_a_fault(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\nprint(2)\n```\n\n```text\n2\n...\n```\n", encoding="utf-8")
    [fault] = blocks.run_page(page)
    assert fault.startswith("page.md:1: shows\n2\n...")
    page.write_text("```python\nprint(1)\nprint(2)\n```\n\n```text\n...\n2\n```\n", encoding="utf-8")
    assert not blocks.run_page(page)
    page.write_text("```python\nprint(1)\n```\n\n```text\n?\n```\n", encoding="utf-8")
    assert not blocks.run_page(page, write=True)
    assert page.read_text(encoding="utf-8").endswith("```text\n1\n```\n")


@pytest.mark.parametrize("name", sorted({*re.findall(r"^::: (\S+)", REFERENCE, re.MULTILINE)}))
def test_the_reference_names_what_exists(name: str) -> None:
    assert pkgutil.resolve_name(name) is not None
