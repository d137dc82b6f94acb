"""``predict --probabilities``, ``--head-sets``, ``--certain``: what they write is the parser's; files stay valid."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import MULTIWORD, SENTENCES, incidents, trees_as_text, written
from helpers.sentences import learnable_sentences

from treeparse.data import load_treebank
from treeparse.data.annotations import figure
from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.nbest import read_nbest
from treeparse.metrics import conformal_threshold
from treeparse.model import Parse, Parser
from treeparse.model.promises import HeldOut
from treeparse.sentence import Sentence

TAGGED = MULTIWORD.replace("advmod\t_\t_", "advmod\t_\tGloss=now|ArcProb=0.1").replace("id = m", "id = n")


def comments_of(sentence: ConlluSentence) -> dict[str, str]:
    lines = [line[1:].split("=", 1) for line in sentence.text.split("\n") if line.startswith("#") and "=" in line]
    return {key.strip(): value.strip() for key, value in lines}


def misc_of(sentence: ConlluSentence) -> list[dict[str, str]]:
    rows = [row for row in sentence.rows() if row[0].isdecimal()]
    return [dict(item.split("=", 1) for item in row[9].split("|")) for row in rows]


def summed(trees: list[Parse], word: int, head: int, label: str | None) -> float:
    """The probability of an arc by that of all trees of a sentence, whatever its label where none is named."""
    fitting = (p for p in trees if p.heads[word] == head and label in (None, p.labels[word]))
    return sum(math.exp(p.log_prob) for p in fitting)


@pytest.mark.parametrize("name", ["out.conllu", "out.jsonl"])
@pytest.mark.parametrize(
    "command",
    [["kbest"], ["sample", "--temperature", "3"], ["kbest", "--decoder", "projective"], ["sample", "--seed", "4"]],
    ids=" ".join,
)
def test_lists_have_those_of_all_trees(
    model: str, parser: Parser, source: str, tmp_path: Path, command: list[str], name: str
) -> None:
    """By enumeration, which is what a list of all trees is."""
    target = tmp_path / name
    assert run(command[0], "-q", model, source, "-k", "5", "-o", target, "--probabilities", *command[1:]) == 0
    found = [list(nbest.parses) for nbest in read_nbest(target)]
    for parses, all_trees in zip(found[:2], parser.kbest(SENTENCES[:2], 10**4), strict=False):
        for parse in parses:
            for word, (head, label) in enumerate(zip(parse.heads, parse.labels, strict=True)):
                expected = summed(all_trees, word, head, None), summed(all_trees, word, head, label)
                pair = (parse.arc_probs or ())[word], (parse.label_probs or ())[word]
                assert pair == pytest.approx(expected, abs=6e-5)
            assert parse.entropy == pytest.approx(-sum(math.exp(p.log_prob) * p.log_prob for p in all_trees), abs=1e-3)
    bare = tmp_path / f"bare-{name}"
    assert run(command[0], "-q", model, source, "-k", "5", "-o", bare, *command[1:]) == 0
    assert "rob=" not in bare.read_text() and "probs" not in bare.read_text()
    same = [[replace(p, arc_probs=None, label_probs=None, entropy=None) for p in parses] for parses in found]
    assert same == [list(nbest.parses) for nbest in read_nbest(bare)]


def test_those_of_an_older_parse_are_left_out_of_lists(model: str, source: str, tmp_path: Path) -> None:
    parsed, new, old = (tmp_path / name for name in ("parsed.conllu", "new.conllu", "old.conllu"))
    assert run("predict", "-q", model, source, "-o", parsed, "--probabilities") == 0
    for path, target in ((parsed, new), (source, old)):
        assert run("kbest", "-q", model, path, "-k", "3", "-o", target) == 0
    assert new.read_bytes() == old.read_bytes()


def test_they_are_the_parsers(model: str, parser: Parser, source: str, tmp_path: Path) -> None:
    target = tmp_path / "out.conllu"
    assert run("predict", "-q", model, source, "-o", target, "--probabilities") == 0
    for sentence, parse in zip(read_conllu(target), parser.parse(SENTENCES, probabilities=True), strict=True):
        assert (sentence.words.heads, sentence.words.labels) == (parse.heads, parse.labels)
        for entry, arc, labeled in zip(misc_of(sentence), parse.arc_probs or (), parse.label_probs or (), strict=True):
            assert entry.keys() == {"ArcProb", "LabelProb"}
            assert (float(entry["ArcProb"]), float(entry["LabelProb"])) == pytest.approx((arc, labeled), abs=6e-5)
            assert len(entry["ArcProb"]) == len(entry["LabelProb"]) == len("0.9731")
        comments = comments_of(sentence)
        assert float(comments["entropy"]) == pytest.approx(parse.entropy, abs=1e-4)
        assert float(comments["tree_prob"]) == pytest.approx(2.718281828459045**parse.log_prob, rel=1e-3)
    bare = tmp_path / "bare.conllu"
    assert run("predict", "-q", model, source, "-o", bare) == 0
    assert "Prob" not in bare.read_text(encoding="utf-8")


def test_a_second_time_changes_nothing(model: str, tmp_path: Path) -> None:
    source = written(tmp_path / "in.conllu", TAGGED)
    once, twice = tmp_path / "once.conllu", tmp_path / "twice.conllu"
    assert run("predict", "-q", model, source, "-o", once, "--probabilities") == 0
    assert run("predict", "-q", model, once, "-o", twice, "--probabilities") == 0
    assert once.read_bytes() == twice.read_bytes()
    [sentence] = read_conllu(once)
    assert misc_of(sentence)[3].keys() == {"Gloss", "ArcProb", "LabelProb"}
    assert [row[9] for row in sentence.rows() if not row[0].isdecimal()] == ["_", "_"]


ENHANCED = (  # without enhanced arcs the validator refuses empty nodes
    "# sent_id = e\n"
    "# text = dámelo ya\n"
    "1-3\tdámelo\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tda\tdar\tVERB\t_\t_\t0\troot\t0:root\t_\n"
    "2\tme\tyo\tPRON\t_\t_\t1\tiobj\t1:iobj|3.1:iobj\t_\n"
    "3\tlo\tél\tPRON\t_\t_\t1\tobj\t1:obj\t_\n"
    "3.1\tda\tdar\tVERB\t_\t_\t_\t_\t1:conj\tCopyOf=1\n"
    "4\tya\tya\tADV\t_\t_\t1\tadvmod\t3.1:advmod\tGloss=now\n"
    "\n"
)


@pytest.mark.parametrize("command", [["predict"], ["kbest", "-k", "20"], ["sample", "-k", "20"]], ids=" ".join)
def test_official_validator_accepts_what_it_accepted(model: str, tmp_path: Path, command: list[str]) -> None:
    source, target = written(tmp_path / "in.conllu", ENHANCED), tmp_path / "out.conllu"
    assert [str(each) for each in incidents(Path(source))] == []
    source = written(tmp_path / "in.conllu", ENHANCED + MULTIWORD + TAGGED)
    assert run(*command, "-q", model, source, "-o", target, "--drop-empty", "--probabilities") == 0
    assert "Gloss=now|ArcProb=" in target.read_text(encoding="utf-8")
    assert [str(each) for each in incidents(target)] == []


def test_models_by_marginals_have_no_entropy(model: str, source: str, tmp_path: Path) -> None:
    for name, *options in (["predict"], ["sample", "-k", "3"]):
        target = tmp_path / f"{name}.conllu"
        command = [name, "-q", model, model, source, "-o", target, *options, "--probabilities"]
        assert run(*command, "--combine", "marginals") == 0
    for sentence in read_conllu(tmp_path / "predict.conllu"):
        assert "tree_prob" in comments_of(sentence) and "entropy" not in comments_of(sentence)
    for nbest in read_nbest(tmp_path / "sample.conllu"):
        assert all(parse.arc_probs and parse.label_probs and parse.entropy is None for parse in nbest.parses)


def test_small_probabilities_keep_their_digits() -> None:
    assert figure(1.23456789e-40) == "1.23457e-40"


predict = partial(run, "predict", "-q")


@pytest.mark.parametrize("alpha", [0.02, 0.2])
def test_the_sets_are_the_probable_heads_and_that_of_the_parse(
    model: str, parser: Parser, tmp_path: Path, alpha: float
) -> None:
    """As training reads them; the threshold is that of the gold heads' probabilities in the file held out."""
    held_out, new = learnable_sentences(20, seed=8), learnable_sentences(6, seed=9)
    dev = written(tmp_path / "dev.conllu", trees_as_text(held_out))
    source, target = written(tmp_path / "new.conllu", trees_as_text(new)), tmp_path / "out.conllu"
    assert predict(model, source, "-o", target, "--head-sets", str(alpha), "--held-out", dev) == 0
    probs = [prob for sentence in held_out for prob in gold_probs(parser, sentence)]
    threshold = conformal_threshold(probs, alpha)
    found = [sentence.words for sentence in load_treebank(target, partial=True)]
    sizes = set()
    for sentence, parse in zip(found, parser.parse(new), strict=True):
        marginals = parser.distribution(parser.collate([sentence.forms])).arcs.batched.marginals[0].T
        assert sentence.allowed is not None and sentence.heads == parse.heads
        for word, (heads, head) in enumerate(zip(sentence.allowed, parse.heads, strict=True), 1):
            probable = {place for place, prob in enumerate(marginals[word].tolist()) if prob >= threshold}
            assert {*heads} == (probable | {head}) - {word}
            sizes.add(len(heads))
    assert len(sizes) > 1


def gold_probs(parser: Parser, sentence: Sentence) -> list[float]:
    marginals = parser.distribution(parser.collate([sentence.forms])).arcs.batched.marginals[0]
    return [marginals[head, word].item() for word, head in enumerate(sentence.heads or (), 1)]


def test_beside_probabilities_and_of_several_models(model: str, tmp_path: Path) -> None:
    dev = written(tmp_path / "dev.conllu", trees_as_text(learnable_sentences(5, seed=8)))
    source = written(tmp_path / "in.conllu", MULTIWORD.replace("advmod\t_\t_", "advmod\t_\tHeads=3|Gloss=now"))
    options = ["--head-sets", "0.3", "--held-out", dev, "--drop-empty", "--probabilities"]
    for several in ([model], [model, model, "--combine", "marginals"]):
        target = tmp_path / "out.conllu"
        assert predict(*several[:1], *several[1:2], source, *several[2:], "-o", target, *options) == 0
        [sentence] = load_treebank(target, partial=True)
        keys = [[item.split("=")[0] for item in row[9].split("|")] for row in sentence.rows()]
        assert keys == [["_"], *[["ArcProb", "LabelProb", "Heads"]] * 3, ["Gloss", "ArcProb", "LabelProb", "Heads"]]
        assert incidents(target) == []


@pytest.mark.parametrize(
    "options", [[], ["--certain-of", "words"], ["--certain-of", "words", "--certain-delta", "0.3"]]
)
def test_words_that_are_less_certain_are_left_open(
    model: str, parser: Parser, tmp_path: Path, options: list[str]
) -> None:
    """The file is a partial treebank; with sets of heads, too, open words keep their sets."""
    held_out, new = learnable_sentences(40, seed=8), learnable_sentences(12, seed=9)
    dev = written(tmp_path / "dev.conllu", trees_as_text(held_out))
    source, target = written(tmp_path / "new.conllu", trees_as_text(new)), tmp_path / "out.conllu"
    trees = ["--certain", "0.7", "--head-sets", "0.3", "--held-out", dev]
    assert predict(model, source, "-o", target, *trees, *options) == 0
    delta = 0.3 if "--certain-delta" in options else None
    least = HeldOut(parser, held_out).threshold("words" if options else "sentences", 0.7, delta)
    found = [sentence.words for sentence in load_treebank(target, partial=True)]
    parses = parser.parse(new, certain=least)
    assert [(s.heads, s.labels) for s in found] == [parse.certain_tree(least) for parse in parses]
    kept = [head >= 0 for sentence in found for head in sentence.heads or ()]
    assert 0 < sum(kept) < len(kept)
    assert all(sentence.allowed is not None for sentence in found)


def test_a_calibrated_model_keeps_its_promises(model: str, tmp_path: Path) -> None:
    dev = written(tmp_path / "dev.conllu", trees_as_text(learnable_sentences(60, seed=8)))
    source = written(tmp_path / "new.conllu", trees_as_text(learnable_sentences(12, seed=9)))
    assert run("calibrate", "-q", model, dev, "-o", tmp_path / "calibrated") == 0
    for option in ("--certain", "--head-sets"):
        texts = []
        for more in ([], ["--held-out", dev]):
            assert predict(tmp_path / "calibrated", source, "-o", tmp_path / "out.conllu", option, "0.2", *more) == 0
            texts.append((tmp_path / "out.conllu").read_text(encoding="utf-8"))
        assert texts[0] == texts[1]


def test_sets_and_certain_words_that_cannot_be(model: str, source: str, tmp_path: Path, capsys: Capture) -> None:
    for option in ("--head-sets", "--certain"):
        assert "which has none: name by --held-out" in error_of(capsys, "predict", model, source, option, "0.1")
        problem = "must be a share of words above 0 and below 1, got '5%'"
        assert problem in error_of(capsys, "predict", model, source, option, "5%")
    assert "--held-out is for --head-sets and" in error_of(capsys, "predict", model, source, "--held-out", source)
    delta = ["--certain", "0.1", "--certain-delta", "0.1"]
    assert "--certain-delta needs --certain ALPHA and" in error_of(capsys, "predict", model, source, *delta)
    target = str(tmp_path / "out.jsonl")
    problem = "The output format jsonl has no tags, sets of heads or open words: choose conllu."
    assert problem in error_of(capsys, "predict", model, source, "-o", target, "--certain", "0.1")
