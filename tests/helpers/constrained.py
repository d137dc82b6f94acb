"""Constraints as text, each with what it says as a function of its own, over a batch of three tagged sentences."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from helpers.gold_batches import BATCH, LENGTHS
from helpers.tree_cases import Case, Enumerated
from torch import Tensor

from treeparse.sentence import Sentence

NAMES = ("a", "b")
SENTENCES = (
    Sentence(("The", "dog", "the", "Cat"), ("DET", "NOUN", "DET", "NOUN")),
    Sentence(("ran", "dogs"), ("VERB", "NOUN")),
    Sentence(("a", "dog", "runs"), ("DET", "NOUN", "VERB")),
)
TAGGED = replace(BATCH, heads=None, labels=None, sentences=SENTENCES, label_names=NAMES)


@dataclass(frozen=True)
class Said:
    """An entry without its target, and what it says: by tags and forms of nodes, word and head, and label."""

    entry: str
    about: Callable[[str, str], bool]
    holds: Callable[[list[str], list[str], int, int, str], bool]


SAID = (
    Said(
        "dependent: {upos: DET}, head: {upos: NOUN}, direction: left",
        lambda tag, form: tag == "DET",
        lambda tags, forms, word, head, label: tags[head] == "NOUN" and word < head,
    ),
    Said(
        "dependent: {upos: [NOUN, VERB]}, head: root",
        lambda tag, form: tag in ("NOUN", "VERB"),
        lambda tags, forms, word, head, label: head == 0,
    ),
    Said(
        "dependent: {word: [Dog, cat]}, label: a",
        lambda tag, form: form in ("dog", "cat"),
        lambda tags, forms, word, head, label: label == "a",
    ),
    Said(
        "head: {word: dog, upos: NOUN}, label: [b], direction: right",
        lambda tag, form: True,
        lambda tags, forms, word, head, label: forms[head] == "dog" and label == "b" and word > head,
    ),
    Said(
        "distance: [2, 3]",
        lambda tag, form: True,
        lambda tags, forms, word, head, label: head > 0 and abs(head - word) in (2, 3),
    ),
    Said(
        "dependent: {upos: DET}, distance: 1",
        lambda tag, form: tag == "DET",
        lambda tags, forms, word, head, label: head > 0 and abs(head - word) == 1,
    ),
)
UNLABELLED = tuple(said for said in SAID if "label" not in said.entry)


def as_yaml(targets: list[str], said: tuple[Said, ...] = SAID) -> str:
    """A file with these targets, such as ``probability: 0.5``."""
    return "".join(f"- {{{each.entry}, {target}}}\n" for each, target in zip(said, targets, strict=True))


def counts_of_trees(oracle: Enumerated, sentence: Sentence, said: tuple[Said, ...] = SAID) -> tuple[Tensor, Tensor]:
    """For every labelled tree the words that match ``(trees, R)``, and the words ``(R,)`` that each is about."""
    tags, forms = ["ROOT", *(sentence.upos or ())], ["", *map(str.lower, sentence.forms)]
    words = range(1, len(tags))
    heads, labels = (column.tolist() for column in oracle.values)
    matches = [
        [
            sum(
                each.holds(tags, forms, word, tree[word], NAMES[names[word]])
                for word in words
                if each.about(tags[word], forms[word])
            )
            for each in said
        ]
        for tree, names in zip(heads, labels, strict=True)
    ]
    about = [[each.about(tags[word], forms[word]) for word in words].count(True) for each in said]
    return torch.tensor(matches, dtype=torch.float64), torch.tensor(about, dtype=torch.float64)


def oracles(case: Case, parameters: list[Tensor]) -> list[Enumerated]:
    """Every sentence of the batch, enumerated; differentiable in the parameters."""
    sizes = (LENGTHS + 1).tolist()
    return [Enumerated(case, [part[item, :size, :size] for part in parameters]) for item, size in enumerate(sizes)]


def expected_counts(case: Case, parameters: list[Tensor], said: tuple[Said, ...] = SAID) -> tuple[Tensor, Tensor]:
    """Expected matches and words ``(B, R)`` by enumeration."""
    pairs = []
    for oracle, sentence in zip(oracles(case, parameters), SENTENCES, strict=True):
        matches, about = counts_of_trees(oracle, sentence, said)
        pairs.append((oracle.probs @ matches, about))
    matches, about = zip(*pairs, strict=True)
    return torch.stack(matches), torch.stack(about)
