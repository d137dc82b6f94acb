"""The clauses of the demo grammar: verbs, predicates, relative and complement clauses, extraposition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scripts.support.demo_grammar import lexicon, phrases
from scripts.support.demo_grammar.morphology import (
    Agreement,
    Word,
    auxiliary,
    infinitive,
    modal,
    noun,
    past,
    past_participle,
    present,
    present_participle,
    word,
)
from scripts.support.demo_grammar.phrases import Draw, Phrase, hang, words_of

TENSES = {"past": 0.4, "present": 0.2, "modal": 0.15, "perfect": 0.15, "progressive": 0.1}
QUESTION_TENSES = {"do": 0.5, "modal": 0.2, "perfect": 0.2, "progressive": 0.1}
PLAIN_PREDICATES = {"rest": 0.4, "transitive": 0.6}
PREDICATES = {"rest": 0.2, "transitive": 0.5, "adjective": 0.08, "nominal": 0.05, "passive": 0.09, "want": 0.08}


@dataclass(frozen=True)
class Group:
    """A verb and the auxiliaries and adverbs before it."""

    verb: Word
    before: list[Word]
    tense: str


MakeGroup = Callable[[str], Group]  # from the verb's lemma


def finite(draw: Draw, subject: Agreement, *, question: bool = False) -> MakeGroup:
    """Makes finite verb groups that agree with a subject; a question's always start with an auxiliary."""

    def make(lemma: str) -> Group:
        tense = draw.weighted(QUESTION_TENSES if question else TENSES)
        time = "Fut" if tense == "modal" else draw.weighted({"Past": 0.6, "Pres": 0.4})
        if tense in ("past", "present"):
            verb = past(lemma, subject) if tense == "past" else present(lemma, subject)
            time = "Past" if tense == "past" else "Pres"
            helpers = []
        else:
            verb, helper = _periphrastic(draw, tense, time, lemma, subject)
            helpers = [hang(helper, verb, "aux")]
        if not question and draw.chance(0.12):
            helpers.append(hang(_frequency(draw), verb, "advmod"))
        return Group(verb, helpers, time)

    return make


def to_infinitive(tense: str) -> MakeGroup:
    """Makes infinitives with ``to``."""

    def make(lemma: str) -> Group:
        verb = infinitive(lemma)
        return Group(verb, [hang(word("to", "PART", "TO"), verb, "mark")], tense)

    return make


def _periphrastic(draw: Draw, tense: str, time: str, lemma: str, subject: Agreement) -> tuple[Word, Word]:
    if tense == "modal":
        return infinitive(lemma), modal(draw.word(lexicon.MODALS))
    if tense == "do":
        return infinitive(lemma), auxiliary("do", time, subject)
    if tense == "perfect":
        return past_participle(lemma), auxiliary("have", time, subject)
    return present_participle(lemma), auxiliary("be", time, subject)


def _frequency(draw: Draw) -> Word:
    return word(draw.word(lexicon.FREQUENCY_ADVERBS), "ADV", "RB")


def manner(draw: Draw, verb: Word) -> Phrase:
    """An adverb of manner, perhaps with one of degree."""
    adverb = hang(word(draw.open_class(lexicon.MANNER_ADVERBS), "ADV", "RB"), verb, "advmod")
    return Phrase(adverb, [*_degree(draw, adverb), adverb])


def time_word(draw: Draw, verb: Word, tense: str) -> Word:
    """A word of time that suits a tense."""
    form, upos = draw.one(lexicon.TIMES[tense])
    if upos == "NOUN":
        return hang(noun(form, "Sing"), verb, "obl:tmod")
    return hang(word(form, "ADV", "RB"), verb, "advmod")


def _degree(draw: Draw, head: Word) -> list[Word]:
    if not draw.chance(0.2):
        return []
    return [hang(word(draw.word(lexicon.DEGREE_ADVERBS), "ADV", "RB"), head, "advmod")]


def _closing(draw: Draw, verb: Word, tense: str, *, with_manner: bool = True) -> list[Word]:
    """The adverbs that may end a verb phrase."""
    words = manner(draw, verb).words if with_manner and draw.chance(0.15) else []
    return [*words, *([time_word(draw, verb, tense)] if draw.chance(0.12) else [])]


def transitive_lemma(draw: Draw) -> tuple[str, str]:
    """A transitive verb's class and lemma."""
    kind = draw.one(list(lexicon.OBJECTS))
    return kind, draw.open_class(lexicon.VERBS[kind])


def rest_predicate(draw: Draw, make: MakeGroup) -> Phrase:
    """An intransitive verb, with place, manner and time."""
    group = make(draw.open_class(lexicon.VERBS[draw.one(["rest", "rest", "come"])]))
    where = place(draw, group.verb).words if draw.chance(0.35) else []
    words = [*group.before, group.verb, *where, *_closing(draw, group.verb, group.tense, with_manner=not where)]
    return Phrase(group.verb, words, tense=group.tense)


def place(draw: Draw, verb: Word) -> Phrase:
    """A phrase of place that hangs from a verb."""
    phrase = phrases.adpositional(draw, draw.word(lexicon.PLACE_PREPOSITIONS), "place")
    return hang(phrase, verb, "obl")


def transitive_predicate(draw: Draw, make: MakeGroup, *, plain: bool = True) -> Phrase:
    """A verb and its object; what follows the object never leaves open where it hangs, but for one phrase."""
    kind, lemma = transitive_lemma(draw)
    group = make(lemma)
    shapes = {"pronoun": 0.08, "name": 0.05, "noun": 0.7}
    shape = draw.weighted(shapes if plain else shapes | {"coordination": 0.1, "relative": 0.12})
    target = object_phrase(draw, shape, kind)
    hang(target, group.verb, "obj")
    words = [*group.before, group.verb, *target.words]
    if shape == "relative":
        words += relative_clause(draw, target).words
    else:
        if shape != "coordination" and draw.chance(0.8):
            words += attached(draw, group.verb, kind, target).words
        words += _closing(draw, group.verb, group.tense)
    return Phrase(group.verb, words, tense=group.tense)


def object_phrase(draw: Draw, shape: str, kind: str) -> Phrase:
    """The object of a verb of a class, without what may follow it."""
    if shape == "pronoun":
        return phrases.pronoun(draw, "Acc")
    if shape == "name":
        return phrases.name(draw)
    if shape == "coordination":
        return phrases.coordination(draw, lexicon.OBJECTS[kind])
    return phrases.noun_group(draw, draw.one(lexicon.OBJECTS[kind]))


def attached(draw: Draw, verb: Word, verb_class: str, target: Phrase) -> Phrase:
    """A prepositional phrase after the object: on the verb or on the object, as the words prefer."""
    if target.kind == "document" and draw.chance(0.25):
        return hang(phrases.topic(draw), target.head, "nmod")
    preposition, kind = draw.one(list(lexicon.VERB_ATTACHMENT))
    phrase = phrases.adpositional(draw, preposition, kind)
    if target.kind in ("pronoun", "name"):
        return hang(phrase, verb, "obl")
    probability = lexicon.VERB_ATTACHMENT[preposition, kind][verb_class]
    # One word, the phrase's noun, takes its head and its label from this draw.
    draw.doubt += min(probability, 1 - probability)
    to_verb = draw.chance(probability)
    return hang(phrase, verb if to_verb else target.head, "obl" if to_verb else "nmod")


def adjective_predicate(draw: Draw, subject: Phrase) -> Phrase:
    """A copula and an adjective."""
    head = phrases.adjective(draw, subject.kind)
    tense = draw.one(["Past", "Pres"])
    words = [*_copula(draw, head, tense, subject.agreement), *_degree(draw, head), head]
    return Phrase(head, words + ([time_word(draw, head, tense)] if draw.chance(0.1) else []), tense=tense)


def nominal_predicate(draw: Draw, subject: Agreement) -> Phrase:
    """A copula and a noun phrase."""
    inner = phrases.noun_group(draw, "person", subject.number)
    tense = draw.one(["Past", "Pres"])
    return Phrase(inner.head, [*_copula(draw, inner.head, tense, subject), *inner.words], tense=tense)


def _copula(draw: Draw, head: Word, tense: str, subject: Agreement) -> list[Word]:
    words = [hang(auxiliary("be", tense, subject), head, "cop")]
    return words + ([hang(_frequency(draw), head, "advmod")] if draw.chance(0.1) else [])


def passive_predicate(draw: Draw, subject: Agreement) -> Phrase:
    """A passive, perhaps with place and agent."""
    tense = draw.one(["Past", "Pres"])
    verb = past_participle(transitive_lemma(draw)[1], passive=True)
    words = [hang(auxiliary("be", tense, subject), verb, "aux:pass"), verb]
    if draw.chance(0.25):
        words += place(draw, verb).words
    if draw.chance(0.4):
        words += hang(phrases.adpositional(draw, "by", "person"), verb, "obl:agent").words
    return Phrase(verb, words + _closing(draw, verb, tense, with_manner=False), tense=tense)


def want_predicate(draw: Draw, make: MakeGroup) -> Phrase:
    """A verb that takes an infinitive."""
    group = make(draw.open_class(lexicon.VERBS["want"]))
    inner = plain_predicate(draw, to_infinitive(group.tense))
    hang(inner, group.verb, "xcomp")
    return Phrase(group.verb, words_of(*group.before, group.verb, inner), tense=group.tense)


def plain_predicate(draw: Draw, make: MakeGroup) -> Phrase:
    """A predicate that leaves nothing open to what follows it."""
    return rest_predicate(draw, make) if draw.weighted(PLAIN_PREDICATES) == "rest" else transitive_predicate(draw, make)


def relative_clause(draw: Draw, antecedent: Phrase) -> Phrase:
    """A relative clause on a noun, on its subject or on an object that the verb's class allows."""
    form = draw.word("who who that" if antecedent.kind == "person" else "that that which")
    relative = word(form, "PRON", "WP" if form == "who" else "WDT", "PronType=Rel")
    classes = [kind for kind, objects in lexicon.OBJECTS.items() if antecedent.kind in objects]
    if antecedent.kind in lexicon.ANIMATE and (not classes or draw.chance(0.6)):
        inner = plain_predicate(draw, finite(draw, antecedent.agreement))
        words = [hang(relative, inner.head, "nsubj"), *inner.words]
        return hang(Phrase(inner.head, words), antecedent.head, "acl:relcl")
    subject = simple_subject(draw)
    group = finite(draw, subject.agreement)(draw.open_class(lexicon.VERBS[draw.one(classes)]))
    hang(relative, group.verb, "obj")
    hang(subject, group.verb, "nsubj")
    closing = _closing(draw, group.verb, group.tense)
    words = words_of(relative, subject, *group.before, group.verb, *closing)
    return hang(Phrase(group.verb, words), antecedent.head, "acl:relcl")


def simple_subject(draw: Draw, kinds: Sequence[str] = lexicon.ANIMATE) -> Phrase:
    """A pronoun, a name or a noun group."""
    shape = draw.weighted({"pronoun": 0.25, "name": 0.15, "noun": 0.6})
    if shape == "pronoun":
        return phrases.pronoun(draw, "Nom")
    return phrases.name(draw) if shape == "name" else phrases.noun_group(draw, draw.one(kinds))


def full_subject(draw: Draw) -> Phrase:
    """A subject that may carry a prepositional phrase or a relative clause, or be a coordination."""
    shape = draw.weighted({"simple": 0.62, "phrase": 0.1, "relative": 0.17, "coordination": 0.11})
    if shape == "simple":
        return simple_subject(draw)
    if shape == "coordination":
        return phrases.coordination(draw, lexicon.ANIMATE)
    subject = phrases.noun_group(draw, draw.one(lexicon.ANIMATE))
    if shape == "relative":
        subject.words += relative_clause(draw, subject).words
    else:
        preposition, kind = draw.one([("with", "feature"), ("from", "place"), ("in", "place")])
        subject.words += hang(phrases.adpositional(draw, preposition, kind), subject.head, "nmod").words
    return subject
