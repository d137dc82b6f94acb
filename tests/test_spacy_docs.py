"""spaCy's Docs: parsed sentence by sentence, and given back with their trees; what is not of the tree stays."""

import random
from dataclasses import replace
from typing import Any

import pytest
from helpers.parsed_files import assert_same
from helpers.parsers import CONFIG, TRAINING, random_parser

from treeparse.data.docs import fill_doc
from treeparse.data.mapping import as_sentence, as_sentences
from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.sentence import Sentence, nonprojective_words

spacy = pytest.importorskip("spacy")
VOCAB = spacy.vocab.Vocab()


def doc_of(*sentences: list[str], **columns: Any) -> Any:
    """A Doc with boundaries of sentences."""
    words = [word for sentence in sentences for word in sentence]
    starts = [place == 0 for sentence in sentences for place in range(len(sentence))]
    return spacy.tokens.Doc(VOCAB, words=words, sent_starts=starts, **columns)


SPACED = [["\n", " ", "Noun1", " ", "Adj2", "Verb1", "\n\n"], [" "], ["Verb1", "Noun2"], ["\t", " "]]
SPACED_WORDS = [["Noun1", "Adj2", "Verb1"], ["Verb1", "Noun2"]]


@pytest.fixture(scope="module")
def parser() -> Parser:
    return random_parser()


def heads_and_labels(doc: Any) -> list[tuple[int, str]]:
    return [(token.head.i, token.dep_) for token in doc]


def test_the_words_of_docs_are_those_that_are_not_white_space(parser: Parser) -> None:
    docs = [doc_of(*SPACED), spacy.tokens.Doc(VOCAB), doc_of([" "]), doc_of(["Verb1"])]
    words = [*SPACED_WORDS, ["Verb1"]]
    assert [list(sentence.forms) for sentence in as_sentences(docs)] == words
    expected = parser.parse(words)
    assert parser.parse(docs) == expected
    assert_same([list(parser.stream(iter(docs), ahead=2))], [expected])
    assert Ensemble([parser]).parse([span for doc in docs for span in doc.sents if span.text.strip()]) == expected
    assert parser.kbest(docs, 3) == parser.kbest(words, 3)
    assert parser.sample(docs, 3, seed=1) == parser.sample(words, 3, seed=1)
    one = spacy.tokens.Doc(VOCAB, words=[word for sentence in SPACED for word in sentence])
    assert [sentence.forms for sentence in as_sentences([one])] == [("Noun1", "Adj2", "Verb1", "Verb1", "Noun2")]


def test_docs_come_back_with_their_trees(parser: Parser) -> None:
    docs = [doc_of([" "]), spacy.tokens.Doc(VOCAB), doc_of(*SPACED), doc_of(["Verb1"]), spacy.tokens.Doc(VOCAB)]
    tokens = docs[2][3]
    first, second = parser.parse(SPACED_WORDS)
    for model in (parser, Ensemble([parser])):
        found = list(model.annotate(iter(docs), ahead=1))
        assert [id(doc) for doc in found] == [id(doc) for doc in docs]
        words = [2, 4, 5]
        of_words = {
            place: (place, "ROOT") if head == 0 else (words[head - 1], label)
            for place, head, label in zip(words, first.heads, first.labels, strict=True)
        }
        spaces = {0: (2, "dep"), 1: (0, "dep"), 3: (2, "dep"), 6: (5, "dep"), 7: (7, "ROOT")}
        of_words |= {
            place + 8: (place + 8, "ROOT") if head == 0 else (head + 7, label)
            for place, (head, label) in enumerate(zip(second.heads, second.labels, strict=True))
        }
        spaces |= {10: (10, "ROOT"), 11: (10, "dep")}
        assert heads_and_labels(docs[2]) == [(of_words | spaces)[place] for place in range(12)]
        assert [span.start for span in docs[2].sents] == [0, 7, 8, 10]
        assert tokens.head.i == 2 and docs[2].has_annotation("DEP")
        assert heads_and_labels(docs[0]) == heads_and_labels(docs[3]) == [(0, "ROOT")]


@pytest.mark.parametrize("single_root", [True, False])
def test_sentences_stay_whatever_the_trees(single_root: bool) -> None:
    """Arcs that cross, and several roots, from which spaCy would guess other sentences."""
    stream, crossing = random.Random(1), 0
    for _ in range(40):
        sentences = [[f"w{word}" for word in range(stream.randint(1, 12))] for _ in range(3)]
        parses = [random_parse(words, stream, single_root) for words in sentences]
        crossing += any(nonprojective_words(parse.heads) for parse in parses)
        doc = doc_of(*sentences)
        fill_doc(doc, parses)
        assert [len(span) for span in doc.sents] == [len(words) for words in sentences]
        for span, parse in zip(doc.sents, parses, strict=True):
            found = [0 if token.head == token else token.head.i - span.start + 1 for token in span]
            assert tuple(found) == parse.heads
            assert [token.dep_ for token in span] == ["ROOT" if label == "root" else label for label in parse.labels]
    assert crossing


def random_parse(words: list[str], stream: random.Random, single_root: bool) -> Parse:
    """A tree built by words in any order, each hung from one before it."""
    order = stream.sample(range(1, len(words) + 1), len(words))
    heads = {order[0]: 0}
    for place, word in enumerate(order[1:], 1):
        heads[word] = stream.choice(order[:place] if single_root else [0, *order[:place]])
    found = tuple(heads[word] for word in range(1, len(words) + 1))
    labels = tuple("x:y" if head else "root" for head in found)
    return Parse(tuple(words), found, labels, 0.0, 0.0)


def test_tags_are_read_and_all_else_is_kept() -> None:
    doc = doc_of(["They", "saw"], pos=["PRON", "VERB"], morphs=["Case=Nom|Number=Plur", ""], lemmas=["they", "see"])
    [sentence] = as_sentences([doc])
    expected = Sentence(("They", "saw"), upos=("PRON", "VERB"), feats=("Case=Nom|Number=Plur", "_"))
    assert sentence == as_sentence(doc[:]) == expected
    config = replace(CONFIG, encoder=replace(CONFIG.encoder, tags=("upos",)))
    tagged = [replace(each, upos=tuple("PRON" for _ in each.forms)) for each in TRAINING]
    reader = Parser.build(config, tagged).eval()
    [again] = reader.annotate([doc])
    assert [token.pos_ for token in again] == ["PRON", "VERB"] and again[1].lemma_ == "see"
    assert str(again[0].morph) == "Case=Nom|Number=Plur"
    with pytest.raises(TreeparseError, match="reads UPOS, but the sentence that starts with 'They'"):
        reader.parse([doc_of(["They"])])


def test_mistakes_become_sentences(parser: Parser) -> None:
    doc = doc_of(["Verb1"])
    for call in (parser.parse, parser.annotate, parser.stream):
        with pytest.raises(TreeparseError, match=r"got one Doc: .* \[doc\]"):
            call(doc)
        with pytest.raises(TreeparseError, match="got one sentence"):
            call(doc[:])
    with pytest.raises(TypeError, match="A tree needs a sentence that can hold it"):
        list(parser.annotate([doc[:]]))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TreeparseError, match="of 1 words cannot have a tree of 2"):
        fill_doc(doc, parser.parse([["a", "b"]]))
    with pytest.raises(TreeparseError, match="1 sentences with words cannot have 2 trees"):
        fill_doc(doc, parser.parse([["a"], ["b"]]))
    assert not doc.has_annotation("DEP")
