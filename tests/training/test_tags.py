"""Tags learned beside trees: a run's logs, its model and its resumption, and runs that start from another model."""

from pathlib import Path

import pytest
import torch
from helpers.broken_runs import break_off
from helpers.commands import Capture
from helpers.trained_runs import equal, rows, weights

from treeparse import Parser
from treeparse.data.conllu import load_treebank
from treeparse.data.parses import with_parses
from treeparse.errors import TreeparseError
from treeparse.metrics import tag_scores
from treeparse.training import load_config, train

TAGS = ["--model.tags.upos", "1", "--model.tags.xpos=0.5", "--model.tags.feats=0.5"]
SHORT = ["--optimization.epochs=2"]
UPOS, XPOS, FEATS = 3, 4, 5


def tag(path: Path) -> None:
    """Give words an XPOS that the next word decides, and FEATS that go by the word's own number."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for place, line in enumerate(lines):
        if not line[:1].isdigit():
            continue
        cells, following = line.split("\t"), lines[place + 1].split("\t")
        number = int(cells[1][-1])
        values = {XPOS: f"before-{following[UPOS] if len(following) > 1 else 'end'}"}
        values[FEATS] = "_" if number < 2 else f"Number=N{number // 2}"
        for column, value in values.items():
            cells[column] = value
        lines[place] = "\t".join(cells)
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")


@pytest.fixture
def tagged(tiny_config: Path) -> Path:
    """The tiny config over a treebank with three columns of tags."""
    for name in ("train", "dev"):
        tag(tiny_config.with_name(f"{name}.conllu"))
    return tiny_config


def test_tags_are_learned_and_logged(tagged: Path, capsys: Capture) -> None:
    options = ["--model.tags.feats=1", "--optimization.epochs=8", "--data.batch_words=40"]
    model = train(load_config(tagged, [*TAGS, *options]))
    gold = [sentence.words for sentence in load_treebank(tagged.with_name("dev.conllu"))]
    parses = Parser.from_pretrained(model).parse([s.forms for s in gold])
    scores = tag_scores(gold, with_parses(gold, parses))
    for name, column in (("upos", "upos"), ("xpos", "xpos"), ("ufeats", "feats")):
        values = [value for s in gold for value in getattr(s, column)]
        majority = max(map(values.count, set(values))) / len(values)
        assert majority < 0.65 and scores[name] > majority + 0.3
    history = rows(model.parent)
    best = max(history, key=lambda row: float(row["dev_las"]))
    assert {name: float(best[f"dev_{name}"]) for name in scores} == pytest.approx(scores)
    for row in history:
        means = {name: float(row[f"term/{name}"]) for name in ("TreeLikelihood", "UPOS", "XPOS", "FEATS")}
        total = means["TreeLikelihood"] + means["UPOS"] + 0.5 * means["XPOS"] + means["FEATS"]
        assert float(row["loss"]) == pytest.approx(total)
    assert float(history[-1]["term/XPOS"]) < 0.3 * float(history[0]["term/XPOS"])
    shown = capsys.readouterr().out
    assert f"UPOS {scores['upos']:6.2%}" in shown and "AllTags" in shown
    card = (model / "README.md").read_text(encoding="utf-8")
    assert "It predicts UPOS, XPOS and FEATS, too" in card
    assert f"Tags of the dev set: UPOS {100 * scores['upos']:.2f}, XPOS" in card


def test_a_resumed_run_ends_as_an_unbroken_one(tagged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unbroken = train(load_config(tagged, [*TAGS, *SHORT, "--output", str(tmp_path / "unbroken")]), quiet=True)
    break_off(lambda: train(load_config(tagged, [*TAGS, *SHORT]), quiet=True), 1, 0, monkeypatch)
    resumed = train(load_config(tagged, [*TAGS, *SHORT]), resume=True, quiet=True)
    assert "scorer.tags.columns.feats.linear.weight" in weights(resumed) and equal(weights(resumed), weights(unbroken))
    kept = ("epoch", "loss", "dev_las", "dev_upos", "dev_ufeats", "term/UPOS")
    found, expected = ([[row[name] for name in kept] for row in rows(run.parent)] for run in (resumed, unbroken))
    assert found == expected
    with pytest.raises(TreeparseError, match=r"model\.tags\.upos was 1\.0 and is 2\.0"):
        train(load_config(tagged, [*TAGS, *SHORT, "--model.tags.upos=2"]), resume=True, quiet=True)


def test_what_auto_chose_is_said_and_kept(tagged: Path, tmp_path: Path, capsys: Capture) -> None:
    auto = ["--model.tags.upos=auto", "--model.tags.feats=auto", "--optimization.epochs=1"]
    model = train(load_config(tagged, auto))
    assert "learns to predict UPOS and FEATS, too" in capsys.readouterr().err
    kept = load_config(model.parent / "config.yaml").model.tags
    assert (kept.upos, kept.xpos, kept.feats) == (1.0, 0.0, 1.0)
    assert [*Parser.from_pretrained(model).tag_names] == ["upos", "feats"]
    more = train(load_config(tagged, [*auto, f"--init_from={model}", f"--output={tmp_path / 'more'}"]), quiet=True)
    assert [*Parser.from_pretrained(more).tag_names] == ["upos", "feats"]


def test_a_run_from_another_model(tagged: Path, tmp_path: Path, capsys: Capture) -> None:
    """Its tags are extended, what is not predicted any more is left out, with a word, and what is new learned anew."""
    only = ["--optimization.epochs=1", "--model.tags.upos=1"]
    source = train(load_config(tagged, [*only, "--model.tags.xpos=1"]), quiet=True)
    treebank = tagged.with_name("train.conllu")
    treebank.write_text(treebank.read_text(encoding="utf-8").replace("\tADJ\t", "\tDET\t"), encoding="utf-8")
    options = [*only, "--model.tags.feats=1", f"--init_from={source}", f"--output={tmp_path / 'next'}"]
    # A rate of next to nothing, so that old weights stay where they are.
    model = train(load_config(tagged, [*options, "--optimization.learning_rate=1e-20"]))
    shown = capsys.readouterr().out
    assert "1 new UPOS tag, 3 new FEATS tags; it will not predict XPOS, of which model.tags has no weight" in shown
    before, after = Parser.from_pretrained(source), Parser.from_pretrained(model)
    assert tuple(after.tag_names["upos"]) == (*before.tag_names["upos"], "DET")
    assert after.tag_names.keys() == {"upos", "feats"}
    name = "scorer.tags.columns.upos.weight"
    old, new = (parser.state_dict()[name] for parser in (before, after))
    torch.testing.assert_close(new[: len(old)], old)
    assert len(new) == len(old) + 1


def test_faults_leave_no_run_behind(tiny_config: Path) -> None:
    for options, message in (
        (["--model.tags.xpos=1"], "no XPOS to learn"),
        (["--model.tags.upos=1", "--model.encoder.tags=[upos]"], "reads UPOS, so it cannot learn to predict it"),
        (["--model.tags.lemma=1"], r"--model\.tags\.lemma"),
        (["--model.tags.upos=-1"], "0 or more and finite"),
    ):
        with pytest.raises(TreeparseError, match=message):
            train(load_config(tiny_config, options), quiet=True)
    assert not tiny_config.with_name("run").exists()
