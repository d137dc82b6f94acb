"""Small generated sentences with trees that a parser can learn, for tests of models and objectives."""

import random

from treeparse.sentence import Sentence

TAG_LABELS = {"ADJ": "amod", "NOUN": "nsubj", "VERB": "root"}


def learnable_sentences(count: int, seed: int, *, longest: int = 7) -> list[Sentence]:
    """Adjectives hang from the noun that follows them, nouns from the verb, which ends the sentence."""
    stream = random.Random(seed)
    return [_sentence(stream, stream.randint(0, longest - 2)) for _ in range(count)]


def _sentence(stream: random.Random, free: int) -> Sentence:
    tags = [*(stream.choice(("ADJ", "NOUN")) for _ in range(free)), "NOUN", "VERB"]
    heads = []
    for word, tag in enumerate(tags, 1):
        heads.append({"ADJ": tags.index("NOUN", word) + 1 if tag == "ADJ" else 0, "NOUN": len(tags), "VERB": 0}[tag])
    return Sentence(
        forms=tuple(f"{tag.title()}{stream.randint(1, 5)}" for tag in tags),
        upos=tuple(tags),
        xpos=tuple(tag[0] for tag in tags),
        feats=("_",) * len(tags),
        heads=tuple(heads),
        labels=tuple(TAG_LABELS[tag] for tag in tags),
    )


def text_of(sentences: list[Sentence]) -> str:
    """Sentences as CoNLL-U, with their forms, UPOS and trees."""
    rows = []
    for sentence in sentences:
        columns = zip(sentence.forms, sentence.upos or (), sentence.heads or (), sentence.labels or (), strict=True)
        lines = [
            f"{i}\t{form}\t_\t{tag}\t_\t_\t{head}\t{label}\t_\t_"
            for i, (form, tag, head, label) in enumerate(columns, 1)
        ]
        rows.append("\n".join(lines) + "\n\n")
    return "".join(rows)
