"""What an annotator does until parses are right: clicks, with decoding anew after each or not, and words to read.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT
    python -m scripts.experiments.experiment_annotation runs/fast/model
    python -m scripts.experiments.experiment_annotation runs/turkish/model --gold UD_Turkish-IMST/tr_imst-ud-dev.conllu

An annotator, played by the gold trees, reads every word of the parses. A word whose head or label is wrong takes a
click, which puts both right. Decoding anew then finds the best tree with all words that were read as they are now, so
that one click may put other words right. Words are read from the left, or the least certain arc first. The same is
counted of heads alone, where clicks leave labels as they are.

A second table says how many of all words must be read to find a share of the errors of the parses as they are: in the
order of the file, the sentences with the most expected errors a word first, or the least certain words of all first.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from treeparse.data import load_treebank
from treeparse.errors import TreeparseError
from treeparse.model import Parse, Parser
from treeparse.sentence import EMPTY, Sentence

EWT = "UD_English-EWT/en_ewt-ud-dev.conllu"
SHARES = (0.5, 0.8, 0.9, 0.95)


class Annotated:
    """A sentence in work: which words were read, as what they stand now, and the clicks so far.

    A gold label counts if it is one of the ``labels``.
    """

    def __init__(self, gold: Sentence, labels: Sequence[str]) -> None:
        self.gold, self.clicks, self.is_read = gold, 0, [False] * len(gold)
        known = [label if label in labels else EMPTY for label in gold.labels or ()]
        self.right = gold.with_tree(gold.heads or (), known)

    @property
    def known(self) -> Sentence:
        """The sentence with the heads and labels of the words that were read."""
        rows = zip(self.right.heads or (), self.right.labels or (), self.is_read, strict=True)
        known = ((head, label) if is_read else (-1, EMPTY) for head, label, is_read in rows)
        heads, labels = zip(*known, strict=True)
        return self.gold.with_tree(heads, labels)

    def read(self, parse: Parse, *, by_doubt: bool) -> bool:
        """Read on in a parse up to a click, and return whether there was one."""
        probs = parse.label_probs or ()
        order = sorted(range(len(self.gold)), key=lambda word: probs[word]) if by_doubt else range(len(self.gold))
        for word in order:
            if not self.is_read[word]:
                self.is_read[word] = True
                if not is_right(self.right, parse, word):
                    self.clicks += 1
                    return True
        return False


def is_right(gold: Sentence, parse: Parse, word: int) -> bool:
    """Whether head and label of a word are right; an open label is."""
    label = (gold.labels or ())[word]
    return (gold.heads or ())[word] == parse.heads[word] and label in (EMPTY, parse.labels[word])


def clicks_anew(parser: Parser, gold: Sequence[Sentence], labels: Sequence[str], *, by_doubt: bool) -> int:
    """The clicks until heads and these labels are right, if a sentence is decoded anew after each click."""
    work = [Annotated(sentence, labels) for sentence in gold]
    open_ones = work
    while open_ones:
        parses = parser.parse([each.known for each in open_ones], keep_heads=True, probabilities=True)
        open_ones = [each for each, parse in zip(open_ones, parses, strict=True) if each.read(parse, by_doubt=by_doubt)]
    return sum(each.clicks for each in work)


def words_to_read(parser: Parser, gold: Sequence[Sentence]) -> dict[str, list[float]]:
    """The shares of the words that are read, in each order, until shares of the errors are found."""
    parses = parser.parse([sentence.without_tree() for sentence in gold], probabilities=True)
    words = [
        (index, word, prob) for index, parse in enumerate(parses) for word, prob in enumerate(parse.label_probs or ())
    ]
    doubt = [(parse.expected_errors or 0) / len(parse.tokens) for parse in parses]
    orders = {
        "as the file has them": words,
        "doubtful sentences first": sorted(words, key=lambda place: -doubt[place[0]]),
        "doubtful words first": sorted(words, key=lambda place: place[2]),
    }
    found = {}
    for name, order in orders.items():
        wrong = [
            place for place, (index, word, _) in enumerate(order, 1) if not is_right(gold[index], parses[index], word)
        ]
        found[name] = [wrong[round(share * len(wrong)) - 1] / len(order) for share in SHARES]
    return found


def tables(parser: Parser, gold: Sequence[Sentence]) -> Iterator[str]:
    """Markdown: clicks, and words to read."""
    parses = parser.parse([sentence.without_tree() for sentence in gold])
    yield f"{len(gold):,} sentences, {sum(map(len, gold)):,} words"
    yield from (
        "",
        "| decoding | words are read | clicks | fewer, % | for heads | fewer, % |",
        "|:--|:--|--:|--:|--:|--:|",
    )
    errors = []
    for names in (parser.label_names, ()):
        work = [Annotated(sentence, names).right for sentence in gold]
        pairs = zip(work, parses, strict=True)
        errors.append(sum(not is_right(own, parse, word) for own, parse in pairs for word in range(len(own))))
    yield f"| once | | {errors[0]:,} | | {errors[1]:,} | |"
    for order in ("from the left", "the least certain first"):
        clicks = [
            clicks_anew(parser, gold, names, by_doubt=order != "from the left") for names in (parser.label_names, ())
        ]
        cells = (f"{own:,} | {100 * (1 - own / once):.1f}" for own, once in zip(clicks, errors, strict=True))
        yield f"| anew after each click | {order} | {' | '.join(cells)} |"
    yield ""
    yield f"| words read, %, to find of the errors | {' | '.join(f'{share:.0%}' for share in SHARES)} |"
    yield f"|:--|{'--:|' * len(SHARES)}"
    for name, shares in words_to_read(parser, gold).items():
        yield f"| {name} | {' | '.join(f'{100 * share:.1f}' for share in shares)} |"


def main(options: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the folder of a model, or of its run")
    default = os.environ.get("TREEPARSE_TREEBANKS", ".")
    parser.add_argument("--treebanks", type=Path, default=default, metavar="DIR", help="default: the variable's")
    parser.add_argument("--gold", default=EWT, metavar="FILE", help=f"trees in that folder (default: {EWT})")
    parser.add_argument("--most", type=int, metavar="N", help="only the first N sentences")
    arguments = parser.parse_args(options)
    try:
        gold = [sentence.words for sentence in load_treebank(arguments.treebanks / arguments.gold)[: arguments.most]]
        print("\n".join(tables(Parser.from_pretrained(arguments.model), gold)))
    except TreeparseError as error:
        sys.exit(f"experiment_annotation: {error}")


if __name__ == "__main__":
    main()
