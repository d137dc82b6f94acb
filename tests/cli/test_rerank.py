"""``treeparse rerank``: the chosen parses, whole lists, one's own scorers, a sentence for every fault."""

from pathlib import Path

import pytest
from helpers.commands import Capture, error_of
from helpers.parsed_files import MULTIWORD, incidents, lists_of, written

from treeparse.cli.main import main
from treeparse.data.conllu import read_conllu
from treeparse.data.nbest import read_nbest
from treeparse.rerank import ExpectedAccuracy, rerank

LAST = "def last(nbest):\n    return range(len(nbest.parses))\n"


def run(*arguments: str | Path | int) -> int:
    return main(["rerank", *map(str, arguments)])


@pytest.fixture
def lists(model: str, source: str, tmp_path: Path) -> Path:
    """Eight trees of each of four sentences, as JSONL; beside them the same as CoNLL-U."""
    for name in ("best.conllu", "best.jsonl"):
        options = ["-k", "8", "--without-replacement", "--temperature", "9", "-q", "-o", str(tmp_path / name)]
        assert main(["sample", model, source, *options]) == 0
    return tmp_path / "best.jsonl"


@pytest.mark.parametrize("metric", ["las", "uas"])
def test_the_trees_of_highest_expected_scores(lists: Path, tmp_path: Path, metric: str) -> None:
    expected = [nbest.parses[0] for nbest in rerank(read_nbest(lists), ExpectedAccuracy(metric))]  # type: ignore[arg-type]
    assert [p.heads for p in expected] != [nbest.parses[0].heads for nbest in read_nbest(lists)]
    for path in (lists, lists.with_suffix(".conllu")):
        assert run(path, "--mbr", metric, "-o", tmp_path / "out.conllu", "-q") == 0
        found = [sentence.words for sentence in read_conllu(tmp_path / "out.conllu")]
        assert [(s.heads, s.labels) for s in found] == [(p.heads, p.labels) for p in expected]
        assert main(["check", str(tmp_path / "out.conllu")]) == 0


def test_expected_las_is_the_default(lists: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run(lists, "-o", tmp_path / "one.conllu") == 0
    assert capsys.readouterr().err.startswith("treeparse: 4 sentences, ")
    assert run(lists, "--mbr", "las", "--weights", "auto", "-o", tmp_path / "two.conllu") == 0
    assert (tmp_path / "one.conllu").read_bytes() == (tmp_path / "two.conllu").read_bytes()


@pytest.mark.parametrize("name", ["out.jsonl.gz", "out.conllu"])
def test_whole_lists_of_several_files(lists: Path, tmp_path: Path, name: str) -> None:
    assert run(lists, lists.with_suffix(".conllu"), "--lists", "-o", tmp_path / name, "-q") == 0
    found = lists_of(tmp_path / name)
    assert [sent_id for sent_id, _ in found] == ["s1", "s2", "s3", "s4", "s1+2", "s2+2", "s3+2", "s4+2"]
    for (_, parses), nbest in zip(found, [*read_nbest(lists)] * 2, strict=True):
        scores = [parse.score for parse in parses]
        assert scores == sorted(scores, reverse=True)
        assert {(p.heads, p.labels, p.log_prob) for p in parses} == {
            (p.heads, p.labels, p.log_prob) for p in nbest.parses
        }


def test_all_else_of_conllu_is_kept(model: str, tmp_path: Path) -> None:
    source, best, target = written(tmp_path / "in.conllu", MULTIWORD), tmp_path / "best.conllu", tmp_path / "out.conllu"
    assert main(["kbest", model, source, "-k", "8", "-q", "-o", str(best)]) == 0
    assert run(best, "-o", target, "-q", "--drop-empty") == 0
    assert incidents(target) == []
    before, after = (list(read_conllu(path)) for path in (Path(source), target))
    for one, other in zip(before, after, strict=True):
        kept = [row[:6] + row[9:] for row in one.rows() if "." not in row[0]]
        assert kept == [row[:6] + row[9:] for row in other.rows()]
        assert one.sent_id == other.sent_id
        comments = [line for line in one.text.splitlines() if line.startswith("#")]
        assert comments == [line for line in other.text.splitlines() if line.startswith("#")]


def test_a_scorer_of_ones_own(lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "reversing.py", LAST)
    monkeypatch.chdir(tmp_path)
    assert run(lists, "--scorer", "reversing.last", "--lists", "-o", "out.jsonl", "-q") == 0
    for found, before in zip(read_nbest(tmp_path / "out.jsonl"), read_nbest(lists), strict=True):
        assert [p.heads for p in found.parses] == [p.heads for p in before.parses[::-1]]
    assert run(lists, "--scorer", "reversing.last", "--mbr", "uas", "--lists", "-o", "risk.jsonl", "-q") == 0
    expected = rerank(read_nbest(lists), ExpectedAccuracy("uas", scorer=lambda nbest: range(len(nbest.parses))))
    found = [nbest.parses for nbest in read_nbest(tmp_path / "risk.jsonl")]
    assert found == [nbest.parses for nbest in expected]


def test_faults_are_sentences(lists: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "out.conllu"
    target.write_text("old", encoding="utf-8")
    plain = written(tmp_path / "plain.conllu", "# sent_id = s\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    broken = written(tmp_path / "broken.jsonl", lists.read_text(encoding="utf-8")[:-9])
    faults = {
        (plain,): "every tree of an n-best list must have a comment # rank",
        (broken,): "broken.jsonl:4: the line must be JSON",
        (str(lists), "--output-format", "jsonl"): "without --lists the output is CoNLL-U",
        (str(lists), "--scorer", "flat"): "must be the dotted path of a function or class",
        (str(lists), "--scorer", "math.sin", "--weights", "auto"): "give that too, or leave it out",
    }
    for arguments, problem in faults.items():
        assert problem in error_of(capsys, "rerank", *arguments, "-o", target)
        assert target.read_text(encoding="utf-8") == "old"
    assert "folder/ is a folder: name a file" in error_of(capsys, "rerank", lists, "-o", f"{tmp_path}/folder/")
    assert {path.stem for path in tmp_path.iterdir()} == {"best", "broken", "in", "out", "plain"}
