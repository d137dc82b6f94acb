"""Draw the demo treebank from a small English-like dependency grammar and write ``data/demo-*.conllu``.

The sentences are projective but for relative clauses and topics moved behind a verb or an adverb. The grammar settles
every head and label by the words, with one exception: the phrase in "verb object preposition noun" hangs from the verb
with a probability that depends on the words (``VERB_ATTACHMENT`` in ``support/demo_grammar/lexicon.py``). Whoever knows
the grammar decides for the likelier side and is wrong about one word, its head and its label, with probability min(p, 1
- p). The sum of these over a split is the expected number of errors of the best possible parser, UAS and LAS alike; the
rest of the words is the ceiling.

The dev and test splits use words that the training split lacks, and no sentence stands twice.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

from scripts.support.demo_grammar.phrases import Draw
from scripts.support.demo_grammar.sentences import DemoSentence, sentence

SIZES = {"train": 800, "dev": 100, "test": 100}
MAX_WORDS = 30
SEED = 20


def draw_splits(seed: int = SEED) -> dict[str, list[DemoSentence]]:
    """All splits, distinct sentence by sentence."""
    seen: set[str] = set()
    splits = {}
    for number, (split, size) in enumerate(SIZES.items()):
        draw = Draw(Random(seed * len(SIZES) + number), unseen=split != "train")
        splits[split] = list(_distinct(draw, size, seen))
    return splits


def _distinct(draw: Draw, size: int, seen: set[str]) -> Iterable[DemoSentence]:
    # What is refused depends on the words alone, so the odds of the trees over a kept sentence stay the grammar's.
    wanted = len(seen) + size
    while len(seen) < wanted:
        drawn = sentence(draw)
        if len(drawn.words) <= MAX_WORDS and drawn.text not in seen:
            seen.add(drawn.text)
            yield drawn


def to_conllu(split: str, sentences: Sequence[DemoSentence]) -> str:
    """A split's whole file."""
    return "".join(item.to_conllu(f"demo-{split}-{number}") for number, item in enumerate(sentences, 1))


def adjacent_baseline(sentences: Sequence[DemoSentence]) -> float:
    """UAS of hanging every word from its left neighbour, or from its right one (the last from the root): the better."""
    left = right = words = 0
    for heads in (item.heads for item in sentences):
        words += len(heads)
        left += sum(head == place - 1 for place, head in enumerate(heads, 1))
        right += sum(head == (place + 1) % (len(heads) + 1) for place, head in enumerate(heads, 1))
    return max(left, right) / words


def ceiling(sentences: Sequence[DemoSentence]) -> float:
    """The expected UAS, which is also the LAS, of a parser that knows the grammar."""
    return 1 - sum(item.doubt for item in sentences) / sum(len(item.words) for item in sentences)


def main() -> None:
    """Write the files and print their figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parents[2] / "data", metavar="DIR")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"default: {SEED}, the committed files")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    splits = draw_splits(args.seed)
    for split, sentences in splits.items():
        path = args.output / f"demo-{split}.conllu"
        path.write_text(to_conllu(split, sentences), encoding="utf-8", newline="\n")
        words = sum(len(item.words) for item in sentences)
        print(f"{path}: {len(sentences)} sentences, {words} words")
    print(f"adjacent-attachment baseline on test: {100 * adjacent_baseline(splits['test']):.2f} UAS")
    print(f"ceiling of the grammar on test:       {100 * ceiling(splits['test']):.2f} UAS and LAS")


if __name__ == "__main__":
    main()
