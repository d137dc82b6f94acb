import itertools
import math
import random
from collections import defaultdict
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.commands import assert_refused
from helpers.oracles import all_trees, tree_scores
from helpers.parsers import CONFIG, ENCODER, TRAINING, label_vectors, random_parser, same
from helpers.sentences import learnable_sentences

from treeparse.data.mapping import Words
from treeparse.errors import TreeparseError
from treeparse.model import Parse, Parser, ParserConfig, biaffine_scorer
from treeparse.names import Decoder
from treeparse.objectives import HeadSelection, Objective, TreeLikelihood
from treeparse.sentence import Sentence, nonprojective_words, tree_problem

UNSEEN = learnable_sentences(20, seed=2)
OBJECTIVES = pytest.mark.parametrize("objective", [TreeLikelihood(), HeadSelection()], ids=["trees", "heads"])


def trained_parser(objective: Objective, steps: int = 150) -> tuple[Parser, list[float]]:
    torch.manual_seed(4)
    parser = Parser.build(CONFIG, TRAINING).train()
    optimizer = torch.optim.Adam(parser.parameters(), lr=0.01, betas=(0.9, 0.95))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = parser.loss(parser.collate(TRAINING), objective)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parser.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    return parser, losses


def labelled_accuracy(parser: Parser, gold: list[Sentence]) -> float:
    right = 0
    for sentence, parse in zip(gold, parser.parse(gold), strict=True):
        assert sentence.heads is not None and sentence.labels is not None
        arcs = zip(sentence.heads, sentence.labels, strict=True)
        right += sum(a == b for a, b in zip(arcs, zip(parse.heads, parse.labels, strict=True), strict=True))
    return right / sum(map(len, gold))


@OBJECTIVES
def test_a_parser_learns_a_small_treebank(objective: Objective) -> None:
    parser, losses = trained_parser(objective)
    if isinstance(objective, HeadSelection):
        # At first all arcs are alike and labels nearly so: with n words a head costs log n, one of 2 labels log 2, and
        # on the arc from the root nothing.
        costs = [len(s) * math.log(len(s)) + (len(s) - 1) * math.log(2) for s in TRAINING]
        assert losses[0] == pytest.approx(sum(costs) / sum(map(len, TRAINING)), abs=0.2)
    assert losses[-1] < 0.2 < 1 < losses[0]
    assert labelled_accuracy(parser, TRAINING) == 1
    # Every word of the unseen sentences was seen, and the grammar is simple.
    assert labelled_accuracy(parser, UNSEEN) > 0.95


@torch.no_grad()
def label_log_probs(parser: Parser, sentence: Sentence) -> np.ndarray:
    """The log probabilities of the labels of every arc, arc by arc; -inf for those that are not allowed."""
    vectors = label_vectors(parser, parser.collate([sentence]))
    nodes, root = len(sentence) + 1, parser.indexer.root_label
    result = np.full((nodes, nodes, len(parser.indexer.labels)), -np.inf)
    for head, dependent in itertools.product(range(nodes), range(1, nodes)):
        options = vectors.biaffine(vectors.heads[:, head], vectors.dependents[:, dependent])[0]
        allowed = [place for place in range(len(options)) if (place == root) == (head == 0)]
        result[head, dependent, allowed] = options[allowed].log_softmax(-1)
    return result


def arc_scores(parser: Parser, sentence: Sentence) -> np.ndarray:
    with torch.no_grad():
        return parser.scorer(parser.collate([sentence])).arcs[0].numpy()


@cache
def parser_of(single_root: bool) -> Parser:
    """A random parser, which no test changes."""
    return random_parser(replace(CONFIG, single_root=single_root))


@cache
def every_labelled_tree(number: int, single_root: bool, projective: bool = False) -> list[Parse]:
    """Of a short sentence."""
    return labelled_trees(parser_of(single_root), SHORT[number], projective=projective)


def labelled_trees(parser: Parser, sentence: Sentence, *, projective: bool = False) -> list[Parse]:
    """All labelled trees, best first, by enumeration."""
    arcs, labels, single_root = (
        arc_scores(parser, sentence),
        label_log_probs(parser, sentence),
        parser.config.single_root,
    )
    log_partition = np.logaddexp.reduce(tree_scores(arcs, all_trees(len(sentence), single_root)))
    found = []
    for heads in all_trees(len(sentence), single_root, projective).tolist():
        pairs = list(enumerate(heads, 1))
        allowed = [np.flatnonzero(labels[head, word] > -np.inf).tolist() for word, head in pairs]
        for places in itertools.product(*allowed):
            arcs_and_labels = zip(pairs, places, strict=True)
            score = sum(arcs[head, word] + labels[head, word, place] for (word, head), place in arcs_and_labels)
            names = tuple(parser.indexer.labels.item(place) for place in places)
            found.append(Parse(sentence.forms, tuple(heads), names, score - log_partition, score))
    return sorted(found, key=lambda parse: -parse.score)


def test_best_labels_do_not_depend_on_how_many_arcs_are_scored_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = random_parser()
    expected = parser.parse(UNSEEN)
    monkeypatch.setattr(biaffine_scorer, "MIXED", 1)
    monkeypatch.setattr(biaffine_scorer, "TABLE", 1)
    for found, parse in zip(parser.parse(UNSEEN), expected, strict=True):
        assert same(found, parse)


def test_a_treebank_without_a_root_label_keeps_its_labels() -> None:
    renamed = [sentence.with_tree(sentence.heads or (), ["top"] * len(sentence)) for sentence in TRAINING]
    parser = Parser.build(CONFIG, renamed)
    assert {label for parse in parser.parse(TRAINING) for label in parse.labels} == {"top"}


@pytest.mark.parametrize("batch_words", [1, 20, 5000])
def test_parses_keep_the_order_and_do_not_depend_on_the_batch(batch_words: int) -> None:
    parser = random_parser()
    sentences = [*UNSEEN, Sentence(tuple(f"new-{word}" for word in range(60))), Sentence(("Verb1",)), *UNSEEN[:3]]
    parses = parser.parse(sentences, batch_words=batch_words)
    assert [parse.tokens for parse in parses] == [sentence.forms for sentence in sentences]
    for sentence, parse in zip(sentences, parses, strict=True):
        assert tree_problem(parse.heads, single_root=True) is None
        assert same(parse, parser.parse([sentence])[0])


WORDS = sorted({form for sentence in TRAINING for form in sentence.forms})
STREAM = random.Random(8)
SHORT = [Sentence(tuple(STREAM.choices(WORDS, k=1 + number % 4))) for number in range(40)]
DECODERS = pytest.mark.parametrize("decoder", ["best", "arcs_first", "nonprojective", "projective", "minimum_risk"])


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("decoder", ["nonprojective", "projective"])
def test_lists_of_the_best_by_enumeration(decoder: Decoder, single_root: bool) -> None:
    parser = parser_of(single_root)
    lengths = set()
    for number, found in enumerate(parser.kbest(SHORT, 10_000, decoder=decoder)):
        expected = every_labelled_tree(number, single_root, decoder == "projective")
        assert all(map(same, found, expected)) and len(found) == len(expected)
        assert [parse.score for parse in found] == sorted((parse.score for parse in found), reverse=True)
        if decoder == "nonprojective":
            assert math.fsum(math.exp(parse.log_prob) for parse in found) == pytest.approx(1)
        lengths.add(len(found))
    assert len(lengths) == 4
    for few, found in zip(
        parser.kbest(SHORT, 3, decoder=decoder), parser.kbest(SHORT, 30, decoder=decoder), strict=True
    ):
        assert all(map(same, few, found)) and len(few) == min(3, len(found))


@DECODERS
@pytest.mark.parametrize("single_root", [True, False])
def test_parses_of_every_decoder_by_enumeration(decoder: Decoder, single_root: bool) -> None:
    parser = parser_of(single_root)
    differ = 0
    for number, parse in enumerate(parser.parse(SHORT, decoder=decoder)):
        every = every_labelled_tree(number, single_root)
        if decoder == "minimum_risk":
            # The probability that a random labelled tree has this arc with this label, summed over the arcs.
            right: defaultdict[tuple[int, int, str], float] = defaultdict(float)
            for tree in every:
                for arc in arcs_of(tree):
                    right[arc] += math.exp(tree.log_prob)
            expected = max(every, key=lambda tree: sum(right[arc] for arc in arcs_of(tree)))
            heads, labels = parser.distribution(parser.collate([SHORT[number]])).minimum_risk()
            assert heads[0, 1:].tolist() == list(parse.heads)
            assert [parser.indexer.labels.item(label) for label in labels[0, 1:].tolist()] == list(parse.labels)
        elif decoder == "arcs_first":
            # The probability of a tree without labels is the sum over its labels; then comes its best labelling.
            weights: defaultdict[tuple[int, ...], float] = defaultdict(float)
            for tree in every:
                weights[tree.heads] += math.exp(tree.log_prob)
            expected = next(tree for tree in every if tree.heads == max(weights, key=weights.__getitem__))
        else:
            expected = every_labelled_tree(number, single_root, decoder == "projective")[0]
        if decoder == "best":
            labeled = parser.distribution(parser.collate([SHORT[number]]))
            heads, labels = labeled.mode
            assert (heads[0].tolist(), [parser.label_names[label] for label in labels[0, 1:]]) == (
                [-1, *parse.heads],
                [*parse.labels],
            )
            assert labeled.log_prob(heads, labels).item() == pytest.approx(expected.log_prob, abs=1e-9)
            torch.testing.assert_close(labeled.log_partition, labeled.base.log_partition)
        assert same(parse, expected)
        differ += (parse.heads, parse.labels) != (every[0].heads, every[0].labels)
    assert (differ > 0) is (decoder not in ("best", "nonprojective"))


def test_arcs_first_keeps_known_labels() -> None:
    parser = parser_of(True)
    known = [replace(each, heads=(-1,) * len(each), labels=("root", *"_" * (len(each) - 1))) for each in SHORT]
    parses = parser.parse(known, decoder="arcs_first", keep_heads=True)
    assert all(parse.heads[0] == 0 and parse.labels[0] == "root" for parse in parses)
    assert any(parse.heads[0] != 0 for parse in parser.parse(SHORT, decoder="arcs_first"))


def arcs_of(parse: Parse) -> list[tuple[int, int, str]]:
    return list(zip(range(1, len(parse.heads) + 1), parse.heads, parse.labels, strict=True))


def test_decoders_on_longer_sentences() -> None:
    parser = random_parser()
    sentences = [[f"word{word}-{number}" for word in range(3 + 5 * number)] for number in range(8)]
    best, projective, cautious = (
        parser.parse(sentences, decoder=decoder) for decoder in ("nonprojective", "projective", "minimum_risk")
    )
    crossing = 0
    for one, other, third in zip(best, projective, cautious, strict=True):
        assert not nonprojective_words(other.heads)
        assert one.score >= max(other.score, third.score) - 1e-9
        assert one.score - one.log_prob == pytest.approx(other.score - other.log_prob)
        assert one.score - one.log_prob == pytest.approx(third.score - third.log_prob)
        crossing += bool(nonprojective_words(one.heads))
    assert crossing > 3
    chosen: list[tuple[Decoder, list[Parse]]] = [("nonprojective", best), ("projective", projective)]
    for decoder, parses in chosen:
        lists = parser.kbest(sentences, 20, decoder=decoder)
        assert all(same(each[0], parse) for each, parse in zip(lists, parses, strict=True))
        for each in lists:
            assert len({(parse.heads, parse.labels) for parse in each}) == 20
            assert decoder == "nonprojective" or not any(nonprojective_words(parse.heads) for parse in each)


def test_lists_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = random_parser()
    sentences = [*UNSEEN[:6], Sentence(("Verb1",)), Sentence(tuple(f"new-{word}" for word in range(40)))]
    expected = parser.kbest(sentences, 12)
    for batch_words in (1, 20):
        for found, alone in zip(parser.kbest(sentences, 12, batch_words=batch_words), expected, strict=True):
            assert len(found) == len(alone) and all(map(same, found, alone))
    monkeypatch.setattr("treeparse.model.inference.parsing.LABEL_SCORES", 1)
    assert [len(found) for found in parser.kbest(sentences, 12)] == list(map(len, expected))


def test_a_list_is_no_longer_than_there_are_trees() -> None:
    parser = random_parser()
    [[only]] = parser.kbest([["Verb1"]], 10**15)
    assert (only.heads, only.labels, only.log_prob) == ((0,), ("root",), pytest.approx(0))
    assert [len(found) for found in parser.kbest([["a", "b"], ["c"]], 1000)] == [4, 1]  # 2 trees, 2 labels
    assert [len(found) for found in parser.kbest([[f"w{word}" for word in range(12)]], 1000)] == [1000]
    assert parser.kbest([], 3) == []


def test_the_configs_decoder_is_the_default(tmp_path: Path) -> None:
    parser = random_parser(replace(CONFIG, decoder="projective"))
    sentences = [[f"word{word}" for word in range(30)]]
    assert parser.parse(sentences) == parser.parse(sentences, decoder="projective")
    assert parser.parse(sentences) != parser.parse(sentences, decoder="nonprojective")
    assert parser.kbest(sentences, 2) == parser.kbest(sentences, 2, decoder="projective")
    parser.save_pretrained(tmp_path / "model")
    assert Parser.from_pretrained(tmp_path / "model").config.decoder == "projective"


def test_impossible_decoders_and_lists_are_refused() -> None:
    parser = random_parser(replace(CONFIG, decoder="minimum_risk"))
    unknown: Any = "finest"
    kbest = partial(parser.kbest, decoder="nonprojective")
    assert_refused(
        (lambda: replace(CONFIG, decoder=unknown), "Unknown decoder 'finest': choose one of best, arcs_first, nonproj"),
        (lambda: parser.parse([["a"]], decoder=unknown), "Unknown decoder 'finest'"),
        (lambda: parser.kbest([["a"]], 1, decoder=unknown), "Unknown decoder 'finest'"),
        (lambda: parser.kbest([["a"]], 1), "minimum_risk chooses one tree, it has no list"),
        (lambda: kbest([["a"]], 0), "k must be 1 or more, got 0"),
        (lambda: kbest([["a"]], -1), "k must be 1 or more, got -1"),
        (lambda: kbest([["a"] * 16], 10**9), "1000000000 trees of 16 words are too many: ask for 8388608 or fewer"),
        (lambda: kbest([["a"], []], 1), r"Sentence 1 \(counted from 0\) has no words"),
        (lambda: kbest([["a"]], 1, batch_words=0), "batch_words must be 1 or more, got 0"),
        (lambda: parser.parse([["a"]], batch_words=0), "batch_words must be 1 or more, got 0"),
    )
    assert len(kbest([["a"]], 1)) == 1


def test_words_alone_can_be_parsed() -> None:
    parser = random_parser()
    expected = parser.parse(UNSEEN[:3])
    assert parser.parse([sentence.forms for sentence in UNSEEN[:3]]) == expected
    assert parser.parse([list(sentence.forms) for sentence in UNSEEN[:3]]) == expected
    assert parser.parse([]) == []
    assert parser.parse([["日本語", "\u3000", "\U0001f600"]])[0].tokens == ("日本語", "\u3000", "\U0001f600")


@pytest.mark.parametrize(
    "words", [["a", "", "b"], Sentence(("a", "")), [{"id": 1, "form": "a"}, {"id": 2, "form": ""}]]
)
def test_an_empty_word_is_refused(words: Words) -> None:
    parser = random_parser()
    for call in (parser.parse, parser.collate, lambda sentences: parser.kbest(sentences, 1, decoder="nonprojective")):
        with pytest.raises(
            TreeparseError, match=r"Sentence 1 \(counted from 0\) has an empty word, word 2: leave it out"
        ):
            call([["a"], words])


@pytest.mark.parametrize("training", [True, False])
def test_parsing_uses_no_dropout_and_restores_the_mode(training: bool) -> None:
    parser = random_parser()
    expected = parser.parse(UNSEEN)
    parser.train(training)
    assert parser.parse(UNSEEN) == expected
    assert all(module.training is training for module in parser.modules())
    tagged = random_parser(replace(CONFIG, encoder=replace(ENCODER, tags=("upos",)))).train(training)
    with pytest.raises(TreeparseError) as caught:
        tagged.parse([["a"]])
    assert all(module.training is training for module in tagged.modules()), caught


@OBJECTIVES
def test_the_loss_word_by_word(objective: Objective) -> None:
    parser = random_parser()
    with torch.no_grad():
        loss = float(parser.loss(parser.collate(TRAINING), objective))
        total = 0.0
        for sentence in TRAINING:
            batch = parser.collate([sentence])
            vectors = label_vectors(parser, batch)
            assert batch.heads is not None and sentence.heads is not None and sentence.labels is not None
            p = parser.distribution(batch).base
            if isinstance(objective, TreeLikelihood):
                total -= p.log_prob(batch.heads).item()
            for word, (head, label) in enumerate(zip(sentence.heads, sentence.labels, strict=True), 1):
                if isinstance(objective, HeadSelection):
                    others = [node for node in range(len(sentence) + 1) if node != word]
                    total += (p.scores[0, others, word].logsumexp(0) - p.scores[0, head, word]).item()
                options = vectors.biaffine(vectors.heads[:, head], vectors.dependents[:, word])[0]
                place, root = parser.indexer.labels.index(label), parser.indexer.root_label
                allowed = [each for each in range(len(options)) if (each == root) == (head == 0)]
                total += (options[allowed].logsumexp(0) - options[place]).item()
    assert loss == pytest.approx(total / sum(map(len, TRAINING)))


def test_a_word_without_a_head_has_no_label_loss() -> None:
    parser = random_parser()
    whole = Sentence(("Noun1", "Verb1"), heads=(2, 0), labels=("nsubj", "root"))
    open_head, open_both = replace(whole, heads=(-1, 0)), replace(whole, heads=(-1, 0), labels=("_", "root"))
    losses = [parser.loss(parser.collate([s]), HeadSelection()).item() for s in (whole, open_head, open_both)]
    assert losses[0] > losses[1] == losses[2] > 0


def test_the_loss_needs_trees() -> None:
    parser = random_parser()
    with pytest.raises(TreeparseError, match="training batch must hold trees, got none"):
        parser.loss(parser.collate([Sentence(("a", "b"))]), HeadSelection())


@pytest.mark.parametrize(
    "settings",
    [{"char_filters": 0}, {"tags": ("upos", "xpos", "feats"), "layers": 1}, {"char_widths": (2, 3, 6)}],
    ids=["words alone", "tags", "even widths"],
)
def test_every_architecture_trains(settings: dict[str, Any]) -> None:
    torch.manual_seed(5)
    parser = Parser.build(replace(CONFIG, encoder=replace(ENCODER, **settings)), TRAINING).train()
    optimizer = torch.optim.Adam(parser.parameters(), lr=0.02)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = parser.loss(parser.collate(TRAINING), TreeLikelihood())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.3


@OBJECTIVES
def test_training_in_bfloat16(objective: Objective) -> None:
    torch.manual_seed(6)
    parser = random_parser().float()
    batch = parser.collate(TRAINING)
    exact = parser.loss(batch, objective)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = parser.loss(batch, objective)
    assert loss.item() == pytest.approx(exact.item(), rel=0.05)
    loss.backward()
    for name, parameter in parser.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
    with torch.autocast("cpu", dtype=torch.bfloat16):
        parses = parser.parse(UNSEEN)
    assert all(tree_problem(parse.heads) is None for parse in parses)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"arc_size": 0}, "arc_size must be at least 1, got 0"),
        ({"dropout": 1}, "dropout must be from 0 to less than 1, got 1"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        ParserConfig(**settings)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@OBJECTIVES
def test_a_gpu_agrees_with_the_cpu(objective: Objective) -> None:
    parser = random_parser()
    loss = parser.loss(parser.collate(TRAINING), objective)
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in parser.named_parameters()}
    parses, cautious = parser.parse(UNSEEN), parser.parse(UNSEEN, decoder="minimum_risk")
    lists = parser.kbest(UNSEEN, 5, decoder="projective")
    parser.zero_grad(set_to_none=True)
    parser.cuda()
    for module in parser.modules():
        module.training = isinstance(module, torch.nn.LSTM)  # cuDNN has no gradient outside training
    batch = parser.collate(TRAINING)
    assert batch.lengths.is_cuda
    on_gpu = parser.loss(batch, objective)
    on_gpu.backward()
    assert on_gpu.item() == pytest.approx(loss.item(), rel=1e-6)
    for name, parameter in parser.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], check_device=False, rtol=1e-5, atol=1e-7)
    assert all(map(same, parser.parse(UNSEEN), parses))
    assert all(map(same, parser.parse(UNSEEN, decoder="minimum_risk"), cautious))
    for found, expected in zip(parser.kbest(UNSEEN, 5, decoder="projective"), lists, strict=True):
        assert all(map(same, found, expected)) and len(found) == len(expected)


def test_the_hyphen_in_minimum_risk() -> None:
    name: Any = "minimum-risk"
    assert ParserConfig(decoder=name).decoder == "minimum_risk"
    parser = random_parser()
    assert parser.parse(UNSEEN, decoder="minimum-risk") == parser.parse(UNSEEN, decoder="minimum_risk")
    assert parser.sample(UNSEEN[:3], 2, decoder="minimum-risk") == parser.sample(UNSEEN[:3], 2)
    with pytest.raises(TreeparseError, match="minimum_risk chooses one tree, it has no list"):
        parser.kbest(UNSEEN, 2, decoder="minimum-risk")


def test_a_whole_parser_compiles_in_parts_and_says_why_it_is_no_single_graph() -> None:
    parser = random_parser()
    batch = parser.collate(TRAINING[:3])

    @torch.no_grad()
    def marginals() -> torch.Tensor:
        return parser.distribution(batch).arc_marginals()

    class Marginals(torch.nn.Module):
        def forward(self, lengths: torch.Tensor, features: dict[str, torch.Tensor]) -> torch.Tensor:
            return parser.distribution(replace(batch, lengths=lengths, features=features)).arc_marginals()

    reason = "A whole parser is no single graph.*compile it without fullgraph=True"
    torch.testing.assert_close(torch.compile(marginals, backend="eager")(), marginals())
    torch.compiler.reset()
    with pytest.raises(RuntimeError, match=reason):
        torch.compile(marginals, backend="eager", fullgraph=True)()
    with pytest.raises(TreeparseError, match=reason):
        torch.export.export(Marginals(), (batch.lengths, dict(batch.features)))
