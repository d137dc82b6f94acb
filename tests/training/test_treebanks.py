import json
import re
from pathlib import Path

import pytest
from helpers.commands import Capture
from helpers.sentences import text_of
from helpers.trained_runs import rows

from treeparse.data.conllu import load_treebank
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.model.parser_config import TagWeights
from treeparse.nn import BiLSTMConfig
from treeparse.sentence import Sentence
from treeparse.shipped import shipped_file
from treeparse.training import load_config, train
from treeparse.training.treebanks import (
    hold_out,
    load_training_mix,
    load_treebanks,
    say_columns,
    say_doubts,
    say_missing,
)


def test_a_share_is_held_out_evenly(tmp_path: Path, tiny_config: Path) -> None:
    sentences = load_treebank([tmp_path / "train.conllu"])
    kept, held = hold_out(sentences, 0.25)
    assert [sentences.index(sentence) for sentence in held] == list(range(3, 40, 4))
    assert [sentence for sentence in sentences if sentence not in held] == kept
    for share in (0.1, 0.33, 0.9):
        kept, held = hold_out(sentences, share)
        assert len(held) == int(40 * share) and len(kept) + len(held) == 40
    with pytest.raises(TreeparseError, match=r"data\.dev_share 0\.01 of 40"):
        hold_out(sentences, 0.01)


def test_a_temperature_tells_treebanks_apart(tmp_path: Path, tiny_config: Path) -> None:
    said: list[str] = []
    both = [str(tmp_path / "train.conllu"), str(tmp_path / "dev.conllu")]
    options = ["--data.train", json.dumps(both), "--data.dev=null", "--data.dev_share=0.25"]
    assert load_treebanks(load_config(tiny_config, options), said.append).sizes == [39]
    options += ["--data.temperature", "4"]
    found = load_treebanks(load_config(tiny_config, options), said.append)
    assert (found.sizes, len(found.train), len(found.dev)) == ([30, 9], 39, 13)
    assert [sentence.source for sentence in found.train] == [both[0]] * 30 + [both[1]] * 9
    draw = load_training_mix(load_config(tiny_config, options), found, said.append).draw
    assert draw is not None and sum(place < 30 for place in draw(0)) == 22  # 2.3403 and 1.7321 as shares of 39


@pytest.mark.parametrize(
    ("config", "options", "reason"),
    [
        ("linear", [], "model.trees projective lack"),
        ("ge", [], "model.trees projective lack"),
        ("second_order", [], "model.trees siblings lack"),
        ("fast", ["--model.decoder=projective"], "model.decoder projective leaves out"),
        ("linear", ["--model.trees=nonprojective"], None),
        ("fast", [], None),
    ],
)
def test_arcs_that_no_parse_will_have_are_counted(config: str, options: list[str], reason: str | None) -> None:
    crossing = Sentence(("a",) * 4, heads=(0, 1, 1, 2), labels=("root", "x", "x", "x"))
    said: list[str] = []
    files = ["--data.train=train.conllu", "--data.dev=dev.conllu", "--output=run"]
    say_doubts(load_config(shipped_file(config), [*files, *options]), [crossing, crossing], said.append)
    assert [line.partition(" sentences")[0] for line in said] == (
        [] if reason is None else [f"crossing arcs, which {reason}: 2 in 2 training"]
    )


@pytest.mark.parametrize("linear", [False, True])
def test_missing_labels_are_said_and_the_best_epoch_is_that_of_the_best_heads(
    tiny_config: Path, tmp_path: Path, capsys: Capture, *, linear: bool
) -> None:
    dev, train_file = tmp_path / "dev.conllu", tmp_path / "train.conllu"
    dev.write_text(without_label(dev.read_text("utf-8"), ""), "utf-8")
    train_file.write_text(without_label(train_file.read_text("utf-8"), "adj0"), "utf-8")
    options = [f"--data.train={train_file}", f"--data.dev={dev}", f"--output={tmp_path / 'run'}"]
    config = load_config(shipped_file("linear"), [*options, "--learning.epochs=3"]) if linear else None
    model = train(config or load_config(tiny_config))
    history = rows(model.parent)
    best = max(history, key=lambda row: float(row["dev_uas"]))
    assert float(best["dev_uas"]) > 0 and {row["dev_las"] for row in history} == {""}
    shown = capsys.readouterr().out
    assert f"best dev UAS {float(best['dev_uas']):.2%} in epoch {best['epoch']} of 3" in shown
    (missing,) = re.findall(r"data\.train: (\d+) of \d+ words with a head have no label", shown)
    assert int(missing) > 0 and "without any label, its UAS chooses the model" in shown
    assert "LAS" not in shown.split("without any label")[1] and "best so far" in shown


def test_a_treebank_without_its_text_is_noted() -> None:
    """As some are shipped: every form is _. A few underscores are words."""
    said: list[str] = []
    stripped, whole = Sentence(("_",) * 4), Sentence(("a", "b", "c", "d"))
    say_missing([whole, stripped], [whole] * 9 + [Sentence(("a", "_", "_", "d"))], said.append)
    assert len(said) == 1 and said[0].startswith("data.train: 4 of 8 words have the form _: was the treebank shipped")


def test_the_tags_that_a_model_reads_or_could_read_are_said() -> None:
    tagged = [Sentence(("a", "b"), upos=("X", "Y"), feats=("_", "_"), heads=(0, 1), labels=("root", "dep"))]
    bare = [Sentence(("a", "b"), upos=("_", "_"), heads=(0, 1), labels=("root", "dep"))]
    plain = Parser.build(ParserConfig(encoder=BiLSTMConfig(min_count=1)), tagged)
    reading = Parser.build(ParserConfig(encoder=BiLSTMConfig(min_count=1, tags=("upos", "feats"))), tagged)
    predicting = Parser.build(ParserConfig(encoder=BiLSTMConfig(min_count=1), tags=TagWeights(upos=0.1)), tagged)
    said: list[str] = []
    for parser, sentences in ((plain, tagged), (reading, tagged), (plain, bare), (predicting, tagged)):
        say_columns(parser, sentences, said.append)
    remedy, reads, learns = said
    assert remedy.startswith("data.train has UPOS, but the model reads the words alone: --config tagged reads UPOS and")
    assert reads.startswith("the model reads UPOS and FEATS besides the words: ")
    assert learns.startswith("the model reads the words alone and learns to predict UPOS, too (model.tags); --config")


def without_label(text: str, form: str) -> str:
    """The CoNLL-U without the labels of words whose form begins so."""
    rows = [line.split("\t") for line in text.split("\n")]
    return "\n".join("\t".join([*r[:7], "_", *r[8:]] if len(r) > 1 and r[1].startswith(form) else r) for r in rows)


def test_training_on_the_dev_set_is_refused_unless_asked_for(tiny_config: Path) -> None:
    """Short sentences do not count, for they recur in any text."""
    words = [Sentence(tuple(f"w{number}x{word}" for word in range(8)), upos=("X",) * 8) for number in range(6)]
    long = [sentence.with_tree([0, *range(1, 8)], ["root"] + ["dep"] * 7) for sentence in words]
    short = [Sentence(("a", "b"), upos=("X", "X")).with_tree([0, 1], ["root", "dep"])] * 9
    for name, sentences in (("train", long[:3]), ("dev", [*long[:3], *long[5:]])):
        tiny_config.with_name(f"{name}.conllu").write_text(text_of([*sentences, *short]), encoding="utf-8")
    with pytest.raises(TreeparseError, match=r"3 of 4 sentences of data\.dev with 8 words or more are in data\.train"):
        load_treebanks(load_config(tiny_config), print)
    assert load_treebanks(load_config(tiny_config, ["--data.train_on_dev=true"]), print).dev
    tiny_config.with_name("dev.conllu").write_text(text_of([*long[2:], *short]), encoding="utf-8")
    assert load_treebanks(load_config(tiny_config), print).dev
