"""Several parsers as one, by enumeration from what each says alone, and saved parsers as teachers."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pytest
import torch
import yaml
from helpers.chi_square import LIMIT, chi_square_z
from helpers.commands import assert_refused
from helpers.parsers import CONFIG, ENCODER, TRAINING, random_parser, same, same_lists
from safetensors import safe_open

from treeparse.data import load_treebank
from treeparse.data.features.indexer import Indexer
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parse, Parser, ParserConfig, Teacher
from treeparse.model.inference import parsing
from treeparse.names import COMBINATIONS, Combination, Decoder
from treeparse.objectives import Divergence, SilverTrees
from treeparse.objectives.teaching import Measure
from treeparse.sentence import Sentence, nonprojective_words
from treeparse.training import load_config, train
from treeparse.trees import LabeledCRF

Tree = tuple[tuple[int, ...], tuple[str, ...]]
SENTENCES = [Sentence(forms, upos=("NOUN",) * len(forms)) for forms in (("Noun1", "Adj2", "Verb1"), ("Verb3", "Noun5"))]
every_way = pytest.mark.parametrize("how", COMBINATIONS)


def other_parser(sentences: Sequence[Sentence] = TRAINING[::-1], **changes: Any) -> Parser:
    """One of another size, with other vocabularies, that reads tags."""
    torch.manual_seed(4)
    encoder = replace(ENCODER, tag_size=4, tags=("upos",), min_count=2)
    config = ParserConfig(**{"encoder": encoder, "arc_size": 8, "label_size": 6, "dropout": 0.2, **changes})
    parser = Parser.build(config, sentences).double().eval()
    for name, parameter in parser.named_parameters():
        if "embedding" not in name:
            torch.nn.init.normal_(parameter, std=0.4)
    return parser


def relabelled(sentences: Sequence[Sentence], names: dict[str, str]) -> list[Sentence]:
    return [replace(s, labels=tuple(names.get(label, label) for label in s.labels or ())) for s in sentences]


def with_labels_in_order(parser: Parser, order: Sequence[int]) -> Parser:
    """The same parser with its labels in another order."""
    names = [parser.indexer.labels.items[place] for place in order]
    indexer = Indexer(parser.indexer.features, Vocabulary(names, [1] * len(names)))
    other = Parser(parser.config, indexer).double().eval()
    weights = dict(parser.state_dict())
    size = weights["scorer.labels.heads.weight"].shape[1]
    for name in ("heads.weight", "heads.bias", "dependents.weight"):
        weights[f"scorer.labels.{name}"] = weights[f"scorer.labels.{name}"][list(order)]
    mixed = weights["scorer.labels.weight"].unflatten(1, (-1, size))[:, list(order)]
    weights["scorer.labels.weight"] = mixed.flatten(1)
    other.load_state_dict(weights)
    return other


@torch.no_grad()
def law_of(parser: Parser, sentence: Sentence) -> dict[Tree, float]:
    """The log probability of every labelled tree, labels by name."""
    p = parser.distribution(parser.collate([sentence]))
    heads, labels = p.enumerate_support()
    values, names = p.log_prob(heads, labels)[:, 0].tolist(), parser.label_names
    pairs = zip(heads[:, 0, 1:].tolist(), labels[:, 0, 1:].tolist(), strict=True)
    trees = [(tuple(row), tuple(names[label] for label in found)) for row, found in pairs]
    return dict(zip(trees, values, strict=True))


def combined_law(parsers: Sequence[Parser], sentence: Sentence, how: Combination) -> dict[Tree, tuple[float, float]]:
    """The log probability of every labelled tree of some parser, and what it is best by, up to a constant."""
    laws = [law_of(parser, sentence) for parser in parsers]
    trees = list(dict.fromkeys(itertools.chain(*laws)))
    logs = np.array([[law.get(tree, -np.inf) for tree in trees] for law in laws])
    arcs = [{(word, *arc) for word, arc in enumerate(zip(*tree, strict=True))} for tree in trees]
    marginals: list[dict[Any, float]] = []
    for probs in np.exp(logs).tolist():
        found = dict.fromkeys(set().union(*arcs), 0.0)
        for tree, prob in zip(arcs, probs, strict=True):
            for arc in tree:
                found[arc] += prob
        marginals.append(found)
    means = {
        arc: np.mean([m[arc] for m in marginals])
        if how == "marginals"
        else np.mean([np.log(m[arc]) if m[arc] else -np.inf for m in marginals])
        for arc in marginals[0]
    }
    scores = logs.mean(0) if how == "scores" else np.array([sum(means[arc] for arc in tree) for tree in arcs])
    result = np.logaddexp.reduce(logs) if how == "marginals" else scores
    return dict(zip(trees, zip(result - np.logaddexp.reduce(result), scores, strict=True), strict=True))


def tree_of(parse: Parse) -> Tree:
    return parse.heads, parse.labels


@pytest.fixture(scope="module", params=[True, False], ids=["one root", "many roots"])
def parsers(request: pytest.FixtureRequest) -> list[Parser]:
    """Three, of which one reads tags, with their labels in different orders."""
    first = random_parser(replace(CONFIG, single_root=request.param))
    second = other_parser(single_root=request.param)
    third = with_labels_in_order(random_parser(replace(CONFIG, single_root=request.param, arc_size=12)), [2, 0, 1])
    assert len({parser.label_names for parser in (first, second, third)}) > 1
    return [first, second, third]


@every_way
def test_what_is_found_is_best_by_enumeration(parsers: list[Parser], how: Combination) -> None:
    ensemble = Ensemble(parsers, how)
    decoders: list[Decoder] = ["best", "projective", "minimum_risk"]
    for sentence in SENTENCES:
        law = combined_law(parsers, sentence, how)
        for decoder in decoders[: 3 if how == "marginals" else 2]:
            [parse] = ensemble.parse([sentence], decoder=decoder)
            among = [tree for tree in law if decoder != "projective" or not nonprojective_words(tree[0])]
            log_prob, score = law[tree_of(parse)]
            assert score == pytest.approx(max(law[tree][1] for tree in among), abs=1e-7)
            assert parse.log_prob == pytest.approx(log_prob, abs=1e-7)
            if how != "scores":  # those are up to a constant
                assert parse.score == pytest.approx(score, abs=1e-7)
    if how != "marginals":
        for found, sentence in zip(ensemble.kbest(SENTENCES, 12), SENTENCES, strict=True):
            law = combined_law(parsers, sentence, how)
            expected = sorted((log_prob for log_prob, _ in law.values()), reverse=True)[:12]
            assert [parse.log_prob for parse in found] == pytest.approx(expected, abs=1e-7)
            assert [law[tree_of(parse)][0] for parse in found] == pytest.approx(expected, abs=1e-7)
            assert len(set(map(tree_of, found))) == len(found)


@every_way
def test_samples_follow_the_law(parsers: list[Parser], how: Combination) -> None:
    [parses] = Ensemble(parsers, how).sample(SENTENCES[:1], 800, seed=1)
    law = combined_law(parsers, SENTENCES[0], how)
    places = {tree: place for place, tree in enumerate(law)}
    found = [places[tree_of(parse)] for parse in parses]
    log_probs = np.array([log_prob for log_prob, _ in law.values()])
    assert abs(chi_square_z(np.bincount(found, minlength=len(places)), np.exp(log_probs))) < LIMIT
    np.testing.assert_allclose([parse.log_prob for parse in parses], log_probs[found], atol=1e-7)


@pytest.mark.parametrize(("how", "replacement"), [("scores", True), ("marginals", True), ("marginals", False)])
def test_a_list_depends_on_its_place_and_seed_alone(
    how: Combination, replacement: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensemble = Ensemble([random_parser(), other_parser()], how)
    options: dict[str, Any] = {"seed": 3, "replacement": replacement}
    sentences = [*SENTENCES, Sentence(TRAINING[0].forms, TRAINING[0].upos)]
    expected = ensemble.sample(sentences, 9, **options)
    assert all(len(set(map(tree_of, parses))) == len(parses) for parses in expected) or replacement
    assert same_lists(ensemble.sample(sentences, 4, **options), [parses[:4] for parses in expected])
    assert same_lists(ensemble.sample(sentences[1:], 9, first=1, **options), expected[1:])
    monkeypatch.setattr(parsing, "LABEL_SCORES", 1)
    assert same_lists(ensemble.sample(sentences, 9, **options), expected)
    assert not same_lists(ensemble.sample(sentences, 9, first=1, **options), expected)


def test_one_model_is_itself_and_so_is_one_twice() -> None:
    parser, some = random_parser(), TRAINING[:6]
    one, twice = Ensemble([parser]), Ensemble([parser, parser])
    options: dict[str, Any] = {"temperature": 0.7, "seed": 2}
    assert one.parse(some) == parser.parse(some)
    assert one.kbest(some, 4) == parser.kbest(some, 4)
    assert one.sample(some, 4, **options) == parser.sample(some, 4, **options)
    assert all(map(same, twice.parse(some), parser.parse(some)))
    assert same_lists(twice.kbest(some, 4), parser.kbest(some, 4))
    assert same_lists(twice.sample(some, 4, **options), parser.sample(some, 4, **options))
    likely = parser.parse(some, decoder="minimum_risk")
    for ensemble in (Ensemble([parser], "marginals"), Ensemble([parser, parser], "marginals")):
        found = ensemble.parse(some)
        assert all(same(replace(a, score=0), replace(b, score=0)) for a, b in zip(found, likely, strict=True))


@every_way
def test_the_order_of_labels_has_no_say(how: Combination) -> None:
    parser, other = random_parser(), other_parser()
    words = [Sentence(s.forms, s.upos) for s in TRAINING[:6]]
    expected = Ensemble([parser, other], how).parse(words)
    for order in ([2, 1, 0], [1, 2, 0]):
        assert all(map(same, Ensemble([with_labels_in_order(parser, order), other], how).parse(words), expected))


@every_way
def test_labels_that_one_model_lacks(how: Combination) -> None:
    """Impossible in a product, as likely as the others say in a mixture."""
    parsers = [random_parser(), other_parser(relabelled(TRAINING, {"amod": "det"}))]
    ensemble, sentence = Ensemble(parsers, how), SENTENCES[0]
    assert set(ensemble.label_names) == {"root", "amod", "nsubj", "det"}
    law = combined_law(parsers, sentence, how)
    [parse], [drawn] = ensemble.parse([sentence]), ensemble.sample([sentence], 200)
    assert law.get(tree_of(parse), (-np.inf,))[0] == pytest.approx(parse.log_prob)
    labels = {label for each in drawn for label in each.labels}
    assert labels == ({"root", "nsubj"} if how != "marginals" else {"root", "amod", "nsubj", "det"})


def test_models_without_a_common_label_have_a_mixture_alone() -> None:
    parser = random_parser()
    strange = other_parser(relabelled(TRAINING, {"amod": "det", "nsubj": "obj"}))
    with pytest.raises(TreeparseError, match=r"no label in common for arcs between words \(model 1: .*; model 2: "):
        Ensemble([parser, strange])
    assert len(Ensemble([parser, strange], "marginals").parse(SENTENCES)) == 2
    with pytest.raises(TreeparseError, match="no label in common for arcs from the root"):
        Ensemble([parser, other_parser(relabelled(TRAINING, {"root": "top"}))], "log_probs")


def test_what_cannot_be_asked_of_an_ensemble() -> None:
    parser = random_parser()
    several, projective = other_parser(single_root=False), other_parser(trees="projective")
    mixture, alone = Ensemble([parser, other_parser()], "marginals"), cast(Any, "model")
    assert_refused(
        (lambda: Ensemble([]), "at least one model"),
        (lambda: Ensemble([parser], "means"), "Unknown way to combine models 'means'"),
        (lambda: Ensemble([parser, several]), "the first has trees: nonprojective, single_root: true, model 2 has"),
        (lambda: Ensemble([parser, projective]), "model 2 has trees: projective, single_root: true"),
        (lambda: Ensemble.from_pretrained(alone), "one folder; put it into a list of folders"),
        (lambda: mixture.kbest(SENTENCES, 3), "Lists of the best trees need .* marginals: combine them by scores or"),
        (lambda: mixture.sample(SENTENCES, 3, temperature=2), "Temperatures other than 1, here 2, need .* marginals:"),
        (lambda: mixture.check(Sentence(("a",))), "The model reads UPOS"),
        (lambda: mixture.parse([["a"]]), "The model reads UPOS"),
    )
    mixture.check(SENTENCES[0])


def test_models_parse_without_dropout_and_stay_as_they_were() -> None:
    parsers = [random_parser().train(), other_parser()]
    ensemble = Ensemble(parsers)
    assert ensemble.parse(SENTENCES) == ensemble.parse(SENTENCES)
    assert [parser.training for parser in parsers] == [True, False]


def test_raw_text_is_said_where_the_user_stands() -> None:
    sentences = [replace(s, forms=(*s.forms[:-1], ".")) for s in TRAINING]
    torch.manual_seed(1)
    ensemble = Ensemble([Parser.build(CONFIG, sentences)])
    with pytest.warns(UserWarning, match="This looks like raw text") as found:
        ensemble.parse([["They", "left."]])
    assert found[0].filename == __file__


@every_way
def test_saved_models_make_the_same_ensemble(how: Combination, tmp_path: Path) -> None:
    parsers = [random_parser().float(), other_parser().float()]
    for number, parser in enumerate(parsers):
        parser.save_pretrained(tmp_path / str(number))
    ensemble = Ensemble.from_pretrained([tmp_path / "0", tmp_path / "1"], how)
    assert ensemble.to("cpu") is ensemble
    assert ensemble.device == torch.device("cpu")
    assert ensemble.parse(SENTENCES) == Ensemble(parsers, how).parse(SENTENCES)
    p = ensemble.distribution(ensemble.collate(SENTENCES))
    assert p.marginals.shape == (2, 4, 4, 3)
    torch.testing.assert_close(p.marginals.sum((1, 3))[:, 1:].sum(-1), torch.tensor([3.0, 2.0]).double())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parser, folder = random_parser(), tmp_path_factory.mktemp("teacher") / "model"
    parser.float().save_pretrained(folder)
    return folder


def test_a_teacher_teaches_itself_nothing(saved: Path) -> None:
    pupil = Parser.from_pretrained(saved)
    batch = pupil.collate(replace(sentence, heads=None, labels=None) for sentence in TRAINING[:5])
    p, teacher = pupil.distribution(batch), Teacher([str(saved)])
    torch.testing.assert_close(Divergence(teacher, "kl")(p, batch), torch.zeros(5).double(), atol=1e-6, rtol=0.0)
    torch.testing.assert_close(Divergence(teacher)(p, batch), p.entropy(), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(SilverTrees(reference=teacher)(p, batch), -p.log_prob(p.mode))
    [surer] = Teacher([str(saved)], temperature=0.5).distributions(p, batch)
    torch.testing.assert_close(surer.entropy(), p.tempered(0.5).entropy(), atol=1e-6, rtol=1e-6)
    assert not surer.entropy().requires_grad


def test_labels_go_by_their_names(saved: Path) -> None:
    """A pupil with the teacher's labels in another order, one of them missing, and one more."""
    own = Parser.from_pretrained(saved)
    labels = own.indexer.label_names
    lost = next(name for name in labels if name != "root")
    sentences = relabelled(TRAINING, {lost: "a-label-of-its-own"})
    features = own.indexer.features
    indexer = Indexer.build([*sentences[::-1]], features)
    batch = indexer.collate(sentences[:4])
    assert set(batch.label_names) == {*labels, "a-label-of-its-own"} - {lost}
    assert batch.label_names != labels
    theirs = own.distribution(own.collate(sentences[:4]))
    p: Any = Teacher([str(saved)]).distributions(theirs, batch)[0]
    heads, found = theirs.sample((50,))
    order = torch.tensor([batch.label_names.index(name) if name in batch.label_names else -1 for name in labels])
    renamed = torch.where(found >= 0, order[found.clamp_min(0)], -1)
    possible = ~((found >= 0) & (renamed < 0)).any(-1)
    assert possible.any()
    assert not possible.all()
    # Its trees without the lost label keep the ratios of their probabilities.
    difference = p.log_prob(heads, renamed) - theirs.log_prob(heads, found)
    for item in range(4):
        differences = difference[possible[:, item], item]
        torch.testing.assert_close(differences, differences[:1].expand(differences.shape), atol=1e-5, rtol=1e-5)
    assert (p.log_prob(heads, renamed)[~possible] == -torch.inf).all()


def test_no_label_in_common(saved: Path) -> None:
    own = Parser.from_pretrained(saved)
    others = relabelled(TRAINING, {name: f"other-{name}" for name in own.indexer.label_names})
    batch = Indexer.build(others, own.indexer.features).collate(others[:2])
    with pytest.raises(TreeparseError, match="have no label in common; the teacher's are"):
        Teacher([str(saved)]).distributions(own.distribution(own.collate(others[:2])), batch)
    with pytest.raises(TreeparseError, match="at least one model"):
        Teacher([])


def test_a_pupil_learns_from_a_teacher_alone(trained_config: Path, tmp_path: Path) -> None:
    """And neither its model nor the state of its run holds the teacher."""
    teacher = trained_config.parent / "run" / "model"
    settings = yaml.safe_load(trained_config.read_text(encoding="utf-8"))
    reference = {"class_path": "treeparse.model.Teacher", "init_args": {"models": [str(teacher)]}}
    settings["objective"] = {"class_path": "treeparse.objectives.Divergence", "init_args": {"reference": reference}}
    settings |= {"output": str(tmp_path / "pupil"), "seed": 5}
    settings["data"] |= {"batch_words": 40}
    settings["optimization"] |= {"epochs": 20, "dev_every": 5, "learning_rate": 0.02}
    path = tmp_path / "pupil.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    model = train(load_config(path), quiet=True)
    words = [s.words for s in load_treebank(settings["data"]["dev"])]
    pupil, original = (Parser.from_pretrained(folder).parse(words) for folder in (model, teacher))
    pairs = [pair for a, b in zip(pupil, original, strict=True) for pair in zip(a.heads, b.heads, strict=True)]
    assert sum(a == b for a, b in pairs) > 0.9 * len(pairs)
    with safe_open(model / "model.safetensors", "pt") as mine, safe_open(teacher / "model.safetensors", "pt") as its:
        assert set(mine.keys()) == set(its.keys())
    state = torch.load(model.parent / "checkpoints" / "last.ckpt", weights_only=True)
    assert not [name for name in state["state_dict"] if name.startswith("objective.")]


def test_another_architecture_can_be_a_teacher(saved: Path) -> None:
    torch.manual_seed(1)
    pupil = Parser.build(replace(CONFIG, arc_size=8, label_size=4), TRAINING[::-1]).eval()
    batch = pupil.collate(TRAINING[:3])
    value = Divergence(Teacher([str(saved), str(saved)]))(pupil.distribution(batch), batch)
    assert torch.isfinite(value).all()
    value.sum().backward()
    assert all(torch.isfinite(w.grad).all() for w in pupil.parameters() if w.grad is not None)


def test_a_teacher_whose_roots_have_other_labels_too_teaches_what_its_pupil_can_say(tmp_path: Path) -> None:
    """The pupil reserves the label root, the teacher does not: both laws are over the pupil's trees."""
    pupil = random_parser()
    pairs = {"root": "nsubj", "nsubj": "root"}
    mixed = [*TRAINING, *relabelled(TRAINING, pairs)]
    teacher = Parser.build(CONFIG, mixed)
    teacher.save_pretrained(tmp_path / "free")
    assert teacher.root_label < 0 <= pupil.root_label
    batch = pupil.collate(replace(sentence, heads=None, labels=None) for sentence in TRAINING[:5])
    p = pupil.distribution(batch)
    reference = Teacher([str(tmp_path / "free")])
    [q] = cast(Sequence[LabeledCRF], reference.distributions(p, batch))
    heads, labels = q.sample((50,))
    words = heads >= 0
    assert ((labels == pupil.root_label) == (heads == 0))[words].all()
    for measure in get_args(Measure):
        assert Divergence(reference, measure)(p, batch).isfinite().all()
    Parser.build(CONFIG, relabelled(TRAINING, {"root": "sent"})).save_pretrained(tmp_path / "other")
    with pytest.raises(TreeparseError, match="does not know this label"):
        Teacher([str(tmp_path / "other")]).distributions(p, batch)
