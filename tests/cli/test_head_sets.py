"""``treeparse predict --head-sets``: sets of heads in MISC, by a threshold from trees held out."""

from functools import partial
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import MULTIWORD, incidents, trees_as_text, written
from helpers.sentences import learnable_sentences

from treeparse.data import load_treebank
from treeparse.metrics import conformal_threshold
from treeparse.model import Parser
from treeparse.sentence import Sentence

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


def test_mistakes_become_sentences(model: str, source: str, capsys: Capture) -> None:
    for options in (["--head-sets", "0.1"], ["--held-out", source]):
        assert "Sets of heads need both" in error_of(capsys, "predict", model, source, *options)
    problem = "must be a share of words above 0 and below 1, got '5%'"
    assert problem in error_of(capsys, "predict", model, source, "--head-sets", "5%")
