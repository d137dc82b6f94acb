"""Training on several named treebanks: settings, the draw of an epoch, scores by treebank, and what a model learns."""

import json
import math
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from helpers.broken_runs import break_off
from helpers.trained_runs import equal, rows, weights
from helpers.two_treebanks import NAMES, PREPOSITION, write_two_treebanks

from treeparse.data.batches.mixing import SmoothedDraw
from treeparse.data.conllu import read_conllu
from treeparse.errors import TreeparseError
from treeparse.metrics import TreebankScores, attachment_scores
from treeparse.model import Parser
from treeparse.sentence import Sentence
from treeparse.shipped import shipped_file
from treeparse.training import load_config, train
from treeparse.training.reading import describe_settings
from treeparse.training.release import write_card
from treeparse.training.run_directory import EpochRecord, RunDirectory, best_record, read_csv
from treeparse.training.train_config import TreebankConfig
from treeparse.training.treebanks import load_training_mix, load_treebanks


@pytest.fixture
def both(tmp_path: Path) -> Path:
    return write_two_treebanks(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run over two treebanks, and of their files."""
    folder = tmp_path_factory.mktemp("both")
    train(load_config(write_two_treebanks(folder)), quiet=True)
    return folder


def gold(folder: Path, name: str, part: str = "test") -> list[Sentence]:
    return [sentence.words for sentence in read_conllu(folder / f"{name}-{part}.conllu")]


def las(parser: Parser, sentences: list[Sentence], treebank: str | None) -> float:
    parses = parser.parse(sentences, treebank=treebank)
    return attachment_scores(
        sentences, [s.with_tree(p.heads, p.labels) for s, p in zip(sentences, parses, strict=True)]
    ).las


# ---------------------------------------------------------------- settings


def test_treebanks_are_named_in_a_file_and_by_options(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    settings = {"output": "x", "data": {"treebanks": {"ewt": {"train": "a", "dev": ["b", "c"], "weight": 2}}}}
    path.write_text(yaml.safe_dump(settings))
    assert load_config(path).data.treebanks == {"ewt": TreebankConfig("a", ["b", "c"], 2.0)}
    options = ["--data.treebanks.gum-2.train", "d.conllu", "e f.conllu", "--data.treebanks.gum-2.dev=[g, h]"]
    options += ["--data.treebanks.ewt.weight", "0.5", "--data.treebanks.ewt.dev", "null", "--seed", "3"]
    config = load_config(path, options)
    assert config.seed == 3 and config.data.treebanks == {
        "ewt": TreebankConfig("a", None, 0.5),
        "gum-2": TreebankConfig(["d.conllu", "e f.conllu"], ["g", "h"]),
    }
    path.write_text(config.to_yaml())
    assert load_config(path) == config
    path.write_text("output: x\ndata: {treebanks: {ewt: a.conllu}}\n")
    with pytest.raises(TreeparseError, match=r"data\.treebanks\.ewt must have train"):
        load_config(path, ["--data.treebanks.ewt.weight=2"])
    with pytest.raises(TreeparseError, match=r'Parser key "data\.treebanks'):
        load_config(path)
    alone = load_config(None, ["--output=x", "--data.treebanks.ewt.train=a.conllu"])
    assert alone.data.treebanks == {"ewt": TreebankConfig("a.conllu")}
    shipped = load_config(shipped_file("default"), ["--data.treebanks.ewt.train=a.conllu"])
    assert [*shipped.data.treebanks] == ["ewt"] and shipped.data.train is None


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("", ["nothing to train on", "data.train", "data.treebanks"]),
        ("--data.treebanks.a.train x --data.train y", ["data.treebanks cannot be used with data.train"]),
        ("--data.treebanks.a.train x --data.dev y", ["data.treebanks cannot be used with data.train and data.dev"]),
        ("--data.treebanks.a.b.train x", ["letters, digits, - and _", "'a.b'"]),
        ("--data.treebanks.ä.train x", ["letters, digits, - and _", "'ä'"]),
        ("--data.treebanks.a.dev x", ["data.treebanks", "train"]),
        ("--data.treebanks.a.train x --data.treebanks.a.trian y", ["data.treebanks", "trian"]),
        ("--data.treebanks.a.train x --data.treebanks.a.weight 0", ["data.treebanks.a.weight", "more than 0", "0.0"]),
        ("--data.treebanks.a.train x --data.treebanks.a.weight .inf", ["data.treebanks.a.weight", "finite"]),
        ("--data.treebanks.a.train x --data.treebanks.a.weight much", ["data.treebanks", "much"]),
        ("--data.treebanks.a.train x --data.dev_choice a", ["data.dev_choice", "(none)", "'a'"]),
        ("--data.treebanks.a.train x --data.treebanks.a.dev y --data.dev_choice b", ["data.dev_choice", "(a)", "'b'"]),
        ("--data.treebanks.a.train x --data.treebanks.a.dev y --data.dev_share 0.1", ["data.dev_share"]),
        ("--data.treebanks.a.train x --data.temperature 2", ["data.temperature needs several treebanks"]),
    ],
)
def test_mistakes_in_treebanks_become_sentences(options: str, parts: list[str]) -> None:
    with pytest.raises(TreeparseError) as caught:
        load_config(None, ["--output=x", *options.split()])
    assert [part for part in parts if part not in str(caught.value)] == []


def test_the_help_describes_treebanks() -> None:
    text = " ".join(describe_settings().split())
    assert "--data.treebanks TREEBANKS several treebanks for one model" in text
    assert "--data.treebanks.NAME.train a.conllu, .dev and .weight" in text
    assert "--data.dev_choice DEV_CHOICE the treebank whose dev LAS chooses the best epoch" in text


# ---------------------------------------------------------------- the data of a run


def test_shares_of_the_draw_follow_the_formula() -> None:
    sizes, factors = [900, 90, 10], [1.0, 3.0, 2.0]
    for temperature in (1.0, 2.5):
        shares = [factor * size ** (1 / temperature) for size, factor in zip(sizes, factors, strict=True)]
        expected = [share / sum(shares) * 1000 for share in shares]
        draw = SmoothedDraw(sizes, temperature, 5, factors)
        assert sum(draw.counts()) == 1000
        assert all(abs(count - share) < 1 for count, share in zip(draw.counts(), expected, strict=True))
        taken = draw(0)
        bounds = [0, 900, 990, 1000]
        counts = [sum(low <= index < high for index in taken) for low, high in pairwise(bounds)]
        assert counts == draw.counts()
    assert SmoothedDraw(sizes, 2.5, 5).counts() == SmoothedDraw(sizes, 2.5, 5, [4.0] * 3).counts()


def test_sentences_know_their_treebank_and_come_once_unless_weights_differ(both: Path) -> None:
    said: list[str] = []
    config = load_config(both)
    treebanks = load_treebanks(config, said.append)
    assert [s.treebank for s in treebanks.train_words] == ["content"] * 40 + ["function"] * 30
    assert [s.words.treebank for s in treebanks.dev] == ["content"] * 12 + ["function"] * 12
    assert load_training_mix(config, treebanks, said.append).draw is None and not said
    equal_weights = [f"--data.treebanks.{name}.weight=3" for name in NAMES]
    assert load_training_mix(load_config(both, equal_weights), treebanks, said.append).draw is None
    weighted = load_config(both, ["--data.treebanks.function.weight", "4"])
    draw = load_training_mix(weighted, treebanks, said.append).draw
    assert draw is not None and sum(index < 40 for index in draw(0)) == 18  # 70 * 40 / (40 + 4 * 30) = 17.5
    assert said == ["an epoch draws 18 of 40 sentences of content; 52 of 30 sentences of function"]
    smoothed = load_config(both, ["--data.temperature", "2"])
    draw = load_training_mix(smoothed, treebanks, said.append).draw
    assert draw is not None and sum(index < 40 for index in draw(0)) == round(
        70 * math.sqrt(40) / (math.sqrt(40) + math.sqrt(30))
    )


def test_a_share_is_held_out_of_each(both: Path) -> None:
    options = [f"--data.treebanks.{name}.dev=null" for name in NAMES]
    config = load_config(both, [*options, "--data.dev_share=0.2", "--data.dev_choice=function"])
    treebanks = load_treebanks(config, [].append)
    assert [[s.words.treebank for s in treebanks.dev].count(name) for name in NAMES] == [8, 6]
    assert treebanks.sizes == [32, 24]


# ---------------------------------------------------------------- scores


def test_scores_by_treebank_and_their_mean() -> None:
    def sentences(treebank: str, count: int) -> list[Sentence]:
        return [Sentence(("a", "b"), heads=(0, 1), labels=("root", "x"), treebank=treebank)] * count

    trees = [*sentences("one", 3), *sentences("two", 1)]
    wrong = [trees[0].with_tree((2, 0), ("x", "root")), *trees[1:3], trees[3].with_tree((0, 1), ("root", "y"))]
    for choice, uas, labelled in ((None, 5 / 6, 7 / 12), ("one", 2 / 3, 2 / 3), ("two", 1.0, 0.5)):
        scores = TreebankScores.of(trees, choice)
        scores.update(trees[:2], wrong[:2])
        scores.update(trees[2:], wrong[2:])
        values = {name: float(value) for name, value in scores.compute().items()}
        by_name = {"uas/one": 2 / 3, "las/one": 2 / 3, "uas/two": 1.0, "las/two": 0.5}
        assert values == pytest.approx({"uas": uas, "las": labelled, **by_name})
        scores.reset()
        assert int(scores.counts.sum()) == 0
    bare = [Sentence(("a",), heads=(0,), labels=("_",), treebank="bare")]
    scores = TreebankScores.of([*trees, *bare])
    scores.update([*trees, *bare], [*wrong, *bare])
    assert float(scores.compute()["las"]) == pytest.approx(7 / 12), "a treebank without labels has no LAS"
    together = TreebankScores()
    together.update(trees, wrong)
    assert {name: float(value) for name, value in together.compute().items()} == pytest.approx(
        {"uas": 0.75, "las": 0.625}
    )


def test_an_epoch_logs_each_treebank_and_the_mean_chooses(trained: Path) -> None:
    history = read_csv(trained / "run" / "metrics.csv")
    for record in history:
        by_name = record.dev_treebanks
        assert {*by_name} == {f"{kind}/{name}" for name in NAMES for kind in ("uas", "las")}
        assert record.dev_las == pytest.approx(sum(by_name[f"las/{name}"] for name in NAMES) / 2)
        assert record.dev_uas == pytest.approx(sum(by_name[f"uas/{name}"] for name in NAMES) / 2)
    best = best_record(history)
    parser = Parser.from_pretrained(trained / "run")
    for name in NAMES:
        assert las(parser, gold(trained, name, "dev"), name) == pytest.approx(best.dev_treebanks[f"las/{name}"])
    assert list(trained.glob("run/tensorboard/events*"))


def test_a_line_of_an_epoch_shows_each_treebank() -> None:
    scores = {"uas/a": 0.5, "las/a": 0.25, "uas/b": 0.75, "las/b": 0.5}
    record = EpochRecord(1, 0.5, 0.1, 0.625, 0.375, 10.0, 1.0, dev_treebanks=scores)
    shown = "dev UAS 62.50%   LAS 37.50%   a UAS 50.00%   a LAS 25.00%   b UAS 75.00%   b LAS 50.00%"
    assert shown in str(record)


@pytest.mark.parametrize("linear", [False, True])
def test_one_treebank_may_choose_and_one_may_be_unmeasured(
    both: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, linear: bool
) -> None:
    options = ["--data.dev_choice=function", "--optimization.epochs=2"]
    if linear:
        options = ["--data.dev_choice=function", "--learning.epochs=2", f"--output={tmp_path / 'run'}"]
        for name in NAMES:
            options += [f"--data.treebanks.{name}.{part}={tmp_path}/{name}-{part}.conllu" for part in ("train", "dev")]
    path = shipped_file("linear") if linear else both
    train(load_config(path, options))
    shown = "".join(capsys.readouterr())
    assert f"training on content: {tmp_path}/content-train.conllu, function: {tmp_path}/function-train.conllu" in shown
    assert "by the scores of function" in shown and ("cannot be parsed" in shown) == linear, "UPOS must be there"
    for row in rows(tmp_path / "run"):
        assert row["dev_las"] == row["dev_las/function"] and row["dev_uas"] == row["dev_uas/function"]
        assert 0 < float(row["dev_las/content"]) <= 1
    other = [*options[1:], "--data.treebanks.function.dev=null", f"--output={tmp_path / 'other'}"]
    train(load_config(path, other), quiet=True)
    assert {"dev_las/content"} == {name for name in rows(tmp_path / "other")[0] if name.startswith("dev_las/")}


def test_a_linear_model_draws_no_shares(both: Path) -> None:
    options = ["--data.treebanks.a.train=x", "--data.treebanks.b.train=y", "--data.treebanks.b.weight=2"]
    with pytest.raises(TreeparseError, match=r"whole treebanks alone: leave out .* weights of data\.treebanks"):
        files = [option.replace("=x", f"={both.parent}/content-train.conllu") for option in options]
        files = [option.replace("=y", f"={both.parent}/function-train.conllu") for option in files]
        train(load_config(shipped_file("linear"), [*files, f"--output={both.parent / 'run'}"]), quiet=True)


# ---------------------------------------------------------------- what is learned


def test_opposite_annotations_are_learned_together(trained: Path, both: Path, tmp_path: Path) -> None:
    """By one model that knows the treebanks; the same sentences as one treebank contradict each other."""
    parser = Parser.from_pretrained(trained / "run")
    for name in NAMES:
        assert las(parser, gold(trained, name), name) > 0.97
    other = dict(zip(NAMES, NAMES[::-1], strict=True))
    assert max(las(parser, gold(trained, name), other[name]) for name in NAMES) < 0.6

    settings = yaml.safe_load(both.read_text())
    files = [settings["data"]["treebanks"][name] for name in NAMES]
    settings["data"] |= {"treebanks": {}, "train": [f["train"] for f in files], "dev": [f["dev"] for f in files]}
    both.write_text(yaml.safe_dump(settings))
    train(load_config(both), quiet=True)
    plain = Parser.from_pretrained(tmp_path / "run")
    assert min(las(plain, gold(tmp_path, name), None) for name in NAMES) < 0.7


@pytest.mark.parametrize("algorithm", ["mira", "perceptron", "log_linear"])
def test_linear_models_learn_opposite_annotations(both: Path, tmp_path: Path, algorithm: str) -> None:
    options = [f"--output={tmp_path / 'run'}", f"--learning.algorithm={algorithm}", "--learning.epochs=12"]
    options += ["--model.scorer.bits=16", "--model.scorer.label_bits=12"]
    options += [f"--data.treebanks.{name}.train={tmp_path}/{name}-train.conllu" for name in NAMES]
    train(load_config(shipped_file("linear"), options), quiet=True)
    parser = Parser.from_pretrained(tmp_path / "run")
    for name, other in zip(NAMES, NAMES[::-1], strict=True):
        assert las(parser, gold(tmp_path, name), name) > 0.9 > 0.6 > las(parser, gold(tmp_path, name), other)
        foreign = {label for parse in parser.parse(gold(tmp_path, "content"), treebank=name) for label in parse.labels}
        assert foreign & {"case", "prep"} == {PREPOSITION[name]}


# ---------------------------------------------------------------- resumption, and what a run leaves


@pytest.mark.usefixtures("one_thread")
def test_a_broken_run_ends_with_the_same_bits(both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--optimization.epochs=3", "--data.treebanks.function.weight=2"]
    unbroken = train(load_config(both, [*options, f"--output={tmp_path / 'unbroken'}"]), quiet=True)
    config = load_config(both, options)
    break_off(lambda: train(config, quiet=True), 1, 2, monkeypatch)
    for changed in (["--data.treebanks.function.weight=3"], ["--data.dev_choice=content"]):
        with pytest.raises(TreeparseError, match="cannot resume with other settings or data"):
            train(load_config(both, [*options, *changed]), resume=True, quiet=True)
    settings = yaml.safe_load(both.read_text())
    settings["data"]["treebanks"] = {f"{name}2": files for name, files in settings["data"]["treebanks"].items()}
    (tmp_path / "renamed.yaml").write_text(yaml.safe_dump(settings))
    renamed = [options[0], "--data.treebanks.function2.weight=2"]
    with pytest.raises(TreeparseError, match=r"the sentences of data\.train changed"):
        train(load_config(tmp_path / "renamed.yaml", renamed), resume=True, quiet=True)
    resumed = train(load_config(tmp_path / "run" / "config.yaml", of_run=True), resume=True, quiet=True)
    assert equal(weights(resumed), weights(unbroken))
    same = ("loss", "dev_las", "dev_las/content", "dev_uas/function")
    assert [[row[name] for name in same] for row in rows(tmp_path / "run")] == [
        [row[name] for name in same] for row in rows(tmp_path / "unbroken")
    ]


def test_the_card_tells_of_treebanks(trained: Path) -> None:
    run = RunDirectory(trained / "run")
    text = write_card(trained, run, Parser.from_pretrained(run.model), run.read_history()).read_text()
    assert "It parses as one of the treebanks content, function (`treeparse predict --treebank NAME`)." in text
    assert re.search(r"\| the dev set of function \| \| \d+\.\d\d \| \d+\.\d\d \| \| \|", text)
    assert "- Treebanks: content-train.conllu, function-train.conllu (70 sentences" in text
    assert str(trained) not in text and "train: content-train.conllu" in text
    assert "input without" not in text and "their treebank" not in text


def test_training_starts_from_a_model_with_treebanks(trained: Path, tmp_path: Path) -> None:
    """And adds another treebank to those of the model."""
    files = [f"--data.treebanks.more.{part}={trained}/content-{part}.conllu" for part in ("train", "dev")]
    settings = yaml.safe_load((trained / "both.yaml").read_text())
    settings["data"]["treebanks"] = {}
    path = tmp_path / "more.yaml"
    path.write_text(yaml.safe_dump(settings))
    options = [*files, f"--init_from={trained / 'run'}", f"--output={tmp_path / 'run'}", "--optimization.epochs=4"]
    parser = Parser.from_pretrained(train(load_config(path, options), quiet=True))
    assert parser.treebanks == (*NAMES, "more")
    assert las(parser, gold(trained, "content"), "more") > 0.9


def test_an_encoder_without_columns_is_refused(both: Path) -> None:
    module = "tests_without_columns"
    code = (
        "from dataclasses import dataclass\nfrom treeparse.nn import EncoderConfig\n"
        "@dataclass(frozen=True)\nclass PlainConfig(EncoderConfig):\n    size: int = 3\n"
        "    def module(self, features):\n        raise NotImplementedError\n"
    )
    (both.parent / f"{module}.py").write_text(code)
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(both.parent)
        config = load_config(both, ["--model.encoder", f"{module}.PlainConfig"])
        with pytest.raises(TreeparseError, match=r"data\.treebanks needs an encoder with the setting tags"):
            train(config, quiet=True)


def test_settings_are_plain_data(both: Path) -> None:
    settings = json.loads(json.dumps(load_config(both).to_dict()))
    assert settings["data"]["treebanks"]["content"]["weight"] == 1.0
