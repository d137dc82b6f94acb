"""Several treebanks in one model: their vectors, their labels, and the treebank as which a sentence is parsed."""

import itertools
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.oracles import all_trees
from helpers.parsers import CONFIG, parser_encoder
from helpers.pretrained import bert_folder
from helpers.sentences import learnable_sentences
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parse, Parser, ParserConfig
from treeparse.model.parser_config import LinearConfig
from treeparse.nn import BiLSTMConfig, EncoderConfig, TransformerConfig
from treeparse.objectives import (
    Entropy,
    HeadSelection,
    KBestRisk,
    MaxMargin,
    MinimumRisk,
    Objective,
    SampledRisk,
    TreeLikelihood,
)
from treeparse.sentence import Sentence

OTHERS = {"amod": "amod", "nsubj": "subj", "root": "root"}
LABELS = {"one": {"amod", "nsubj", "root"}, "two": {"amod", "subj", "root"}}
FORMS = [("Adj1", "Noun2", "Verb3"), ("Noun1", "Verb1"), ("Verb2", "Noun3", "Adj4")]


def training(*, relabelled: bool = True) -> list[Sentence]:
    """Sentences of two treebanks; the second has another label for one of the first, if relabelled."""
    one, two = learnable_sentences(20, seed=1), learnable_sentences(30, seed=2)
    if relabelled:
        two = [replace(s, labels=tuple(OTHERS[label] for label in s.labels or ())) for s in two]
    return [*(replace(s, treebank="one") for s in one), *(replace(s, treebank="two") for s in two)]


def reading(encoder: EncoderConfig) -> ParserConfig:
    return replace(CONFIG, encoder=replace(encoder, **{"tags": ("treebank",)}))


def parser_of(
    config: ParserConfig | None = None, *, relabelled: bool = True, sentences: list[Sentence] | None = None
) -> Parser:
    """A parser of both treebanks in double precision, whose weights are far from the zeros at which scores start."""
    torch.manual_seed(3)
    parser = Parser.build(config or reading(CONFIG.encoder), sentences or training(relabelled=relabelled)).double()
    for name, parameter in parser.named_parameters():
        if "embedding" not in name:
            torch.nn.init.normal_(parameter, std=0.4)
    return parser.eval()


def table_of(parser: Parser) -> Tensor:
    encoder: Any = parser_encoder(parser)
    return encoder.embedding.tags["treebank"].weight.data


def trees(parses: list[Parse]) -> list[object]:
    return [(parse.heads, parse.labels) for parse in parses]


def named(treebank: str | None, forms: list[tuple[str, ...]] = FORMS) -> list[Sentence]:
    tags = [tuple(form[:-1].upper() for form in each) for each in forms]
    return [Sentence(each, upos=of_each, treebank=treebank) for each, of_each in zip(forms, tags, strict=True)]


def test_vectors_of_zeros_change_no_score() -> None:
    """Nor do masks that allow all labels: the same weights without the column give the same scores."""
    sentences = training(relabelled=False)
    parser, plain = parser_of(relabelled=False), parser_of(CONFIG, sentences=sentences)
    table_of(parser).zero_()
    weights = parser.state_dict()
    own = {name: weights[name][tuple(map(slice, old.shape))] for name, old in plain.state_dict().items()}
    plain.load_state_dict(own)  # the inputs of the first layer without the last ones
    scores = [[p.score_trees(sentences[15:25]), p.kbest(sentences[15:25], 3)] for p in (parser, plain)]
    for one, other in zip(*(result[0] for result in scores), strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, rel=1e-12)
        assert one.score == pytest.approx(other.score, rel=1e-12)
    assert [*map(trees, scores[0][1])] == [*map(trees, scores[1][1])]
    table_of(parser).normal_(generator=torch.Generator().manual_seed(1))
    assert parser.score_trees(sentences[:1])[0].score != pytest.approx(scores[0][0][0].score), "the vectors are read"


@pytest.mark.parametrize("treebank", [None, "another"])
def test_a_sentence_of_no_known_treebank_gets_the_mean(treebank: str | None) -> None:
    parser = parser_of()
    mean = deepcopy(parser)
    table_of(mean)[3:] = table_of(parser)[3:].mean(0)
    mean.indexer = type(parser.indexer)(parser.indexer.features, parser.indexer.labels)  # of all labels
    expected = mean.kbest(named("two"), 4)
    assert expected == mean.kbest(named("one"), 4)
    for own, others in zip(parser.kbest(named(treebank), 4), expected, strict=True):
        assert trees(own) == trees(others)
        assert [p.log_prob for p in own] == pytest.approx([p.log_prob for p in others], rel=1e-12)
    assert parser.score_trees(training()[:1])[0].score != pytest.approx(
        mean.score_trees(training()[:1])[0].score, rel=1e-3
    )


def test_text_of_no_treebank_adds_none() -> None:
    torch.manual_seed(3)
    parser = Parser.build(reading(CONFIG.encoder), training(), unlabelled=named(None))
    assert len(table_of(parser)) == 3 + 2


def enumerated(arcs: np.ndarray, labels: np.ndarray) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    """The log weights of the labelled trees of one root, from scores (n+1, n+1) and log P(label | arc) (.., L)."""
    n = len(arcs) - 1
    weights = {}
    for heads in all_trees(n, single_root=True):
        for chosen in itertools.product(range(labels.shape[-1]), repeat=n):
            parts = ((head, word + 1, label) for word, (head, label) in enumerate(zip(heads, chosen, strict=True)))
            score = sum(arcs[head, word] + labels[head, word, label] for head, word, label in parts)
            if score > -np.inf:
                weights[tuple(heads.tolist()), chosen] = float(score)
    return weights


@pytest.mark.parametrize("source", ["lazy", "tensor"])
def test_the_labels_of_a_treebank_are_all_that_its_sentences_have(source: str) -> None:
    """Log partition, marginals and best tree equal sums over the labelled trees of the treebank's labels."""
    parser = parser_of()
    names = parser.label_names
    sentences = [Sentence(FORMS[0], treebank=name) for name in ("one", "two", "another")]
    batch = parser.collate(sentences)
    with torch.no_grad():
        scores = parser.scorer(batch)
        assert not isinstance(scores.labels, Tensor)
        over_all = scores.labels.from_heads(0, batch.longest + 1)
        p = parser.distribution(batch, replace(scores, labels=over_all) if source == "tensor" else scores)
    for item, sentence in enumerate(sentences):
        allowed = np.array([name in LABELS.get(sentence.treebank or "", set(names)) for name in names])
        labels = np.where(allowed, over_all[item].exp().numpy(), 0.0)
        labels[:, 1:] /= labels[:, 1:].sum(-1, keepdims=True)
        with np.errstate(divide="ignore"):
            weights = enumerated(scores.arcs[item].numpy(), np.log(labels))
        logs = np.array([*weights.values()])
        total = float(np.logaddexp.reduce(logs))
        assert float(p.log_partition[item]) == pytest.approx(total, abs=1e-9)
        marginals = np.zeros(labels.shape)
        for (heads, chosen), log in weights.items():
            for word, (head, label) in enumerate(zip(heads, chosen, strict=True), 1):
                marginals[head, word, label] += np.exp(log - total)
        np.testing.assert_allclose(p.marginals[item].numpy(), marginals, atol=1e-9)
        heads, chosen = p.mode
        best = max(weights, key=weights.__getitem__)
        assert (tuple(heads[item, 1:].tolist()), tuple(chosen[item, 1:].tolist())) == best
        lists = parser.kbest([sentence], 10**5)[0]
        assert len(lists) == len(weights)
        assert [parse.log_prob for parse in lists[:9]] == pytest.approx(sorted(logs - total)[::-1][:9], abs=1e-9)
        drawn = {label for parse in parser.sample([sentence], 60)[0] for label in parse.labels}
        assert drawn == {name for name, has in zip(names, allowed, strict=True) if has}


def test_gold_labels_that_the_treebank_lacks_are_as_unknown_ones() -> None:
    parser = parser_of()
    tree = {"heads": (2, 3, 0), "labels": ("amod", "subj", "root")}
    own, other, unknown = (Sentence(FORMS[0], **tree, treebank=name) for name in ("two", "one", None))
    batch = parser.collate([own, other, unknown])
    assert batch.labels is not None
    ids = [parser.label_names.index(label) for label in tree["labels"]]
    assert batch.labels.tolist() == [[-1, *ids], [-1, ids[0], -1, ids[2]], [-1, *ids]]
    scored = parser.score_trees([own, other, unknown])
    assert [parse.log_prob > -np.inf for parse in scored] == [True, False, True]
    assert scored[1].arc_probs is not None and min(scored[1].arc_probs) > 0
    assert torch.isfinite(parser.loss(batch, TreeLikelihood()))


def test_every_arc_has_a_possible_label() -> None:
    """Whatever labels a treebank has: none, root alone, or no root."""
    bare = Sentence(("a", "b"), heads=(2, 0), labels=("_", "_"), treebank="none")
    roots = Sentence(("a",), heads=(0,), labels=("root",), treebank="roots")
    inner = Sentence(("a", "b"), heads=(2, 0), labels=("subj", "_"), treebank="inner")
    parser = parser_of(sentences=[*training(), bare, roots, inner])
    names = set(parser.label_names)
    expected = {"none": names, "roots": names, "inner": {"subj", "root"}}
    for name, labels in expected.items():
        [draws] = parser.sample([Sentence(FORMS[0], treebank=name)], 80)
        assert {label for parse in draws for label in parse.labels} == labels


OBJECTIVES = [
    TreeLikelihood(),
    HeadSelection(),
    MaxMargin(),
    MinimumRisk(),
    KBestRisk(),
    SampledRisk(),
    Entropy(),
]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: type(objective).__name__)
def test_every_objective_learns_with_the_labels_of_treebanks(objective: Objective) -> None:
    parser = parser_of().train()
    batch: Batch = parser.collate([*training()[:4], *training()[-4:]])
    loss = parser.loss(batch, objective)
    loss.backward()
    assert torch.isfinite(loss)
    gradients = [p.grad for p in parser.parameters() if p.grad is not None]
    assert gradients and all(gradient.isfinite().all() for gradient in gradients)
    grad = parser.get_parameter("scorer.encoder.embedding.tags.treebank.weight").grad
    assert grad is not None
    assert (grad[3:].abs().sum(1) > 0).all() and not grad[:2].any(), "both vectors learn, padding does not"


@pytest.mark.parametrize("kind", ["bilstm", "characters", "transformer", "frozen", "linear"])
def test_every_kind_of_model_reads_the_treebank(kind: str, tmp_path: Path) -> None:
    """And is the same once it is saved and loaded."""
    config = reading(CONFIG.encoder)
    if kind == "characters":
        config = reading(BiLSTMConfig(min_count=1, word_size=4, hidden_size=8, char_filters=0, char_widths=()))
    if kind in ("transformer", "frozen"):
        folder = bert_folder(tmp_path / "bert")
        config = reading(TransformerConfig(model=str(folder), frozen=kind == "frozen"))
    if kind == "linear":
        config = ParserConfig(scorer=LinearConfig(bits=12, label_bits=8).with_treebank())
        parser = Parser.build(config, training())
        scorer: Any = parser.scorer
        stream = torch.Generator().manual_seed(5)
        scorer.set_weights(*(torch.randn(shape, generator=stream) for shape in ((2**12,), (2**8, 4))))
    else:
        torch.manual_seed(7)
        parser = Parser.build(config, training()).eval()
        for weight in (p for name, p in parser.named_parameters() if "transformer" not in name):
            torch.nn.init.normal_(weight, std=0.5)
    scores = {name: [p.score for p in parser.parse(named(name))] for name in ("one", "two", None)}
    assert scores["one"] != scores["two"] != scores[None] != scores["one"]
    assert [p.score for p in parser.parse(named(None), treebank="two")] == pytest.approx(scores["two"])
    parser.save_pretrained(tmp_path / "model")
    vocabulary = json.loads((tmp_path / "model" / "vocabulary.json").read_text())
    assert {name: set(labels) for name, labels in vocabulary["treebanks"].items()} == LABELS
    loaded = Parser.from_pretrained(tmp_path / "model")
    assert loaded.treebanks == ("one", "two")
    for name, expected in scores.items():
        assert [p.score for p in loaded.parse(named(name))] == pytest.approx(expected)
        assert {label for p in loaded.parse(named(name)) for label in p.labels} <= LABELS.get(
            name or "", {*parser.label_names}
        )


def test_every_method_parses_as_a_treebank() -> None:
    parser, bare = parser_of(), named(None)
    gold = [s.with_tree((0, *[1] * (len(s) - 1)), ("root", *["amod"] * (len(s) - 1))) for s in bare]
    for name in ("one", "two"):
        own = named(name)
        assert parser.parse(bare, treebank=name) == parser.parse(own)
        assert [*parser.stream(bare, treebank=name)] == parser.parse(own)
        assert parser.kbest(bare, 3, treebank=name) == parser.kbest(own, 3)
        assert parser.sample(bare, 3, treebank=name) == parser.sample(own, 3)
        scored = [replace(s, treebank=name) for s in gold]
        assert parser.score_trees(gold, treebank=name) == parser.score_trees(scored)
        assert parser.parse(own, treebank="one") == parser.parse(named("one")), "the option wins"
    assert parser.parse(bare) != parser.parse(named("one")) != parser.parse(named("two"))
    for method in (parser.parse, parser.score_trees):
        with pytest.raises(
            TreeparseError, match=r"Unknown treebank 'ones': the model knows one, two; did you mean one"
        ):
            method(gold, treebank="ones")
    with pytest.raises(TreeparseError, match="Unknown treebank 'one': the model knows none by name"):
        parser_of(CONFIG, sentences=learnable_sentences(9, seed=1)).parse(bare, treebank="one")


@pytest.mark.parametrize("combine", ["scores", "log_probs", "marginals"])
def test_models_of_an_ensemble_may_know_other_treebanks(combine: str) -> None:
    both, others = parser_of(), [replace(s, treebank="three") for s in learnable_sentences(9, seed=1)]
    ensemble = Ensemble([both, parser_of(sentences=others), parser_of(CONFIG)], combine)
    assert ensemble.treebanks == ("one", "two", "three")
    for name in ("one", "two", "three"):
        for parse in ensemble.parse(named(None), treebank=name):
            assert np.isfinite(parse.log_prob) and set(parse.labels) <= {"amod", "nsubj", "root", "subj"}
    with pytest.raises(TreeparseError, match="knows one, two, three"):
        ensemble.parse(named(None), treebank="four")


def test_conditions_and_rounded_weights_hold_with_treebanks() -> None:
    parser = parser_of().float()
    known = Sentence(FORMS[0], heads=(2, -1, -1), labels=("amod", "_", "_"), treebank="one")
    [parse] = parser.parse([known], keep_heads=True)
    assert parse.heads[0] == 2 and parse.labels[0] == "amod" and set(parse.labels) <= LABELS["one"]
    foreign = replace(known, labels=("subj", "_", "_"))
    with pytest.raises(TreeparseError, match="no tree of the model has the heads, labels"):
        parser.parse([foreign], keep_heads=True)
    for precision in ("bf16", "int8"):
        rounded = parser.use_precision(precision).parse(named("two"))
        assert {label for parse in rounded for label in parse.labels} <= LABELS["two"]


def test_an_extended_vocabulary_keeps_treebanks() -> None:
    indexer = parser_of().indexer
    new = [replace(s, treebank="three", labels=("dep",) * len(s)) for s in learnable_sentences(4, seed=5)]
    more = [replace(s, treebank="one", labels=("subj",) * len(s)) for s in learnable_sentences(4, seed=6)]
    extended = indexer.extended([*new, *more], indexer.features)
    assert {name: {*labels} for name, labels in extended.treebanks.items()} == {
        "one": LABELS["one"] | {"subj"},
        "two": LABELS["two"],
        "three": {"dep"},
    }
