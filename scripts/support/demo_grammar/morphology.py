"""Words of the demo treebank and their inflection: regular English spelling over a few irregular forms."""

from dataclasses import dataclass
from typing import Self

from scripts.support.demo_grammar.lexicon import DOUBLING_VERBS, IRREGULAR_PLURALS, IRREGULAR_VERBS

VOWELS = "aeiou"


@dataclass(eq=False)
class Word:
    """One word of a sentence under construction; the root's head is None."""

    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str = "_"
    head: Self | None = None
    deprel: str = "root"
    space_after: bool = True


@dataclass(frozen=True)
class Agreement:
    """What a finite verb takes from its subject."""

    person: str = "3"
    number: str = "Sing"


THIRD_SINGULAR = Agreement()


def word(form: str, upos: str, xpos: str, feats: str = "_", *, lemma: str | None = None) -> Word:
    """A word whose lemma is its form unless given."""
    return Word(form, lemma or form, upos, xpos, feats)


def add_s(stem: str) -> str:
    """The plural of a regular noun, or the third person singular of a verb."""
    if stem.endswith(("s", "x", "z", "ch", "sh")):
        return stem + "es"
    if stem.endswith("y") and stem[-2] not in VOWELS:
        return stem[:-1] + "ies"
    return stem + "s"


def add_ed(stem: str) -> str:
    """The past tense of a regular verb."""
    if stem.endswith("e"):
        return stem + "d"
    if stem.endswith("y") and stem[-2] not in VOWELS:
        return stem[:-1] + "ied"
    return stem + "ed"


def add_ing(stem: str) -> str:
    """The present participle."""
    if stem in DOUBLING_VERBS:
        return stem + stem[-1] + "ing"
    if stem.endswith("e") and not stem.endswith("ee"):
        return stem[:-1] + "ing"
    return stem + "ing"


def noun(lemma: str, number: str) -> Word:
    """A common noun; ``number`` is Sing or Plur."""
    if number == "Sing":
        return word(lemma, "NOUN", "NN", "Number=Sing")
    return word(IRREGULAR_PLURALS.get(lemma, add_s(lemma)), "NOUN", "NNS", "Number=Plur", lemma=lemma)


def present(lemma: str, subject: Agreement) -> Word:
    """The present tense, agreeing with the subject."""
    feats = f"Mood=Ind|Number={subject.number}|Person={subject.person}|Tense=Pres|VerbForm=Fin"
    third = subject == THIRD_SINGULAR
    return word(add_s(lemma) if third else lemma, "VERB", "VBZ" if third else "VBP", feats, lemma=lemma)


def past(lemma: str, subject: Agreement) -> Word:
    """The past tense."""
    form = IRREGULAR_VERBS[lemma][0] if lemma in IRREGULAR_VERBS else add_ed(lemma)
    feats = f"Mood=Ind|Number={subject.number}|Person={subject.person}|Tense=Past|VerbForm=Fin"
    return word(form, "VERB", "VBD", feats, lemma=lemma)


def infinitive(lemma: str) -> Word:
    """The bare infinitive."""
    return word(lemma, "VERB", "VB", "VerbForm=Inf")


def past_participle(lemma: str, *, passive: bool = False) -> Word:
    """The participle of the perfect, or of the passive."""
    form = IRREGULAR_VERBS[lemma][1] if lemma in IRREGULAR_VERBS else add_ed(lemma)
    return word(form, "VERB", "VBN", f"Tense=Past|VerbForm=Part{'|Voice=Pass' if passive else ''}", lemma=lemma)


def present_participle(lemma: str) -> Word:
    """The participle of the progressive."""
    return word(add_ing(lemma), "VERB", "VBG", "Tense=Pres|VerbForm=Part", lemma=lemma)


def auxiliary(lemma: str, tense: str, subject: Agreement) -> Word:
    """A form of be, have or do that agrees with the subject; ``tense`` is Pres or Past."""
    form = _auxiliary_form(lemma, tense, subject)
    third = subject == THIRD_SINGULAR
    feats = f"Mood=Ind|Number={subject.number}|Person={subject.person}|Tense={tense}|VerbForm=Fin"
    return word(form, "AUX", "VBD" if tense == "Past" else "VBZ" if third else "VBP", feats, lemma=lemma)


def modal(form: str) -> Word:
    """A modal verb."""
    return word(form, "AUX", "MD", "VerbForm=Fin")


def _auxiliary_form(lemma: str, tense: str, subject: Agreement) -> str:
    third = subject == THIRD_SINGULAR
    if lemma == "be":
        first = subject == Agreement("1", "Sing")
        if tense == "Past":
            return "was" if first or third else "were"
        return "am" if first else "is" if third else "are"
    if tense == "Past":
        return {"have": "had", "do": "did"}[lemma]
    return {"have": "has", "do": "does"}[lemma] if third else lemma
