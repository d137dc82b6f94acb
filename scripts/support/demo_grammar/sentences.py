"""Whole sentences of the demo grammar and their CoNLL-U."""

from dataclasses import dataclass
from itertools import pairwise

from scripts.support.demo_grammar import clauses, lexicon, phrases
from scripts.support.demo_grammar.clauses import finite, relative_clause, time_word
from scripts.support.demo_grammar.morphology import THIRD_SINGULAR, Word, word
from scripts.support.demo_grammar.phrases import Draw, Phrase, comma, hang, words_of

SHAPES = {
    "clause": 0.56,
    "verbs": 0.09,
    "clauses": 0.07,
    "because": 0.06,
    "when": 0.07,
    "place": 0.06,
    "question": 0.09,
}


@dataclass(frozen=True)
class DemoSentence:
    """A sentence with ``doubt``, the expected number of words that the best possible parser gets wrong."""

    words: list[Word]
    doubt: float

    @property
    def text(self) -> str:
        return "".join(item.form + (" " if item.space_after else "") for item in self.words).rstrip()

    @property
    def heads(self) -> list[int]:
        number = {id(item): place for place, item in enumerate(self.words, 1)}
        return [number[id(item.head)] if item.head is not None else 0 for item in self.words]

    def to_conllu(self, sent_id: str) -> str:
        """The sentence's block, with the blank line that ends it."""
        lines = [f"# sent_id = {sent_id}", f"# text = {self.text}"]
        for number, (item, head) in enumerate(zip(self.words, self.heads, strict=True), 1):
            misc = "_" if item.space_after or number == len(self.words) else "SpaceAfter=No"
            columns = (number, item.form, item.lemma, item.upos, item.xpos, item.feats, head, item.deprel, "_", misc)
            lines.append("\t".join(map(str, columns)))
        return "\n".join(lines) + "\n\n"


def sentence(draw: Draw) -> DemoSentence:
    """Draw one sentence."""
    draw.doubt = 0.0
    shape = draw.weighted(SHAPES)
    if shape == "question":
        top, mark = question(draw), "?"
    else:
        top, mark = _declarative(draw, shape), draw.word(". . . . . . !")
    stop = hang(word(mark, "PUNCT", "."), top.head, "punct")
    words = [*top.words, stop]
    words[0].form = words[0].form[0].upper() + words[0].form[1:]
    for item, following in pairwise(words):
        item.space_after = item.space_after and following.upos != "PUNCT"
    return DemoSentence(words, draw.doubt)


def _declarative(draw: Draw, shape: str) -> Phrase:
    if shape == "verbs":
        return coordinated_verbs(draw)
    if shape == "clauses":
        return coordinated_clauses(draw)
    if shape in ("because", "when"):
        return adverbial_clause(draw, shape)
    top = clause(draw)
    if shape == "place":
        front = clauses.place(draw, top.head)
        return Phrase(top.head, words_of(front, comma(front.head), top))
    if draw.chance(0.05):
        return Phrase(top.head, words_of(time_word(draw, top.head, top.tense), top))
    return top


def clause(draw: Draw, *, embedded: bool = False) -> Phrase:
    """A declarative clause, perhaps with something extraposed or, at the top, with a clause as its object."""
    kinds = {"plain": 0.74, "subject": 0.06, "object": 0.05} | ({} if embedded else {"say": 0.15})
    kind = draw.weighted(kinds)
    if kind == "subject":
        return extraposed_from_subject(draw)
    if kind == "object":
        return extraposed_from_object(draw)
    subject = clauses.full_subject(draw)
    if kind == "say":
        return _with_subject(subject, say_predicate(draw, subject))
    return _with_predicate(draw, subject, draw.weighted(clauses.PREDICATES))


def _with_predicate(draw: Draw, subject: Phrase, kind: str) -> Phrase:
    agreement = subject.agreement
    if kind == "passive":
        return _with_subject(subject, clauses.passive_predicate(draw, agreement), "nsubj:pass")
    if kind == "adjective":
        return _with_subject(subject, clauses.adjective_predicate(draw, subject))
    if kind == "nominal":
        return _with_subject(subject, clauses.nominal_predicate(draw, agreement))
    make = finite(draw, agreement)
    if kind == "want":
        return _with_subject(subject, clauses.want_predicate(draw, make))
    if kind == "rest":
        return _with_subject(subject, clauses.rest_predicate(draw, make))
    return _with_subject(subject, clauses.transitive_predicate(draw, make, plain=False))


def _with_subject(subject: Phrase, predicate: Phrase, deprel: str = "nsubj") -> Phrase:
    hang(subject, predicate.head, deprel)
    return Phrase(predicate.head, words_of(subject, predicate), tense=predicate.tense)


def plain_clause(draw: Draw) -> Phrase:
    """A clause that leaves nothing open to what follows it."""
    subject = clauses.simple_subject(draw)
    return _with_subject(subject, clauses.plain_predicate(draw, finite(draw, subject.agreement)))


def say_predicate(draw: Draw, subject: Phrase) -> Phrase:
    """A verb of saying and what is said."""
    group = finite(draw, subject.agreement)(draw.open_class(lexicon.VERBS["say"]))
    inner = clause(draw, embedded=True)
    hang(inner, group.verb, "ccomp")
    mark = [hang(word("that", "SCONJ", "IN"), inner.head, "mark")] if draw.chance(0.7) else []
    return Phrase(group.verb, words_of(*group.before, group.verb, *mark, inner), tense=group.tense)


def extraposed_from_subject(draw: Draw) -> Phrase:
    """A relative clause or a topic that stands after the verb, away from its subject: "A man came who sang"."""
    subject = phrases.noun_group(draw, draw.one(["person", "animal", "document"]))
    classes = ["come"] if subject.kind == "document" else ["rest", "come"]
    group = finite(draw, subject.agreement)(draw.open_class(lexicon.VERBS[draw.one(classes)]))
    hang(subject, group.verb, "nsubj")
    between = [time_word(draw, group.verb, group.tense)] if draw.chance(0.5) else []
    words = words_of(subject, *group.before, group.verb, *between, _extraposed(draw, subject))
    return Phrase(group.verb, words, tense=group.tense)


def extraposed_from_object(draw: Draw) -> Phrase:
    """A relative clause or a topic that an adverb separates from its object: "He saw a man today who sang"."""
    subject = clauses.simple_subject(draw)
    kind, lemma = clauses.transitive_lemma(draw)
    group = finite(draw, subject.agreement)(lemma)
    hang(subject, group.verb, "nsubj")
    target = hang(clauses.object_phrase(draw, "noun", kind), group.verb, "obj")
    adverb = time_word(draw, group.verb, group.tense) if draw.chance(0.6) else clauses.manner(draw, group.verb)
    words = words_of(subject, *group.before, group.verb, target, adverb, _extraposed(draw, target))
    return Phrase(group.verb, words, tense=group.tense)


def _extraposed(draw: Draw, noun: Phrase) -> Phrase:
    if noun.kind == "document" and draw.chance(0.6):
        return hang(phrases.topic(draw), noun.head, "nmod")
    return relative_clause(draw, noun)


def coordinated_verbs(draw: Draw) -> Phrase:
    """One subject, two predicates."""
    subject = clauses.full_subject(draw)
    first = clauses.plain_predicate(draw, finite(draw, subject.agreement))
    second = clauses.plain_predicate(draw, finite(draw, subject.agreement))
    return _coordinated(draw, _with_subject(subject, first), second)


def coordinated_clauses(draw: Draw) -> Phrase:
    """Two clauses."""
    return _coordinated(draw, plain_clause(draw), plain_clause(draw))


def _coordinated(draw: Draw, first: Phrase, second: Phrase) -> Phrase:
    hang(second, first.head, "conj")
    link = hang(word(draw.word("and and but"), "CCONJ", "CC"), second.head, "cc")
    return Phrase(first.head, words_of(first, link, second), tense=first.tense)


def adverbial_clause(draw: Draw, shape: str) -> Phrase:
    """A main clause after a "when" clause and a comma, or before a "because" clause."""
    inner = plain_clause(draw)
    form = "because" if shape == "because" else draw.word("when when while")
    subordinate = Phrase(inner.head, [hang(word(form, "SCONJ", "IN"), inner.head, "mark"), *inner.words])
    main = plain_clause(draw) if shape == "because" else clause(draw)
    hang(subordinate, main.head, "advcl")
    if shape == "because":
        return Phrase(main.head, words_of(main, subordinate), tense=main.tense)
    return Phrase(main.head, words_of(subordinate, comma(inner.head), main), tense=main.tense)


def question(draw: Draw) -> Phrase:
    """A question: yes or no, for the subject, or for the object."""
    kind = draw.weighted({"polar": 0.4, "subject": 0.3, "object": 0.3})
    if kind == "subject":
        who = word("who", "PRON", "WP", "PronType=Int")
        return _with_subject(Phrase(who, [who]), clauses.plain_predicate(draw, finite(draw, THIRD_SINGULAR)))
    subject = clauses.simple_subject(draw)
    make = finite(draw, subject.agreement, question=True)
    if kind == "polar":
        predicate = clauses.plain_predicate(draw, make)
        hang(subject, predicate.head, "nsubj")
        first, *rest = predicate.words
        return Phrase(predicate.head, words_of(first, subject, *rest))
    group = make(clauses.transitive_lemma(draw)[1])
    what = hang(word("what", "PRON", "WP", "PronType=Int"), group.verb, "obj")
    hang(subject, group.verb, "nsubj")
    first, *rest = group.before
    return Phrase(group.verb, words_of(what, first, subject, *rest, group.verb))
