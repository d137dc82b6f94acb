"""What commands show on a terminal while they parse."""

import gzip
import re
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from helpers.parsed_files import conllu, written
from helpers.terminal import terminal

from treeparse.cli.main import main
from treeparse.model import Parser

WORDS = [["Noun1", "Verb2"]] * 12


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    """A file of 12 sentences, 24 words: one chunk."""
    return written(tmp_path / "corpus.conllu", conllu(*WORDS))


@pytest.fixture
def gold(tmp_path: Path) -> str:
    """The same with trees."""
    rows = "1\tNoun1\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\tVerb2\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    return written(tmp_path / "gold.conllu", rows * len(WORDS))


def counts(lines: list[str]) -> list[int]:
    """The sentences that each state of the bar shows."""
    return [int(found[1]) for line in lines if (found := re.search(r"(\d+) sentences, [\d,]+ words/s", line))]


def shares(lines: list[str]) -> list[int]:
    """The percentages."""
    return [int(found[1]) for line in lines if (found := re.match(r"(\d+)%\|.*\| \S+ left", line))]


@pytest.mark.parametrize(
    ("command", "columns"), [("predict", 80), ("predict", 0), ("kbest -k 2", 80), ("sample -k 2", 80), ("rank", 80)]
)
def test_the_bar_moves_within_a_chunk(
    command: str, columns: int, model: str, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *options = command.split()
    with terminal(monkeypatch, "stderr", columns) as screen:
        assert main([name, model, corpus, "-o", str(tmp_path / "out"), "--batch-words", "2", *options]) == 0
    *shown, last = screen.lines
    assert counts(shown) == list(range(13))
    assert shares(shown) == pytest.approx([100 * number / 12 for number in range(13)], abs=2)  # of bytes
    assert last.startswith("treeparse: 12 sentences, 24 words, ")


def test_several_files_are_counted(
    model: str, corpus: str, gold: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with terminal(monkeypatch, "stderr") as screen:
        assert main(["predict", model, corpus, gold, "-o", f"{tmp_path}/out/"]) == 0
    assert any(line.endswith("words/s, file 2/2") for line in screen.lines)


def test_input_of_unknown_size_has_no_percentage(
    model: str, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(corpus).read_bytes()
    packed = tmp_path / "corpus.conllu.gz"
    packed.write_bytes(gzip.compress(text))
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text)))
    for source in (str(packed), "-"):
        with terminal(monkeypatch, "stderr") as screen:
            assert main(["predict", model, source, "-o", str(tmp_path / "out"), "--batch-words", "2"]) == 0
        assert counts(screen.lines[:-1]) == list(range(13))
        assert "%" not in screen.text and re.match(r"00:00, 0 sentences, 0 words/s$", screen.lines[0])


def test_sentences_that_are_parsed_again_count_once(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence that no tree fits is left out, and its chunk is parsed anew."""
    good = "1\tNoun1\t_\t_\t_\t_\t_\t_\t_\t_\n2\tVerb2\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    source = written(tmp_path / "partly.conllu", good * 6 + good.replace("root", "nosuch") + good * 6)
    command = ["predict", model, source, "-o", str(tmp_path / "out"), "--batch-words", "2", "--keep-heads"]
    with terminal(monkeypatch, "stderr") as screen:
        assert main([*command, "--skip-invalid"]) == 0
    shown = counts(screen.lines[:-1])
    assert shown == sorted(shown) and shown[-1] == 12


@pytest.mark.parametrize(
    "command", ["evaluate {gold} --model {model}", "suspects {model} {gold}", "render --model {model} {gold} -o {out}"]
)
def test_other_commands_that_parse_show_a_bar(
    command: str, model: str, gold: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with terminal(monkeypatch, "stderr") as screen:
        assert main(command.format(gold=gold, model=model, out=tmp_path / "out").split()) == 0
    assert {0, 100} <= set(shares(screen.lines)) and counts(screen.lines)[-1] == 12


def test_reranking_shows_a_bar(model: str, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = str(tmp_path / "best.jsonl")
    assert main(["kbest", model, corpus, "-k", "2", "-o", lists, "-q"]) == 0
    with terminal(monkeypatch, "stderr") as screen:
        assert main(["rerank", lists, "-o", str(tmp_path / "out")]) == 0
    assert counts(screen.lines[:-1]) == list(range(13))


def test_quiet_commands_show_nothing(model: str, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, "stderr") as screen:
        assert main(["predict", model, corpus, "-o", str(tmp_path / "out"), "-q"]) == 0
    assert screen.text == ""


def test_loading_a_model_is_announced_before_the_bar(model: str, gold: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Parser.from_pretrained

    def load_slowly(folder: str, *, mapped: bool = False) -> Parser:
        screen.wait_for("treeparse: loading the model ...")
        return load(folder, mapped=mapped)

    monkeypatch.setattr(Parser, "from_pretrained", load_slowly)
    with terminal(monkeypatch, "stderr", silence=0) as screen:
        assert main(["evaluate", gold, "--model", model]) == 0
    announced = screen.lines.index("treeparse: loading the model ...")
    assert announced < next(number for number, line in enumerate(screen.lines) if line.startswith("0%|"))
