"""Parsers whose trees score parts of three words: training, every command, and what they refuse."""

import csv
import itertools
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.commands import Capture
from helpers.parsed_files import SENTENCES, conllu, written
from helpers.parsers import CONFIG, TRAINING, random_parser
from helpers.served import served

from treeparse.cli.main import main
from treeparse.data.conllu import read_conllu
from treeparse.data.nbest import read_nbest
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser, PartScores, ScorerOutput
from treeparse.names import COMBINATIONS, Combination
from treeparse.objectives import (
    Entropy,
    HeadSelection,
    KBestRisk,
    MaxMargin,
    MeanField,
    MinimumRisk,
    Objective,
    SampledRisk,
    TreeLikelihood,
)
from treeparse.training import load_config, train
from treeparse.trees import DISTRIBUTIONS, distribution_named

CROSSING: str = "nonprojective_siblings"  # without sums
KINDS: list[str] = [
    name for name in [*DISTRIBUTIONS] if distribution_named(name).tree_family.part_kinds and name != CROSSING
]
every_kind = pytest.mark.parametrize("trees", KINDS)
OBJECTIVES = [TreeLikelihood(), MaxMargin(), MinimumRisk(), SampledRisk(), KBestRisk(), Entropy()]


def parser_of(trees: str) -> Parser:
    """A parser of random weights, those of parts included."""
    return random_parser(replace(CONFIG, trees=trees, part_size=8))


@pytest.fixture(params=KINDS)
def parser(request: pytest.FixtureRequest) -> Parser:
    return parser_of(request.param)


@pytest.fixture
def model(parser: Parser, tmp_path: Path) -> str:
    parser.float().save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


@torch.no_grad()
def test_scores_of_trees_by_their_words(parser: Parser) -> None:
    """A tree's score is the sum over its words of arcs, of siblings, and of grandparents; labels are normalised."""
    batch = parser.collate(TRAINING[:4])
    p, scores = parser.distribution(batch), parser.scorer(batch)
    others = [part.of_arcs() for part in scores.others if isinstance(part, PartScores)]
    samples = p.sample((20,), generator=torch.Generator().manual_seed(1))
    found = p.base.score(samples.heads)
    for sample, item in itertools.product(range(20), range(4)):
        heads = samples.heads[sample, item, : int(batch.lengths[item]) + 1].tolist()
        total = sum(float(scores.arcs[item, head, word]) for word, head in enumerate(heads) if word)
        for word in range(1, len(heads)):
            head = heads[word]
            between = [x for x in range(min(head, word) + 1, max(head, word)) if heads[x] == head]
            sibling = min(between, key=lambda x: abs(x - word), default=head)
            total += float(others[0][item, head, word, sibling])
            if head and len(others) > 1:
                total += float(others[1][item, head, word, heads[head]])
        assert float(found[sample, item]) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: type(objective).__name__)
def test_parts_learn_by_every_objective_of_whole_trees(parser: Parser, objective: Objective) -> None:
    parser.loss(parser.collate(TRAINING[:6]), objective).backward()
    for name, weights in parser.scorer.named_parameters():
        if name.startswith("parts."):
            assert weights.grad is not None and weights.grad.isfinite().all() and weights.grad.any()


@every_kind
def test_training_on_crossing_arcs(trees: str, tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    """A sentence whose tree the parser cannot build is learned from in part, and measured; training says so."""
    arcs = [(0, "root"), (1, "x"), (1, "x"), (2, "x")]  # the arc from word 2 to word 4 crosses that to word 3
    words = (f"{word}\ta\t_\tX\t_\t_\t{head}\t{label}\t_\t_" for word, (head, label) in enumerate(arcs, 1))
    lines = "\n".join(words) + "\n\n"
    for name in ("train", "dev"):
        with (tmp_path / f"{name}.conllu").open("a", encoding="utf-8") as file:
            file.write(lines)
    options = [f"--model.trees={trees}", "--model.part_size=4", "--optimization.epochs=2"]
    model = train(load_config(tiny_config, options))
    said = f"crossing arcs, which model.trees {trees} lack: 1 in 1 training sentences"
    assert said in " ".join(capsys.readouterr().out.split())
    with (tmp_path / "run" / "metrics.csv").open(encoding="utf-8") as file:
        assert all(0 < float(record["dev_loss"]) < 100 for record in csv.DictReader(file))
    trained = Parser.from_pretrained(model)
    assert trained.config.trees == trees
    assert all(weights.any() for name, weights in trained.named_parameters() if name.startswith("scorer.parts."))


def test_a_first_order_model_begins_a_second_order_one(tiny_config: Path, tmp_path: Path) -> None:
    first = train(load_config(tiny_config, ["--model.trees=projective", "--optimization.epochs=1"]), quiet=True)
    options = ["--model.trees=siblings", f"--init_from={first}", "--optimization.epochs=1"]
    second = train(load_config(tiny_config, [*options, f"--output={tmp_path / 'second'}"]), quiet=True)
    assert Parser.from_pretrained(second).config.trees == "siblings"
    options = ["--model.trees=siblings", "--model.part_size=3", f"--init_from={second}"]
    with pytest.raises(TreeparseError, match=r"model.part_size is 64 there and 3 here"):
        train(load_config(tiny_config, [*options, f"--output={tmp_path / 'third'}"]), quiet=True)


def test_commands_agree(model: str, parser: Parser, tmp_path: Path) -> None:
    """Best trees, lists, samples and probabilities of one model; a server's parses."""
    source = written(tmp_path / "in.conllu", conllu(*SENTENCES))
    options = ["--device", "cpu", "-q"]
    assert main(["predict", model, source, "-o", str(tmp_path / "best.conllu"), *options]) == 0
    assert main(["kbest", model, source, "-k", "4", "-o", str(tmp_path / "list.jsonl"), *options]) == 0
    sample = ["sample", model, source, "-k", "4", "--without-replacement", "-o", str(tmp_path / "some.jsonl")]
    assert main([*sample, *options]) == 0
    assert main(["rerank", str(tmp_path / "list.jsonl"), "-o", str(tmp_path / "chosen.conllu"), "-q"]) == 0
    assert main(["rank", model, source, "-o", str(tmp_path / "rank.tsv"), *options]) == 0
    best = [sentence.words for sentence in read_conllu(tmp_path / "best.conllu")]
    lists, samples = ([*read_nbest(tmp_path / name)] for name in ("list.jsonl", "some.jsonl"))
    for words, listed, drawn in zip(best, lists, samples, strict=True):
        assert (words.heads, words.labels) == (listed.parses[0].heads, listed.parses[0].labels)
        log_probs = [parse.log_prob for parse in listed.parses]
        assert log_probs == sorted(log_probs, reverse=True)
        assert all(parse.log_prob <= log_probs[0] for parse in drawn.parses)
    with served({"model": Parser.from_pretrained(model)}) as server:
        answer = server.process(conllu(*SENTENCES)).result
    assert [line for line in answer.splitlines() if line[:1].isdigit()] == [
        line for line in (tmp_path / "best.conllu").read_text().splitlines() if line[:1].isdigit()
    ]


@pytest.mark.parametrize("how", COMBINATIONS)
def test_ensembles(how: Combination) -> None:
    parsers = [parser_of("siblings"), random_parser(replace(CONFIG, trees="siblings", part_size=5, arc_size=9))]
    parses = Ensemble(parsers, combine=how).parse(TRAINING[:4])
    assert all(parse.heads.count(0) == 1 for parse in parses)
    with pytest.raises(TreeparseError, match="the first has trees: siblings"):
        Ensemble([parsers[0], parser_of("second_order")])


def test_head_selection_has_nothing_to_say_of_parts(parser: Parser) -> None:
    with pytest.raises(TreeparseError, match=r"HeadSelection scores arcs alone, but .* trees score arcs and siblings"):
        parser.loss(parser.collate(TRAINING[:2]), HeadSelection())


def test_other_trees_are_not_searched(model: str, parser: Parser, tmp_path: Path, capsys: Capture) -> None:
    with pytest.raises(TreeparseError, match="The decoder nonprojective searches among trees that score arcs alone"):
        replace(parser.config, decoder="nonprojective")
    source = written(tmp_path / "in.conllu", conllu(*SENTENCES))
    assert main(["predict", model, source, "--decoder", "nonprojective", "--device", "cpu"]) == 2
    assert "use the decoder 'best'" in capsys.readouterr().err


def test_a_scorer_without_the_parts_of_the_trees(parser: Parser) -> None:
    batch = parser.collate(TRAINING[:2])
    scores = parser.scorer(batch)
    with pytest.raises(TreeparseError, match=r"returns 0 kinds of part besides arcs: set ScorerOutput.others"):
        parser.distribution(batch, ScorerOutput(scores.arcs, scores.labels))


@pytest.mark.parametrize("objective", [MaxMargin(), MeanField(), MeanField(HeadSelection(), rounds=2)])
def test_parts_learn_without_sums(objective: Objective) -> None:
    parser = parser_of(CROSSING)
    parser.loss(parser.collate(TRAINING[:6]), objective).backward()
    weights = dict(parser.scorer.named_parameters())["parts.siblings.weight"]
    assert weights.grad is not None and weights.grad.isfinite().all() and weights.grad.any()


def test_a_parser_without_sums(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    """It trains and parses; what needs probabilities is refused in a sentence."""
    options = [f"--model.trees={CROSSING}", "--optimization.epochs=2", "--objective=treeparse.objectives.MeanField"]
    model = str(train(load_config(tiny_config, options), quiet=True))
    source, options = str(tmp_path / "dev.conllu"), ["--device", "cpu", "-q"]
    for decoder in ("best", "minimum-risk"):
        assert main(["predict", model, source, "-o", str(tmp_path / decoder), "--decoder", decoder, *options]) == 0
        assert main(["check", str(tmp_path / decoder)]) == 0
    parses = Parser.from_pretrained(model).parse(TRAINING[:3])
    assert all(math.isnan(parse.log_prob) and math.isfinite(parse.score) for parse in parses)
    capsys.readouterr()
    assert main(["predict", model, source, "-o", str(tmp_path / "out.jsonl"), *options]) == 2
    assert "has no log probability" in capsys.readouterr().err and not (tmp_path / "out.jsonl").exists()
    assert main(["render", "--model", model, source, "-o", str(tmp_path / "out.html"), *options]) == 0
    assert "the best tree" in (tmp_path / "out.html").read_text(encoding="utf-8")
    assert main(["kbest", model, source, "-k", "2", *options]) == 2
    assert "Lists of the k best trees are not implemented for nonprojective sibling trees" in capsys.readouterr().err
    for command in (["sample", "-k", "2"], ["predict", "--probabilities"], ["rank"]):
        assert main([command[0], model, source, *command[1:], *options]) == 2
        assert "nonprojective sibling trees" in capsys.readouterr().err
    with pytest.raises(TreeparseError, match="no probabilities, which the objective TreeLikelihood needs: choose"):
        train(load_config(tiny_config, [f"--model.trees={CROSSING}", f"--output={tmp_path / 'other'}"]), quiet=True)
