"""``--keep-heads``, ``--within`` and ``--rules`` of the commands that parse."""

from pathlib import Path

import pytest
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import SENTENCES, conllu, lists_of, written

from treeparse.data.conllu import read_conllu
from treeparse.model import Parser
from treeparse.rules import Rules, read_rules
from treeparse.sentence import Sentence

RULES = "at_most_one:\n  - nsubj\n  - amod\n"
UD = Path(__file__).parents[2] / "configs" / "rules" / "ud.yaml"
PARTLY = (
    "# sent_id = one\n"
    "1\tNoun1\t_\t_\t_\t_\t3\t_\t_\t_\n"
    "2\tNoun2\t_\t_\t_\t_\t_\tamod\t_\tHeads=1,3\n"
    "3\tVerb1\t_\t_\t_\t_\t_\t_\t4:x\tHeads=0,4|a=b\n"
    "4\tVerb2\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    "# sent_id = two\n"
    "1\tVerb1\t_\t_\t_\t_\t0\troot\t_\t_\n"
    "2\tNoun1\t_\t_\t_\t_\t1\tnsubj\t_\t_\n\n"
)
UNFIT = "# sent_id = unfit\n1\tNoun1\t_\t_\t_\t_\t2\t_\t_\t_\n2\tVerb1\t_\t_\t_\t_\t_\t_\t_\tHeads=1\n\n"


def words_of(path: Path) -> list[Sentence]:
    return [sentence.words for sentence in read_conllu(path, require_trees=True)]


@pytest.mark.parametrize("options", [[], ["--keep-heads"], ["--within"], ["--keep-heads", "--within"]], ids=" ".join)
@pytest.mark.parametrize("chunk", [1, 4000])
def test_predict_keeps_what_is_known(
    model: str, parser: Parser, tmp_path: Path, options: list[str], chunk: int
) -> None:
    """As the parser does: known heads and labels, possible heads, or both, and nothing else."""
    source, out = written(tmp_path / "in.conllu", PARTLY), tmp_path / "out.conllu"
    assert run("predict", model, source, "-o", out, *options, "--chunk", chunk) == 0
    known = [sentence.words for sentence in read_conllu(source, require_trees=True, partial=True)]
    parses = parser.parse(known, keep_heads="--keep-heads" in options, within="--within" in options)
    assert [(words.heads, words.labels) for words in words_of(out)] == [(each.heads, each.labels) for each in parses]
    assert "Heads=0,4|a=b\n" in out.read_text(encoding="utf-8")
    first, second = parses
    if "--keep-heads" in options:
        assert first.heads[0] == 3 and first.labels[1] == "amod"
        assert (second.heads, second.labels) == ((0, 1), ("root", "nsubj"))
    if "--within" in options:
        assert first.heads[1] in (1, 3) and first.heads[2] in (0, 4)


def test_within_does_not_look_at_heads(model: str, tmp_path: Path) -> None:
    """HEAD may hold anything."""
    text = PARTLY.replace("\t3\t_\t_\t_\n", "\tx\t_\t_\tHeads=4\n")
    source, out = written(tmp_path / "in.conllu", text), tmp_path / "out.conllu"
    assert run("predict", model, source, "-o", out, "--within") == 0
    assert words_of(out)[0].heads[0] == 4  # pyright: ignore[reportOptionalSubscript]


@pytest.mark.parametrize("command", ["kbest", "sample"])
def test_lists_keep_what_is_known(model: str, parser: Parser, tmp_path: Path, command: str) -> None:
    source, out = written(tmp_path / "in.conllu", PARTLY), tmp_path / "out.conllu"
    assert run(command, model, source, "-k", 5, "-o", out, "--keep-heads", "--within") == 0
    for _, parses in lists_of(out):
        assert all(parse.heads == (0, 1) or (parse.heads[0] == 3 and parse.labels[1] == "amod") for parse in parses)


def test_a_sentence_that_no_tree_fits_is_named_and_nothing_written(model: str, tmp_path: Path, capsys: Capture) -> None:
    source, out = written(tmp_path / "in.conllu", PARTLY + UNFIT + PARTLY), tmp_path / "out.conllu"
    problem = f"{source}:11: sentence unfit: no tree of the model has the heads, labels and possible heads given"
    for command in (["predict"], ["kbest", "-k", "2"], ["sample", "-k", "2"]):
        assert problem in error_of(capsys, *command, model, source, "-o", out, "--keep-heads", "--within")
        assert not out.exists()
    assert run("predict", model, source, "-o", out, "--keep-heads", "--within", "--skip-invalid") == 0
    assert "1 sentence left out" in capsys.readouterr().err
    assert len(words_of(out)) == 4


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--keep-heads", "--format", "text"], "--keep-heads and --within read heads of CoNLL-U, but --format is text"),
        (["--opened", "5"], "--opened bounds the search for trees that satisfy rules: give --rules, too."),
        (["--rules", "missing.yaml"], "missing.yaml: No such file or directory."),
        (["--rules", "RULES", "--decoder", "minimum_risk"], "so that the decoder minimum_risk cannot keep them"),
        (
            ["--rules", "RULES", "--combine", "marginals"],
            "Rules need a tree's log probability to be a sum over its arcs",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    model: str, source: str, tmp_path: Path, capsys: Capture, options: list[str], problem: str
) -> None:
    rules = written(tmp_path / "rules.yaml", RULES)
    given = [rules if option == "RULES" else option for option in options]
    assert problem in error_of(capsys, "predict", model, source, "-o", tmp_path / "out.conllu", *given)
    assert not (tmp_path / "out.conllu").exists()


def test_a_sentence_without_a_projective_tree_is_named_with_its_line(
    model: str, tmp_path: Path, capsys: Capture
) -> None:
    rows = "".join(f"{word}\ta\t_\t_\t_\t_\t{head}\t_\t_\t_\n" for word, head in enumerate((3, 0, 2, 1), 1))
    source, out = written(tmp_path / "in.conllu", f"{PARTLY}{rows}\n"), tmp_path / "out.conllu"
    command = ["predict", model, source, "-o", out, "--keep-heads"]
    assert f"in.conllu:{PARTLY.count(chr(10)) + 1}: no tree of the model has" in error_of(
        capsys, *command, "--decoder", "projective"
    )
    assert run(*command, "--decoder", "nonprojective") == 0


def test_a_label_that_the_model_does_not_know_is_named_with_its_line(
    model: str, source: str, tmp_path: Path, capsys: Capture
) -> None:
    rules = written(tmp_path / "rules.yaml", RULES + "  - subject\n")
    assert run("predict", model, source, "-o", tmp_path / "out.conllu", "--rules", rules) == 2
    assert f"{rules}:4: the label 'subject' is neither one of the model's nor" in capsys.readouterr().err


def broken(path: Path, rules: Rules) -> int:
    return sum(bool(rules.violations(parse)) for _, parses in lists_of(path) for parse in parses)


def test_rules_are_kept_and_the_closing_line_says_so(model: str, tmp_path: Path, capsys: Capture) -> None:
    path, out = written(tmp_path / "rules.yaml", RULES), tmp_path / "out.conllu"
    source = written(tmp_path / "in.conllu", conllu(*SENTENCES[:2], ("a", "b", "Noun1", "Verb1", "c")))
    rules = read_rules(path)
    assert run("predict", model, source, "-o", out) == 0
    before = sum(bool(rules.violations(words)) for words in words_of(out))
    assert before
    capsys.readouterr()
    assert run("predict", model, source, "-o", out, "--rules", path) == 0
    assert not any(rules.violations(words) for words in words_of(out))
    assert f"; {before} sentence{'s' * (before > 1)} broke a rule, {before} mended" in capsys.readouterr().err
    for command in ("kbest", "sample"):
        assert run(command, model, source, "-k", 7, "-o", out) == 0
        assert broken(out, rules)
        capsys.readouterr()
        assert run(command, model, source, "-k", 7, "-o", out, "--rules", path, "--opened", 5000) == 0
        assert not broken(out, rules)
        assert (" drawn accepted" in capsys.readouterr().err) == (command == "sample")


def test_what_is_not_mended_is_counted(model: str, source: str, tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "rules.yaml", "forbidden:\n  - {head: root, dependent: [amod, nsubj]}\n")
    assert run("predict", model, source, "-o", tmp_path / "out.conllu", "--rules", path, "--opened", 3) == 0
    counts = "3 sentences broke a rule, 0 mended, 2 sentences not searched to the end, 1 sentence without such a tree"
    assert f"; {counts}\n" in capsys.readouterr().err
    assert len(words_of(tmp_path / "out.conllu")) == 4


def test_rules_that_ship_go_by_name(
    model: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    by_path, by_name = tmp_path / "path.conllu", tmp_path / "name.conllu"
    assert run("predict", model, source, "-o", by_path, "--rules", UD) == 0
    assert run("predict", model, source, "-o", by_name, "--rules", "ud") == 0
    assert by_name.read_bytes() == by_path.read_bytes()
    capsys.readouterr()
    assert run("predict", model, source, "-o", by_name, "--rules", "usd") == 2
    assert "Unknown file of rules 'usd': choose one of ud; did you mean ud?" in capsys.readouterr().err
    written(tmp_path / "ud", RULES)
    assert read_rules("ud") == read_rules(tmp_path / "ud") != read_rules(UD)
