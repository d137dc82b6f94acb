"""Random draws and the noun phrases of the demo grammar."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from scripts.support.demo_grammar import lexicon
from scripts.support.demo_grammar.morphology import THIRD_SINGULAR, VOWELS, Agreement, Word, noun, word

T = TypeVar("T")

UNSEEN_SHARE = 0.25  # of the draws from a class that has unseen words, where these are allowed


class Draw:
    """The source of every choice; ``doubt`` is the expected number of errors of the best possible parser so far.

    Everything comes from ``Random.random``, whose stream no version of Python has changed.
    """

    def __init__(self, rng: Random, *, unseen: bool) -> None:
        self._rng, self._unseen = rng, unseen
        self.doubt = 0.0

    def chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def one(self, choices: Sequence[T]) -> T:
        return choices[int(self._rng.random() * len(choices))]

    def word(self, choices: str) -> str:
        return self.one(choices.split())

    def weighted(self, weights: dict[str, float]) -> str:
        point = self._rng.random() * sum(weights.values())
        for name, weight in weights.items():
            point -= weight
            if point < 0:
                return name
        return next(reversed(weights))

    def open_class(self, entry: tuple[str, str]) -> str:
        known, unseen = entry
        return self.word(unseen if unseen and self._unseen and self.chance(UNSEEN_SHARE) else known)


@dataclass(eq=False)
class Phrase:
    """Words in order, the one that the others hang from, and what the rest of the sentence must know of them."""

    head: Word
    words: list[Word]
    agreement: Agreement = THIRD_SINGULAR
    kind: str = ""  # a noun's class, "name" or "pronoun"
    tense: str = "Past"


Part = TypeVar("Part", Word, Phrase)


def hang(part: Part, head: Word, deprel: str) -> Part:
    """Make a word, or a phrase's head, depend on a word."""
    top = part.head if isinstance(part, Phrase) else part
    top.head, top.deprel = head, deprel
    return part


def words_of(*parts: Word | Phrase) -> list[Word]:
    """The words of several parts in order."""
    return [item for part in parts for item in (part.words if isinstance(part, Phrase) else [part])]


def comma(head: Word) -> Word:
    """A comma that hangs from a word."""
    return hang(word(",", "PUNCT", ","), head, "punct")


def pronoun(draw: Draw, case: str) -> Phrase:
    """A personal pronoun; ``case`` is Nom or Acc."""
    person, number, gender = draw.one(list(lexicon.PRONOUNS))
    nominative, accusative, _ = lexicon.PRONOUNS[person, number, gender]
    feats = [f"Case={case}", *([f"Gender={gender}"] if gender else []), f"Number={number}", f"Person={person}"]
    form = nominative if case == "Nom" else accusative
    head = word(form, "PRON", "PRP", "|".join([*feats, "PronType=Prs"]), lemma=nominative)
    return Phrase(head, [head], Agreement(person, number), "pronoun")


def name(draw: Draw) -> Phrase:
    """A person's name."""
    head = word(draw.open_class(lexicon.NAMES), "PROPN", "NNP", "Number=Sing")
    return Phrase(head, [head], kind="name")


def noun_group(draw: Draw, kind: str, number: str | None = None) -> Phrase:
    """A noun of a class with determiner and adjectives, and nothing after it."""
    number = number or ("Plur" if draw.chance(0.3) else "Sing")
    head = noun(draw.open_class(lexicon.NOUNS[kind]), number)
    before = _adjectives(draw, head, kind)
    if kind == "thing" and draw.chance(0.15):
        place = noun(draw.open_class(lexicon.NOUNS["place"]), "Sing")
        before.append(hang(place, head, "compound"))
    words = [*_determiner(draw, head, number, (before or [head])[0]), *before, head]
    return Phrase(head, words, Agreement("3", number), kind)


def adpositional(draw: Draw, preposition: str, kind: str) -> Phrase:
    """A prepositional phrase over a noun of a class, or over a name in place of a person."""
    inner = name(draw) if kind == "person" and draw.chance(0.3) else noun_group(draw, kind)
    case = hang(word(preposition, "ADP", "IN"), inner.head, "case")
    return Phrase(inner.head, [case, *inner.words], kind=inner.kind)


def topic(draw: Draw) -> Phrase:
    """What a document is about."""
    kind = draw.one(["person", "animal", "place"])
    return adpositional(draw, draw.word(lexicon.TOPIC_PREPOSITIONS), kind)


def coordination(draw: Draw, kinds: Sequence[str]) -> Phrase:
    """Two or three noun groups; the later ones hang from the first."""
    first, *others = [noun_group(draw, draw.one(kinds)) for _ in range(3 if draw.chance(0.25) else 2)]
    words = first.words
    for other in others:
        hang(other, first.head, "conj")
        last = other is others[-1]
        link = hang(word("and", "CCONJ", "CC"), other.head, "cc") if last else comma(other.head)
        words = [*words, link, *other.words]
    return Phrase(first.head, words, Agreement("3", "Plur"), first.kind)


def _adjectives(draw: Draw, head: Word, kind: str) -> list[Word]:
    count = int(draw.weighted({"0": 0.55, "1": 0.35, "2": 0.1}))
    distinct = {item.form: item for item in (adjective(draw, kind) for _ in range(count))}
    return [hang(item, head, "amod") for item in distinct.values()]


def adjective(draw: Draw, kind: str) -> Word:
    """An adjective that suits a class of nouns."""
    entry = lexicon.ADJECTIVES["animate" if kind in (*lexicon.ANIMATE, "name", "pronoun") else "inanimate"]
    return word(draw.open_class(entry), "ADJ", "JJ", "Degree=Pos")


def _determiner(draw: Draw, head: Word, number: str, following: Word) -> list[Word]:
    weights = {"definite": 0.5, "indefinite": 0.2, "demonstrative": 0.08, "pronoun": 0.1, "possessor": 0.07}
    kind = draw.weighted(weights | ({"numeral": 0.1} if number == "Plur" else {}))
    if kind == "possessor":
        return _possessor(draw, head)
    if kind == "pronoun":
        return [hang(_possessive_pronoun(draw), head, "nmod:poss")]
    if kind == "numeral":
        numeral = word(draw.word(lexicon.NUMERALS), "NUM", "CD", "NumForm=Word|NumType=Card")
        return [hang(numeral, head, "nummod")]
    if kind == "indefinite" and number == "Plur":
        return []
    return [hang(_article(kind, number, following), head, "det")]


def _article(kind: str, number: str, following: Word) -> Word:
    if kind == "definite":
        return word("the", "DET", "DT", "Definite=Def|PronType=Art")
    if kind == "indefinite":
        form = "an" if following.form[0] in VOWELS else "a"
        return word(form, "DET", "DT", "Definite=Ind|PronType=Art", lemma="a")
    form = "this" if number == "Sing" else "these"
    return word(form, "DET", "DT", f"Number={number}|PronType=Dem", lemma="this")


def _possessive_pronoun(draw: Draw) -> Word:
    person, number, gender = draw.one(list(lexicon.PRONOUNS))
    nominative, _, possessive = lexicon.PRONOUNS[person, number, gender]
    middle = ["Case=Gen", *([f"Gender={gender}"] if gender else []), f"Number={number}", f"Person={person}"]
    feats = "|".join([*middle, "Poss=Yes", "PronType=Prs"])
    return word(possessive, "PRON", "PRP$", feats, lemma=nominative)


def _possessor(draw: Draw, head: Word) -> list[Word]:
    if draw.chance(0.4):
        owner, words = name(draw).head, []
    else:
        owner = noun(draw.open_class(lexicon.NOUNS["person"]), "Sing")
        words = [hang(_article("definite", "Sing", owner), owner, "det")]
    owner.space_after = False
    mark = hang(word("'s", "PART", "POS"), owner, "case")
    return [*words, hang(owner, head, "nmod:poss"), mark]
