"""How many planted errors of annotation are among the first suspects of a model, and how many words it suspects.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT
    python -m scripts.experiments.experiment_suspects runs/fast/model runs/linear/model

In the first 500 sentences of a dev set, 40 words get a wrong head, a wrong label or both, three times with other seeds.
Heads are drawn from those with which the sentence is still a tree, labels from those of the treebank by how often they
occur; words that hang from the root stay. Words are ordered as ``treeparse suspects`` does, with the model's
temperatures and, for comparison, as trained.
"""

import argparse
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from treeparse.data import load_treebank
from treeparse.model import Parser
from treeparse.sentence import Sentence, tree_problem

EWT = "UD_English-EWT/en_ewt-ud-dev.conllu"
SENTENCES, ERRORS, SEEDS, FIRST = 500, 40, (1, 2, 3), (40, 100)
BELOW = 0.03  # as treeparse suspects lists words by default
AS_TRAINED = {"temperature": 1.0, "label_temperature": 1.0}
Word = tuple[int, int]  # sentence and word, from 0


def with_errors(gold: Sequence[Sentence], count: int, seed: int) -> tuple[list[Sentence], set[Word]]:
    """The sentences with so many wrong words, a third each with a wrong head, a wrong label or both, and which."""
    stream, sentences, wrong = random.Random(seed), list(gold), set()
    labels = [label for sentence in gold for label in sentence.labels or () if label != "root"]
    words = [(place, word) for place, sentence in enumerate(gold) for word in range(len(sentence))]
    stream.shuffle(words)
    for place, word in words:
        heads, own = [*(sentences[place].heads or ())], [*(sentences[place].labels or ())]
        if len(wrong) == count or not heads[word]:
            continue
        kind = len(wrong) % 3
        if kind != 1:
            possible = [head for head in range(1, len(heads) + 1) if head != heads[word]]
            trees = [[*heads[:word], head, *heads[word + 1 :]] for head in possible]
            if not (trees := [tree for tree in trees if tree_problem(tree) is None]):
                continue
            heads = stream.choice(trees)
        if kind:
            own[word] = stream.choice([label for label in labels if label != own[word]])
        sentences[place] = sentences[place].with_tree(heads, own)
        wrong.add((place, word))
    return sentences, wrong


def found(parser: Parser, sentences: Sequence[Sentence], wrong: set[Word]) -> list[float]:
    """How many wrong words are among the first suspects, and the percentage of words that are suspected."""
    probs = {
        (place, word): prob
        for place, parse in enumerate(parser.score_trees(sentences))
        for word, prob in enumerate(parse.label_probs or ())
    }
    order = sorted(probs, key=lambda word: (probs[word], word))
    suspected = sum(prob < BELOW for prob in probs.values())
    return [*(len(wrong & {*order[:first]}) for first in FIRST), 100 * suspected / len(probs)]


def rows(folder: Path, gold: Sequence[Sentence]) -> Iterator[str]:
    """A row of a table for the model as it is, and one for its probabilities as trained: means over seeds."""
    parser = Parser.from_pretrained(folder)
    fitted = parser.config
    for name, config in (("", fitted), (", as trained", replace(fitted, **AS_TRAINED))):
        parser.config = config
        figures = [found(parser, *with_errors(gold, ERRORS, seed)) for seed in SEEDS]
        means = [sum(column) / len(SEEDS) for column in zip(*figures, strict=True)]
        yield f"| {folder}{name} | {' | '.join(f'{mean:.1f}' for mean in means)} |"


def main(options: Sequence[str] | None = None) -> None:
    """Print a table of all models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="folders of models or of runs")
    parser.add_argument("--gold", type=Path, metavar="FILE", help=f"the treebank (default: {EWT})")
    arguments = parser.parse_args(options)
    path = arguments.gold or Path(os.environ["TREEPARSE_TREEBANKS"], EWT)
    gold = [sentence.words for sentence in load_treebank(path)][:SENTENCES]
    first = " | ".join(f"among the first {count}" for count in FIRST)
    print(f"| of {ERRORS} errors | {first} | words suspected, % |")
    print(f"|:--|{'--:|' * (len(FIRST) + 1)}")
    for model in arguments.models:
        for row in rows(model, gold):
            print(row, flush=True)


if __name__ == "__main__":
    main()
