"""The component of spaCy pipelines: the parser's trees in Docs, and pipelines that carry their model."""

import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.forked import Forks
from helpers.parsers import CONFIG, TRAINING, random_parser

from treeparse.errors import TreeparseError
from treeparse.model import Parse, Parser
from treeparse.model.tagging import TagWeights

spacy = pytest.importorskip("spacy")
pytest.importorskip("treeparse.spacy_component")

ROOT = Path(__file__).parents[1]
TEXTS = ["Noun1 Adj2 Verb1. Verb1", "", "Verb1 Noun2  Adj1?\n Noun1", "Noun1 Noun2 Adj2 Verb1 Noun3."]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("spacy") / "model"
    random_parser().save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def parser(model: str) -> Parser:
    return Parser.from_pretrained(model)


def pipeline(**config: Any) -> Any:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("treeparse", config=config)
    return nlp


def words_of(sentence: Any) -> list[Any]:
    return [token for token in sentence if not token.is_space]


def assert_tree(sentence: Any, parse: Parse) -> None:
    words = words_of(sentence)
    heads = [0 if word.head == word else words.index(word.head) + 1 for word in words]
    assert tuple(heads) == parse.heads
    assert [word.dep_.replace("ROOT", "root") for word in words] == list(parse.labels)


def trees(docs: Sequence[Any]) -> list[list[tuple[str, int, str]]]:
    return [[(token.text, token.head.i, token.dep_) for token in doc] for doc in docs]


def test_docs_have_the_trees_of_the_parser(model: str, parser: Parser) -> None:
    nlp, plain = pipeline(model=model), spacy.blank("en")
    plain.add_pipe("sentencizer")
    for docs in (list(map(nlp, TEXTS)), list(nlp.pipe(TEXTS, batch_size=3))):
        for doc, text in zip(docs, TEXTS, strict=True):
            before = plain(text)
            assert [span.text for span in doc.sents] == [span.text for span in before.sents]
            for sentence in doc.sents:
                [parse] = parser.parse([[word.text for word in words_of(sentence)]])
                assert_tree(sentence, parse)
    assert len(list(nlp(TEXTS[2]).sents)) == 2
    alone = spacy.blank("en")
    alone.add_pipe("treeparse", config={"model": model, "decoder": "projective"})
    doc = alone(TEXTS[0])
    [parse] = parser.parse([[token.text for token in doc]], decoder="projective")
    assert_tree(doc[:], parse)


def test_probabilities_and_lists(model: str, parser: Parser) -> None:
    nlp = pipeline(model=model, probabilities=True, kbest=3)
    for doc in nlp.pipe(TEXTS):
        again = spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes())
        for sentence in again.sents:
            words = words_of(sentence)
            [parse] = parser.parse([[word.text for word in words]], probabilities=True)
            arcs, labels = parse.arc_probs, parse.label_probs
            assert [word._.arc_prob for word in words] == pytest.approx(arcs, abs=1e-5)
            assert [word._.label_prob for word in words] == pytest.approx(labels, abs=1e-5)
            assert all(token._.arc_prob is None for token in sentence if token.is_space)
            assert sentence._.tree_log_prob == pytest.approx(parse.log_prob, abs=1e-5)
            assert sentence._.tree_entropy == pytest.approx(parse.entropy, abs=1e-5)
            [best] = parser.kbest([[word.text for word in words]], 3)
            for found, expected in zip(sentence._.kbest, best, strict=True):
                assert found["log_prob"] == pytest.approx(expected.log_prob, abs=1e-5)
                copy = spacy.tokens.Doc(
                    nlp.vocab,
                    words=[token.text for token in sentence],
                    heads=[head - sentence.start for head in found["heads"]],
                    deps=found["deps"],
                )
                assert_tree(copy[:], expected)
    assert pipeline(model=model)("Verb1")[0]._.arc_prob is None


@pytest.mark.timeout(150)  # for ever is what it would take
def test_worker_processes_do_not_wait_for_threads(model: str) -> None:
    """Torch's threads, which their parent has, are not there after a fork."""
    nlp, before = pipeline(model=model), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        expected = trees(list(nlp.pipe(TEXTS * 5)))
        assert trees(list(nlp.pipe(TEXTS * 5, n_process=2, batch_size=5))) == expected
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


PROGRAM = """
import sys
site, project, folder, *texts = sys.argv[1:]
assert "spacy" not in sys.modules and "treeparse" not in sys.modules
sys.path[:0] = [site, project]
import spacy, torch
torch.set_num_threads(1)
for doc in spacy.load(folder).pipe(texts):
    print([(token.text, token.head.i, token.dep_, token._.arc_prob) for token in doc])
"""


@pytest.mark.usefixtures("one_thread")
def test_a_saved_pipeline_carries_its_model(tmp_path: Path, model: str, forks: Forks) -> None:
    """In a new process that finds the component by its entry point, after the model's own folder is gone."""
    folder, saved = tmp_path / "model", tmp_path / "pipeline"
    shutil.copytree(model, folder)
    nlp = pipeline(model=str(folder), probabilities=True)
    expected = list(nlp.pipe(TEXTS))
    nlp.to_disk(saved)
    nlp.to_disk(saved)  # a second time, over the first
    shutil.rmtree(folder)
    installed = tmp_path / "site" / "treeparse_entry-1.dist-info"
    installed.mkdir(parents=True)
    installed.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: treeparse-entry\nVersion: 1\n")
    installed.joinpath("entry_points.txt").write_text(f"[spacy_factories]\ntreeparse = {entry_point().value}\n")
    done = forks.run(PROGRAM, installed.parent, ROOT, saved, *TEXTS, anew=["treeparse"])
    assert done.returncode == 0, done.stderr
    found = done.stdout.splitlines()
    assert found == [
        str([(token.text, token.head.i, token.dep_, token._.arc_prob) for token in doc]) for doc in expected
    ]


def entry_point() -> EntryPoint:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    group = "spacy_factories"
    [(name, value)] = project["entry-points"][group].items()
    return EntryPoint(name, value, group)


def test_bytes_carry_the_model(model: str) -> None:
    nlp = pipeline(model=model)
    again = pipeline().from_bytes(nlp.to_bytes())
    assert trees(list(again.pipe(TEXTS))) == trees(list(nlp.pipe(TEXTS)))


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that predicts tags: those of its training data are made of the words."""
    upos = [tuple("NOUN" if form.startswith("Noun") else "VERB" for form in each.forms) for each in TRAINING]
    sentences = [
        replace(each, upos=tags, xpos=tags, feats=tuple("_" if tag == "NOUN" else "Tense=Past" for tag in tags))
        for each, tags in zip(TRAINING, upos, strict=True)
    ]
    parser = Parser.build(replace(CONFIG, tags=TagWeights(upos=1.0, xpos=1.0, feats=1.0)), sentences)
    folder = tmp_path_factory.mktemp("tagger") / "model"
    parser.save_pretrained(folder)
    return str(folder)


def test_tags_are_set_where_they_are_asked_for(tagger: str) -> None:
    text = TEXTS[3]
    doc = pipeline(model=tagger, tags=True)(text)
    [parse] = Parser.from_pretrained(tagger).parse([[token.text for token in doc]])
    assert [token.pos_ for token in doc] == list(parse.upos or ())
    assert [token.tag_ for token in doc] == list(parse.xpos or ())
    assert [str(token.morph) or "_" for token in doc] == list(parse.feats or ())
    assert not pipeline(model=tagger)(text).has_annotation("POS")


def test_a_faulty_doc_goes_to_the_error_handler_alone(tmp_path: Path) -> None:
    sentences = [replace(each, upos=tuple("NOUN" for _ in each.forms)) for each in TRAINING]
    Parser.build(replace(CONFIG, encoder=replace(CONFIG.encoder, tags=("upos",))), sentences).save_pretrained(
        tmp_path / "model"
    )
    nlp = pipeline(model=str(tmp_path / "model"))
    docs = [nlp.make_doc(text) for text in ("Noun1 Noun2", "Verb1", "Noun2")]
    for token in [*docs[0], *docs[2]]:
        token.pos_ = "NOUN"
    with pytest.raises(TreeparseError, match="reads UPOS, but the sentence that starts with 'Verb1'"):
        list(nlp.pipe(docs))
    told: list[tuple[str, list[str]]] = []
    nlp.set_error_handler(lambda name, proc, docs, error: told.append((name, [doc.text for doc in docs])))
    assert [doc.text for doc in nlp.pipe(docs)] == ["Noun1 Noun2", "Noun2"]
    assert told == [("treeparse", ["Verb1"])]


def test_mistakes_become_sentences(model: str, tmp_path: Path) -> None:
    with pytest.raises(TreeparseError, match="The component treeparse has no model: add it by"):
        pipeline()("Verb1")
    with pytest.raises(TreeparseError, match="is no model folder"):
        pipeline(model=str(tmp_path))("Verb1")
    with pytest.raises(TreeparseError, match="predicts no tags"):
        pipeline(model=model, tags=True)("Verb1")
    for config, problem in (
        ({"kbest": -1}, "kbest must be 0 or more"),
        ({"batch_words": 0}, "batch_words 1 or more"),
        ({"decoder": "finest"}, "Unknown decoder 'finest'"),
        ({"kbest": 2, "decoder": "minimum_risk"}, "it has no list of"),
    ):
        with pytest.raises(TreeparseError, match=problem):
            pipeline(model=model, **config)
