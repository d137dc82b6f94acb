"""Linear models: steps of learning against dense feature vectors, training, every command, and what they refuse."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from helpers.commands import Capture
from helpers.sentences import learnable_sentences, text_of
from torch import Tensor

from treeparse.cli.commands.weights import label_weights, part_weights
from treeparse.cli.main import main
from treeparse.data.conllu import read_conllu
from treeparse.errors import TreeparseError
from treeparse.kernels.linear_updates import WeightedParts, feature_vectors
from treeparse.model import Parser, ParserConfig
from treeparse.model.linear_scorer import LinearScorer, nodes_of
from treeparse.model.parser_config import LinearConfig
from treeparse.names import Algorithm
from treeparse.sentence import Sentence
from treeparse.shipped import shipped_file
from treeparse.training import load_config, train
from treeparse.training.linear_model import LinearLearner
from treeparse.training.train_config import LinearLearningConfig
from treeparse.trees import DISTRIBUTIONS, distribution_named

TRAINING = learnable_sentences(40, seed=1)
BITS = 14
SCORER = LinearConfig(bits=BITS, label_bits=10)
every_trees = pytest.mark.parametrize("trees", [*DISTRIBUTIONS])
every_algorithm = pytest.mark.parametrize("algorithm", get_args(Algorithm))


def learner_of(trees: str, **settings: object) -> LinearLearner:
    """A learner after a few steps, so that its weights are not 0."""
    config = ParserConfig(trees=trees, scorer=SCORER)
    parser = Parser.build(config, TRAINING)
    learner = LinearLearner(parser, LinearLearningConfig(**{"k": 1, **settings}))  # pyright: ignore[reportArgumentType]
    stream = torch.Generator().manual_seed(2)
    for name, weights in learner.weights.items():
        learner.weights[name] = torch.randn(weights.shape, generator=stream) / 4
    return learner


class DenseParts:
    """The feature vectors ``(cells, 2**bits)`` of all parts of one sentence, of each kind."""

    def __init__(self, learner: LinearLearner, sentence: Sentence) -> None:
        self.batch = learner.parser.collate([sentence])
        self.size, scorer = len(sentence) + 1, learner.scorer
        self.shapes = [(self.size,) * 2, *((self.size,) * 3 for _ in learner.kinds)]
        lengths = self.batch.lengths
        masks = [torch.ones(self.shapes[0], dtype=torch.bool).triu(1) | torch.ones(self.shapes[0]).tril(-1).bool()]
        masks[0][:, 0] = False
        masks += [kind.mask(lengths, self.size)[0] for kind in learner.kinds]
        self.features = []
        for name, shape, mask in zip(("arcs", *scorer.kinds), self.shapes, masks, strict=True):
            cells = mask.flatten().nonzero()[:, 0].numpy()
            count, ones = np.arange(len(cells)), np.ones(len(cells), np.float32)
            parts = WeightedParts(np.zeros_like(cells), cells, count, ones, scorer.arrays[name], name == "arcs")
            table = learner.weights["parts"].numpy()
            vectors = feature_vectors(nodes_of(self.batch), lengths.numpy(), [parts], len(cells), table)
            rows = torch.zeros(int(np.prod(shape)), 2**BITS, dtype=torch.float64)
            for cell, start, stop in zip(cells, vectors.starts[:-1], vectors.starts[1:], strict=True):
                np.add.at(rows[cell].numpy(), vectors.indices[start:stop], 1.0)
            self.features.append(rows)

    def scores(self, weights: Tensor) -> list[Tensor]:
        """The scores ``(1, ...)`` of parts under weights."""
        pairs = zip(self.features, self.shapes, strict=True)
        return [(rows @ weights.double()).reshape(1, *shape) for rows, shape in pairs]

    def of_tree(self, learner: LinearLearner, heads: Tensor) -> Tensor:
        """The feature vector of a tree ``(1, n+1)``."""
        words = torch.arange(1, self.size)
        total = self.features[0][heads[0, 1:] * self.size + words].sum(0)
        for kind, rows in zip(learner.kinds, self.features[1:], strict=True):
            cells = kind.of_trees(heads, self.batch.lengths)[0]
            total = total + rows[cells[cells >= 0]].sum(0)
        return total


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found.double(), expected.double(), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "trees", [trees for trees in [*DISTRIBUTIONS] if distribution_named(trees).tree_family.has_sums]
)
def test_a_log_linear_step_goes_up_the_gradient(trees: str) -> None:
    learner, greatest = learner_of(trees, algorithm="log_linear", rate=0.5), 0.0
    partial = replace(TRAINING[3], heads=(-1, *(TRAINING[3].heads or ())[1:]))
    for sentence in [*TRAINING[:3], partial]:
        dense, before = DenseParts(learner, sentence), learner.weights["parts"].clone()
        weights = before.double().requires_grad_()
        arguments = [*dense.scores(weights), dense.batch.lengths]
        p = DISTRIBUTIONS[trees](*arguments)
        assert dense.batch.heads is not None
        likelihood = p.given(dense.batch.heads).log_partition - p.log_partition  # of the known heads
        [slope] = torch.autograd.grad(likelihood.sum(), weights)
        learner.learn(dense.batch)
        # Parts of a gradient below 0.001 are left out.
        torch.testing.assert_close(learner.weights["parts"].double() - before, 0.5 * slope, atol=0.02, rtol=0)
        greatest = max(greatest, float(slope.abs().max()))
    assert greatest > 0.1


@every_trees
@pytest.mark.parametrize("algorithm", ["perceptron", "mira"])
def test_a_step_goes_from_the_best_tree_to_the_gold_tree(trees: str, algorithm: Algorithm) -> None:
    learner, moved = learner_of(trees, algorithm=algorithm, step_limit=10.0), 0
    for sentence in TRAINING[:9]:
        dense, before = DenseParts(learner, sentence), learner.weights["parts"].clone()
        gold = dense.batch.heads
        assert gold is not None
        scores = dense.scores(before)
        if algorithm == "mira":
            cost = torch.ones_like(scores[0])
            cost[0, gold[0, 1:], range(1, dense.size)] = 0
            scores[0] = scores[0] + cost
        best = DISTRIBUTIONS[trees](*[*scores, dense.batch.lengths]).mode
        wrong = int((best != gold).sum())
        difference = dense.of_tree(learner, gold) - dense.of_tree(learner, best)
        step = float(wrong > 0)
        if algorithm == "mira" and wrong:
            step = float((wrong - difference @ before.double()) / (difference @ difference))
        learner.learn(dense.batch)
        assert_close(learner.weights["parts"], before + step * difference)
        if algorithm == "mira":
            margin = float(difference @ learner.weights["parts"].double())
            assert margin == pytest.approx(wrong, abs=1e-3)
        moved += wrong > 0
    assert moved >= 3


def test_mira_with_several_trees_enforces_all_margins() -> None:
    learner = learner_of("projective", algorithm="mira", step_limit=1e3, k=4)
    dense = DenseParts(learner, TRAINING[2])
    gold, scores = dense.batch.heads, dense.scores(learner.weights["parts"])
    assert gold is not None
    cost = torch.ones_like(scores[0])
    cost[0, gold[0, 1:], range(1, dense.size)] = 0
    trees = DISTRIBUTIONS["projective"](scores[0] + cost, dense.batch.lengths).topk(4).heads[:, 0]
    learner.learn(dense.batch)
    weights = learner.weights["parts"].double()
    for tree in trees:
        margin = (dense.of_tree(learner, gold) - dense.of_tree(learner, tree[None])) @ weights
        assert float(margin) >= int((tree != gold[0]).sum()) - 1e-2


@every_trees
@every_algorithm
def test_every_algorithm_learns(trees: str, algorithm: Algorithm) -> None:
    if algorithm == "log_linear" and not distribution_named(trees).tree_family.has_sums:
        return  # refused: see below
    config = ParserConfig(trees=trees, scorer=SCORER)
    parser = Parser.build(config, TRAINING).eval()
    learner, scorer = LinearLearner(parser, LinearLearningConfig(algorithm=algorithm, rate=1.0)), parser.scorer
    batches = [parser.collate(TRAINING[start : start + 8]) for start in range(0, 40, 8)]
    losses = [sum(map(learner.learn, batches)) for _ in range(6)]
    assert losses[-1] < losses[0] / 2
    assert isinstance(scorer, LinearScorer)
    scorer.set_weights(**learner.averages())
    unseen = learnable_sentences(30, seed=9)
    plain = [replace(sentence, heads=None, labels=None) for sentence in unseen]
    parses = parser.parse(plain)
    assert [(parse.heads, parse.labels) for parse in parses] == [(gold.heads, gold.labels) for gold in unseen]


def test_partial_trees_are_learned_from() -> None:
    """Words of unknown head take the head of the best tree that has the known ones."""
    known = [replace(each, heads=(-1, *each.heads[1:]), labels=("_", *each.labels[1:])) for each in TRAINING]  # pyright: ignore
    parser = Parser.build(ParserConfig(scorer=SCORER), TRAINING).eval()
    for algorithm in get_args(Algorithm):
        learner = LinearLearner(parser, LinearLearningConfig(algorithm=algorithm, rate=1.0))
        batches = [parser.collate(known[start : start + 8]) for start in range(0, 40, 8)]
        losses = [sum(map(learner.learn, batches)) for _ in range(5)]
        assert losses[-1] < losses[0] / 2


def test_weights_are_rounded_to_a_byte() -> None:
    learner = learner_of("siblings")
    learner.scorer.set_weights(**learner.weights)
    for rounded, name in zip(learner.scorer.weights(), ("parts", "labels"), strict=True):
        weights = learner.weights[name]
        torch.testing.assert_close(rounded, weights, rtol=1 / 16, atol=float(weights.abs().max()) / 2**14)
    batch = learner.parser.collate(TRAINING[:4])
    output = learner.scorer(batch)
    for sentence, arcs in zip(TRAINING[:4], output.arcs, strict=True):
        dense = DenseParts(learner, sentence)
        expected = dense.scores(learner.scorer.weights()[0])[0][0]
        assert_close(arcs[: dense.size, : dense.size][:, 1:], expected[:, 1:])


@pytest.fixture
def settings(tmp_path: Path) -> list[str]:
    """The options of a short run on small files."""
    train_file, dev_file = tmp_path / "train.conllu", tmp_path / "dev.conllu"
    train_file.write_text(text_of(TRAINING), encoding="utf-8")
    dev_file.write_text(text_of(learnable_sentences(12, seed=5)), encoding="utf-8")
    data = [f"--data.train={train_file}", f"--data.dev={dev_file}", f"--output={tmp_path / 'run'}"]
    sizes = ["--model.scorer.bits=14", "--model.scorer.label_bits=10"]
    return [*data, "--model.scorer=LinearConfig", "--model.trees=projective", *sizes, "--learning.epochs=4"]


def test_a_run_trains_and_its_model_is_used_by_every_command(
    settings: list[str], tmp_path: Path, capsys: Capture
) -> None:
    assert main(["train", "-q", *settings]) == 0
    run, dev = str(tmp_path / "run"), str(tmp_path / "dev.conllu")
    model = Parser.from_pretrained(run)
    assert (tmp_path / "run" / "model" / "model.safetensors").stat().st_size < 2**14 + 3 * 2**10 + 1000
    gold = [each.words for each in read_conllu(dev)]
    assert [parse.heads for parse in model.parse(gold)] == [sentence.heads for sentence in gold]
    with pytest.raises(TreeparseError, match="The model reads UPOS, but the sentence that starts with 'a b'"):
        model.parse([["a", "b"]])
    capsys.readouterr()
    for command in (
        ["predict", run, dev, "--probabilities"],
        ["kbest", run, dev, "-k", "3"],
        ["sample", run, dev, "-k", "3", "--seed", "1"],
        ["evaluate", "--model", run, dev],
        ["weights", run, dev, "--labels"],
        ["export", run, "--output", str(tmp_path / "copy")],
    ):
        assert main([*command, "-q"] if command[0] != "evaluate" else command) == 0, command
    shown = capsys.readouterr().out
    assert "h.upos=NOUN d.upos=ADJ" in shown and "label amod" in shown
    card = (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert "linear scores by" in card and "It reads the words of a sentence and their UPOS" in card


def test_a_resumed_run_ends_with_the_same_model(
    settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(load_config(None, settings), quiet=True)
    other = [*settings, f"--output={tmp_path / 'other'}"]
    learned, calls = LinearLearner.learn, [0]

    def breaking(self: LinearLearner, batch: object) -> float:
        calls[0] += 1
        if calls[0] == 8:  # in the third epoch of three steps each
            raise KeyboardInterrupt
        return learned(self, batch)  # pyright: ignore[reportArgumentType]

    with monkeypatch.context() as patched:
        patched.setattr(LinearLearner, "learn", breaking)
        with pytest.raises(KeyboardInterrupt):
            train(load_config(None, other), quiet=True)
    resumed = train(load_config(None, other), resume=True, quiet=True)
    for name in ("model.safetensors", "vocabulary.json"):
        assert (whole / name).read_bytes() == (resumed / name).read_bytes()
    assert train(load_config(None, other), resume=True, quiet=True) == resumed  # finished: nothing changes


def test_training_starts_from_a_linear_model(settings: list[str], tmp_path: Path) -> None:
    first = train(load_config(None, settings), quiet=True)
    more = [*settings, f"--init_from={first}", f"--output={tmp_path / 'more'}", "--learning.epochs=1"]
    again = Parser.from_pretrained(train(load_config(None, more), quiet=True))
    dev = [each.words for each in read_conllu(tmp_path / "dev.conllu")]
    assert [parse.heads for parse in again.parse(dev)] == [sentence.heads for sentence in dev]


FUNCTION = """
def letters(sentence):
    return {"letter": [form[0] for form in sentence.forms], "last": [form[-1] for form in sentence.forms]}


def short(sentence):
    return {"letter": ["a"]}
"""


@pytest.fixture
def own_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "my_attributes.py").write_text(FUNCTION, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_attributes", None)


def test_attributes_by_a_function_of_ones_own(own_attributes: None, settings: list[str], tmp_path: Path) -> None:
    templates = ["--model.scorer.arcs=[h.letter d.letter, d.letter distance]", "--model.scorer.labels=[d.letter]"]
    own = [*settings, *templates, "--model.scorer.attributes=my_attributes.letters"]
    run = str(tmp_path / "run")
    assert main(["train", "-q", *own]) == 0
    words = [each.forms for each in learnable_sentences(5, seed=7)]
    model = Parser.from_pretrained(run)
    assert [parse.heads for parse in model.parse(words)] == [each.heads for each in learnable_sentences(5, seed=7)]
    sys.modules.pop("my_attributes")
    with pytest.raises(TreeparseError, match=r"my_attributes.letters' is not imported.*--import my_attributes"):
        Parser.from_pretrained(run)
    __import__("my_attributes")
    short = replace(SCORER, arcs=("h.letter d.letter",), labels=("d.form",), attributes="my_attributes.short")
    with pytest.raises(TreeparseError, match="must return one string a word as the attribute 'letter'"):
        Parser.build(ParserConfig(scorer=short), TRAINING).parse(TRAINING[:1])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--model.scorer.arcs=[h.tag d.tag]"], "There is no attribute 'tag' of words"),
        (
            ["--model.scorer.arcs=[h.form s.form]"],
            "scorer.arcs: The feature template 'h.form s.form' has a part 's.form'",
        ),
        (["--model.scorer.arcs=[h+9.form]"], "offsets are from -5 to"),
        (["--model.scorer.arcs=[distance]"], "must read 1 to 8 attributes"),
        (["--model.scorer.arcs=[h.form, h.form]"], "occurs twice"),
        (["--model.scorer.bits=0"], "scorer.bits must be at least 1"),
        (["--model.tags.upos=1"], "Linear models predict no tags"),
        (["--objective=MaxMargin"], "is trained by learning.algorithm, not by an objective"),
        (["--learning.algorithm=log_linear", "--model.trees=nonprojective_siblings"], "log_linear needs probabilities"),
        (
            ["--learning.algorithm=adagrad"],
            "learning.algorithm\": Expected a typing.Literal['perceptron', 'mira', 'log_linear']",
        ),
        (["--learning.k=0"], "learning.k must be at least 1"),
        (["--optimization.epochs=3"], "A linear model is trained by learning, not by optimization"),
        (["--model.scorer=BiaffineConfig"], "learning trains linear models alone"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    options: list[str], problem: str, settings: list[str], tmp_path: Path, capsys: Capture
) -> None:
    assert main(["train", "-q", *settings, *options]) == 2
    error = capsys.readouterr().err
    assert problem in " ".join(error.split()), error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("trees", ["projective", "siblings", "second_order"])
def test_named_features_sum_up_to_scores(trees: str) -> None:
    learner = learner_of(trees)
    learner.scorer.set_weights(**learner.weights)
    parser = learner.parser.eval()
    for sentence in TRAINING[:5]:
        assert sentence.heads is not None and sentence.labels is not None
        [parse] = parser.parse([sentence], decoder="arcs_first")
        batch = parser.collate([sentence])
        p = parser.distribution(batch)
        total = 0.0
        for word, head in enumerate(parse.heads, 1):
            features = part_weights(parser, sentence, parse.heads, word)
            total += sum(weight for _, weight in features)
            side = "right" if word > head else "left"
            assert all(feature.endswith(side) for feature, _ in features)
            named = [feature for feature, _ in features if feature.startswith(f"h.upos={TAG(sentence, head)} d.upos")]
            assert named and all(f"d.upos={TAG(sentence, word)}" in feature for feature in named)
        heads = torch.tensor([[-1, *parse.heads]])
        assert float(p.base.score(heads)) == pytest.approx(total, abs=1e-3)
        scores = torch.tensor(
            [
                sum(weight for _, weight in label_weights(parser, sentence, parse.heads[0], 1, name))
                for name in parser.label_names
            ]
        )
        root = parser.label_names.index("root")
        allowed = torch.arange(len(scores)) == root if parse.heads[0] == 0 else torch.arange(len(scores)) != root
        expected = scores.masked_fill(~allowed, -torch.inf).log_softmax(-1)
        torch.testing.assert_close(p.labels.of_trees(heads)[0, 1].float(), expected, atol=1e-3, rtol=1e-3)


def TAG(sentence: Sentence, node: int) -> str:
    return "<root>" if node == 0 or sentence.upos is None else sentence.upos[node - 1]


@every_algorithm
def test_a_sentence_without_a_tree_teaches_nothing(algorithm: Algorithm) -> None:
    learner = learner_of("projective", algorithm=algorithm)
    before = {name: weights.clone() for name, weights in learner.weights.items()}
    plain = [replace(sentence, heads=None, labels=None) for sentence in TRAINING[:6]]
    learner.learn(learner.parser.collate(plain))
    for name, weights in learner.weights.items():
        assert_close(weights, before[name])


def test_a_label_root_beside_roots_of_another_label_takes_no_root_from_them(tmp_path: Path, capsys: Capture) -> None:
    free = [s.with_tree(s.heads or (), ["sent" if n == "root" else n for n in s.labels or ()]) for s in TRAINING]
    odd = next(index for index, sentence in enumerate(free) if len(sentence) > 1)
    free[odd] = free[odd].with_tree(
        free[odd].heads or (), [n if n == "sent" else "root" for n in free[odd].labels or ()]
    )
    (tmp_path / "train.conllu").write_text(text_of(free), encoding="utf-8")
    options = [f"--data.train={tmp_path / 'train.conllu'}", f"--output={tmp_path / 'run'}", "--learning.epochs=3"]
    config = load_config(shipped_file("linear"), options)
    parser = Parser.from_pretrained(train(config))
    assert "the label root is possible for every arc" in capsys.readouterr().out
    arcs = [arc for parse in parser.parse(free) for arc in zip(parse.heads, parse.labels, strict=True)]
    roots = [label for head, label in arcs if head == 0]
    assert roots.count("sent") > len(roots) / 2
