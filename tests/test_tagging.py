"""Tags beside trees: their loss, what parses hold of them, and several models as one."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from helpers.parsers import CONFIG, TRAINING, parser_encoder
from torch import Tensor
from torch.nn import functional

from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser, ParserConfig
from treeparse.model.tagging import Tagging, TagWeights, shared_tags
from treeparse.objectives import TreeLikelihood
from treeparse.sentence import Sentence

FEATS = {"NOUN": "Case=Nom|Number=Sing", "VERB": "Number=Sing|Tense=Past"}
TAGGED = [replace(s, xpos=None, feats=tuple(FEATS.get(tag, "_") for tag in s.upos or ())) for s in TRAINING]
SENTENCES = [["Noun1", "Adj2", "Verb1"], ["Verb3"], ["Noun5", "Noun1", "Noun2", "Verb2"]]


def tagger(sentences: list[Sentence] = TAGGED, seed: int = 6, **weights: float) -> Parser:
    """In double precision, of weights that are far from zero."""
    torch.manual_seed(seed)
    config = replace(CONFIG, tags=TagWeights(**weights or {"upos": 2.0, "feats": 0.5}))
    parser = Parser.build(config, sentences).double().eval()
    for name, parameter in parser.named_parameters():
        if "embedding" not in name:
            torch.nn.init.normal_(parameter, std=4.0 if "tags.columns" in name and "weight" in name else 0.4)
    return parser


def logits(parser: Parser, sentences: list[Sentence] | list[list[str]], column: str) -> Tensor:
    """``(B, n+1, tags)``, from the weights."""
    weights = parser.state_dict()
    nodes, layer = parser_encoder(parser)(parser.collate(sentences)), f"scorer.tags.columns.{column}"
    if column == "feats":
        values = nodes @ weights[f"{layer}.linear.weight"].T + weights[f"{layer}.linear.bias"]
        names = [*dict.fromkeys(feature for tag in parser.tag_names[column] for feature in tag.split("|"))]
        assert (*names,) == ("Case=Nom", "Number=Sing", "_", "Tense=Past")
        names.remove("_")
        of_feature = {name: values[..., row] for row, name in enumerate(names)} | {"_": torch.zeros(())}
        tags = [sum(of_feature[feature] for feature in tag.split("|")) for tag in parser.tag_names[column]]
        return torch.stack([torch.as_tensor(tag).expand(nodes.shape[:2]) for tag in tags], -1)
    return nodes @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]


def expected_tags(parser: Parser, column: str) -> list[tuple[str, ...] | None]:
    ids, names = logits(parser, SENTENCES, column).argmax(-1), [*parser.tag_names[column]]
    return [tuple(names[tag] for tag in row[1 : len(s) + 1]) for row, s in zip(ids.tolist(), SENTENCES, strict=True)]


def test_the_loss_is_cross_entropy_over_words_whose_tag_is_known() -> None:
    parser = tagger()
    stripped = replace(TAGGED[1], upos=("_",) * len(TAGGED[1]))
    sentences = [TAGGED[0], stripped, replace(TAGGED[2], feats=None)]
    batch = parser.collate(sentences)
    loss, terms = parser.loss_and_terms(batch, TreeLikelihood())
    assert [(term.name, term.weight) for term in terms] == [("TreeLikelihood", 1.0), ("UPOS", 2.0), ("FEATS", 0.5)]
    means = []
    for term, column in zip(terms[1:], ("upos", "feats"), strict=True):
        names = parser.tag_names[column]
        gold = torch.full((3, batch.heads.shape[1]), -100) if batch.heads is not None else torch.empty(0)
        for row, sentence in zip(gold, sentences, strict=True):
            for word, tag in enumerate(getattr(sentence, column) or (), 1):
                known = (sentence.upos or ())[word - 1] != "_" or tag != "_"
                row[word] = names.index(tag) if known else -100
        means.append(functional.cross_entropy(logits(parser, sentences, column).transpose(1, 2), gold))
        assert term.words == int((gold != -100).sum()) > 0
        torch.testing.assert_close(term.mean, means[-1])
    trees = TreeLikelihood()(parser.distribution(batch), batch).sum() / batch.num_words
    torch.testing.assert_close(loss, trees + 2.0 * means[0] + 0.5 * means[1])
    torch.testing.assert_close(parser.loss(batch, TreeLikelihood()), loss)
    with torch.no_grad():
        parses, measured = parser.measure(batch, sentences, TreeLikelihood())
    assert measured == pytest.approx(loss.item()) and parses[0].upos is not None


def test_sentences_without_tags_are_passed_over() -> None:
    parser = tagger()
    bare = [Sentence(s.forms, heads=s.heads, labels=s.labels) for s in TAGGED[:4]]
    loss, terms = parser.loss_and_terms(parser.collate(bare), TreeLikelihood())
    assert [(term.name, term.mean, term.words) for term in terms[1:]] == [("UPOS", None, 0), ("FEATS", None, 0)]
    mixed = [*bare, TAGGED[4]]
    (_, together), (_, alone) = (
        parser.loss_and_terms(parser.collate(s), TreeLikelihood()) for s in (mixed, TAGGED[4:5])
    )
    torch.testing.assert_close(together[1].mean, alone[1].mean)
    loss.backward()
    assert all(weights.grad is None for weights in parser.get_submodule("scorer.tags").parameters())


def test_parses_have_the_likeliest_tags() -> None:
    parser = tagger()
    parses = parser.parse(SENTENCES, batch_words=8)
    assert [parse.upos for parse in parses] == expected_tags(parser, "upos")
    assert [parse.feats for parse in parses] == expected_tags(parser, "feats")
    assert {parse.xpos for parse in parses} == {None}
    assert len({tag for parse in parses for tag in parse.upos or ()}) > 1
    assert parses[0].tags == {"upos": parses[0].upos, "feats": parses[0].feats}
    for lists in (parser.kbest(SENTENCES, 3), parser.sample(SENTENCES, 3)):
        for parse, listed in zip(parses, lists, strict=True):
            assert all(each.tags == parse.tags for each in listed)


def test_trees_are_those_of_the_same_parser_without_tags() -> None:
    parser = tagger()
    plain = Parser.build(CONFIG, TAGGED).double().eval()
    weights = parser.state_dict()
    plain.load_state_dict({name: weights[name] for name in plain.state_dict()})
    untagged = [replace(parse, upos=None, feats=None) for parse in parser.parse(SENTENCES)]
    assert plain.parse(SENTENCES) == untagged
    assert not plain.tag_names and plain.state_dict().keys() < weights.keys()


def test_a_new_parser_draws_what_it_draws_without_tags() -> None:
    torch.manual_seed(5)
    plain = Parser.build(CONFIG, TAGGED).state_dict()
    torch.manual_seed(5)
    tagged = Parser.build(replace(CONFIG, tags=TagWeights(upos=1.0)), TAGGED).state_dict()
    assert all(torch.equal(tagged[name], weights) for name, weights in plain.items())


def test_saved_and_loaded(tmp_path: Path) -> None:
    parser = tagger()
    parser.float().save_pretrained(tmp_path / "model")
    again = Parser.from_pretrained(tmp_path / "model")
    assert again.parse(SENTENCES) == parser.parse(SENTENCES)
    assert again.config == parser.config and again.tag_names == parser.tag_names
    text = (tmp_path / "model" / "config.json").read_text(encoding="utf-8")
    (tmp_path / "model" / "config.json").write_text(text.replace('"feats": 0.5', '"feats": 0.0'), encoding="utf-8")
    with pytest.raises(TreeparseError, match=r"weights of the tags upos, but there are vocabularies of upos, feats\."):
        Parser.from_pretrained(tmp_path / "model")


def test_auto_is_a_number_for_columns_that_there_are_and_that_are_not_read() -> None:
    auto = TagWeights(upos="auto", xpos="auto", feats="auto")
    assert auto.columns() == {} and replace(auto, xpos=2.0).columns() == {"xpos": 2.0}
    parser = Parser.build(replace(CONFIG, tags=auto), TAGGED)
    assert parser.config.tags == TagWeights(upos=1.0, feats=1.0) and [*parser.tag_names] == ["upos", "feats"]
    reads = replace(CONFIG, tags=auto, encoder=replace(CONFIG.encoder, tags=("upos",)))
    assert Parser.build(reads, TAGGED).config.tags == TagWeights(feats=1.0)
    bare = [replace(s, upos=("_",) * len(s), feats=None) for s in TAGGED]
    assert Parser.build(replace(CONFIG, tags=auto), bare).config.tags == TagWeights()
    words = sum(map(len, TAGGED))
    fewer, more = (auto.resolved(TAGGED * (100_000 // words + extra), ()).columns() for extra in (0, 1))
    assert fewer and not more and 100_000 % words


def test_weights_of_tags() -> None:
    assert TagWeights(xpos=1, feats=0.0).columns() == {"xpos": 1.0}
    assert asdict(ParserConfig())["tags"] == {"upos": 0.0, "xpos": 0.0, "feats": 0.0}
    for weight in (-1.0, float("nan"), float("inf")):
        with pytest.raises(TreeparseError, match=r"tags\.xpos must be 0 or more and finite"):
            TagWeights(xpos=weight)
    with pytest.raises(TreeparseError, match="predicts no tags"):
        Parser.build(CONFIG, TAGGED).check_tags()
    tagger().check_tags()


def test_several_models_by_the_mean_of_log_probabilities() -> None:
    """Tags go by their names; those that one does not know are left out, as are columns."""
    other = [replace(s, upos=tuple({"ADJ": "X"}.get(t, t) for t in s.upos or ())) for s in TAGGED[::-1]]
    first, second = tagger(upos=1.0, feats=1.0), tagger([*other, TAGGED[0]], seed=4, upos=1.0)
    known = [set(parser.tag_names["upos"]) for parser in (first, second)]
    assert "X" in known[1] and second.tag_names["upos"] != first.tag_names["upos"]
    ensemble = Ensemble([first, second])
    assert list(ensemble.tag_names) == ["upos"]
    names = list(ensemble.tag_names["upos"])
    assert set(names) == known[0] & known[1]
    sums = torch.zeros(len(SENTENCES), 5, len(names), dtype=torch.float64)
    for parser in (first, second):
        log_probs = logits(parser, SENTENCES, "upos").log_softmax(-1)
        sums += log_probs[..., [list(parser.tag_names["upos"]).index(name) for name in names]]
    expected = [
        tuple(names[tag] for tag in row[1 : len(s) + 1])
        for row, s in zip(sums.argmax(-1).tolist(), SENTENCES, strict=True)
    ]
    parses = ensemble.parse(SENTENCES)
    assert [parse.upos for parse in parses] == expected
    assert {parse.feats for parse in parses} == {None}
    assert [parse.upos for parse in Ensemble([first, second], "marginals").parse(SENTENCES)] == expected
    assert Ensemble([first]).parse(SENTENCES)[2].tags == first.parse(SENTENCES)[2].tags


def test_models_without_tags_in_common() -> None:
    ensemble = Ensemble([tagger(upos=1.0), tagger(feats=1.0)])
    assert ensemble.parse(SENTENCES)[0].tags == {}
    with pytest.raises(TreeparseError, match="models of an ensemble have none in common"):
        ensemble.check_tags()
    assert shared_tags([{"upos": ["A", "B"]}, {"upos": ["C"]}]) == {}


def test_some_of_the_tags_under_other_ids() -> None:
    tagging = Tagging(
        {"upos": torch.tensor([[[0.0, -1.0, -2.0]]]), "feats": torch.zeros(1, 1, 1)}, {"upos": "ABC", "feats": "_"}
    )
    chosen = tagging.restrict_to({"upos": ["C", "A"]})
    assert chosen.log_probs.keys() == {"upos"} and chosen.log_probs["upos"].tolist() == [[[-2.0, 0.0]]]
